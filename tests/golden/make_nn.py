"""Layers in PyTorch, forward and backward in float64, for tests/test_nn.c and tests/test_lora.c:

/usr/bin/python3 make_nn.py > nn.json
"""
import json

import torch
from torch import nn

torch.manual_seed(20)
torch.set_default_dtype(torch.float64)


class ResidualBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        return x + 0.1 * nn.functional.gelu(self.linear(x))


class LoRALinear(nn.Module):
    """B drawn too, since at zero it would hide A's gradient."""

    def __init__(self, base, rank, alpha):
        super().__init__()
        self.scale = alpha / rank
        self.base = base.requires_grad_(False)
        self.lora_A = nn.Parameter(torch.randn(rank, base.in_features))
        self.lora_B = nn.Parameter(torch.randn(base.out_features, rank))

    def forward(self, x):
        return self.base(x) + x @ self.lora_A.T @ self.lora_B.T * self.scale


def case(name, module, rows, columns):
    x = torch.randn(rows, columns, requires_grad=True)
    output = module(x)
    upstream = torch.randn_like(output)
    (output * upstream).sum().backward()
    parameters = dict(module.named_parameters())
    return {
        "name": name,
        "x": x.tolist(),
        "parameters": {key: value.tolist() for key, value in parameters.items()},
        "upstream": upstream.tolist(),
        "output": output.tolist(),
        "grad_x": x.grad.tolist(),
        "gradients": {k: v.grad.tolist() for k, v in parameters.items() if v.grad is not None},
    }


def shared():
    """One Linear in two places, and one weight in two Linears."""
    first, tied = nn.Linear(3, 3), nn.Linear(3, 3)
    tied.weight = first.weight
    return nn.Sequential(nn.Sequential(first, nn.Tanh()), first, ResidualBlock(3), tied)


cases = [
    case("linear", nn.Linear(5, 3), 4, 5),
    case("linear_one_row", nn.Linear(2, 2), 1, 2),
    case("linear_without_bias", nn.Linear(3, 4, bias=False), 6, 3),
    case("tanh", nn.Tanh(), 3, 4),
    case("gelu", nn.GELU(), 3, 4),
    case("relu", nn.ReLU(), 3, 4),
    case("residual_block", ResidualBlock(4), 5, 4),
    case("nested", nn.Sequential(nn.Sequential(nn.Linear(4, 6), nn.GELU()), nn.Linear(6, 2)), 7, 4),
    case("shared", shared(), 2, 3),
    case("lora", LoRALinear(nn.Linear(4, 3), 2, 5), 6, 4),
]
names = {
    "parameters": [name for name, _ in shared().named_parameters()],
    "modules": [name for name, _ in shared().named_modules()],
}
print(json.dumps({"cases": cases, "shared": names}, indent=1))
