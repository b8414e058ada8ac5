"""Writes ops.json: what PyTorch computes for every operation of runtime/ops.h, values and gradients.

    /usr/bin/python3 tests/golden/make_ops.py > tests/golden/ops.json

A case is an operation, its numbers, its leaves and how each becomes an operand ("plain", "transposed":
the leaf's first two dimensions swapped, "sliced": elements 1 .. n-2 of the leaf's last dimension). The
gradients are those of sum(weights * output). Nine significant digits.
"""
import json
import sys

import torch
from torch.nn import functional as F

OPERATIONS = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "scale": lambda x, k: x * k,
    "add_number": lambda x, k: x + k,
    "square": torch.square,
    "tanh": torch.tanh,
    "relu": torch.relu,
    "gelu": F.gelu,
    "matmul": lambda a, b: a @ b,
    "linear": lambda x, w, *bias: F.linear(x, w, *bias),
    "gelu_residual": lambda x, z, k: x + k * F.gelu(z),
    "sum": torch.sum,
    "mean": torch.mean,
    "sum_rows": lambda x: x.sum(0),
    "mse_loss": F.mse_loss,
    "view": lambda x, *shape: x.contiguous().view([int(size) for size in shape]),
    "transpose": lambda x, a, b: x.transpose(int(a), int(b)),
    "slice": lambda x, d, start, n: x.narrow(int(d), int(start), int(n)),
    "split_backwards": lambda x, rows: torch.cat(torch.split(x, int(rows))[::-1]),
    "cat": lambda *pieces: torch.cat(pieces),
    "clone": torch.clone,
    "cast": lambda x: x.float() if x.dtype == torch.float64 else x.double(),
    "to_half": lambda x: x.half().to(x.dtype),
}

ELEMENTWISE = [(), (5,), (67,), (3, 4), (0,), (2, 0, 3), (2, 3, 2, 2)]
PAIRS = [
    ((), ()),
    ((3, 4), (3, 4)),
    ((3, 4), ()),
    ((), (2, 3)),
    ((4,), (3, 4)),
    ((3, 1), (1, 4)),
    ((2, 1, 4), (3, 1)),
    ((1,), (2, 2)),
    ((0, 3), (1, 3)),
    ((2, 3, 2, 2), (3, 1, 2)),
]


def cases():
    for name in "add", "sub", "mul", "div":
        for a, b in PAIRS:
            yield name, [], [a, b], ["plain", "plain"]
        yield name, [], [(3, 4), (3, 4)], ["transposed", "plain"]
        yield name, [], [(3, 4), (4,)], ["sliced", "sliced"]
        yield name, [], [(2, 3, 4), (2, 3, 4)], ["transposed", "sliced"]
    for name, numbers in [("scale", [1.75]), ("add_number", [-0.375]), ("square", []), ("tanh", []),
                          ("relu", []), ("gelu", []), ("clone", []), ("cast", []), ("to_half", [])]:
        for shape in ELEMENTWISE:
            yield name, numbers, [shape], ["plain"]
        yield name, numbers, [(3, 4)], ["transposed"]
        yield name, numbers, [(2, 3, 4)], ["sliced"]
    for a, b in [((3, 4), (4, 5)), ((1, 4), (4, 1)), ((0, 4), (4, 5)), ((3, 0), (0, 5)),
                 ((1, 1), (1, 1)), ((17, 9), (9, 21))]:
        yield "matmul", [], [a, b], ["plain", "plain"]
    for modes in [("transposed", "plain"), ("plain", "transposed"), ("transposed", "transposed"),
                  ("sliced", "plain"), ("sliced", "sliced"), ("plain", "sliced")]:
        yield "matmul", [], [(3, 4), (4, 5)], list(modes)
    for x in [(3, 4), (4,), (2, 3, 4), (0, 4), (1, 4), (2, 0, 4)]:
        yield "linear", [], [x, (5, 4)], ["plain", "plain"]
        yield "linear", [], [x, (5, 4), (5,)], ["plain", "plain", "plain"]
    yield "linear", [], [(3, 0), (5, 0), (5,)], ["plain", "plain", "plain"]
    yield "linear", [], [(3, 4), (1, 4), (1,)], ["plain", "plain", "plain"]
    yield "linear", [], [(3, 4), (5, 4), (5,)], ["transposed", "transposed", "sliced"]
    yield "linear", [], [(2, 3, 4), (5, 4), (5,)], ["sliced", "sliced", "plain"]
    yield "linear", [], [(2, 3, 4), (5, 4)], ["transposed", "plain"]
    for shape in ELEMENTWISE:
        yield "gelu_residual", [0.1], [shape, shape], ["plain", "plain"]
        yield "mse_loss", [], [shape, shape], ["plain", "plain"]
        yield "sum", [], [shape], ["plain"]
        yield "mean", [], [shape], ["plain"]
        if shape:
            yield "sum_rows", [], [shape], ["plain"]
    for modes in [("transposed", "sliced"), ("plain", "transposed")]:
        yield "gelu_residual", [-0.5], [(3, 4), (3, 4)], list(modes)
        yield "mse_loss", [], [(3, 4), (3, 4)], list(modes)
    for mode in "transposed", "sliced":
        for name in "sum", "mean", "sum_rows":
            yield name, [], [(2, 3, 4)], [mode]
    yield "sum_rows", [], [(600, 3)], ["plain"]
    for shape, view in [((3, 4), (2, 6)), ((3, 4), (12,)), ((1,), ()), ((), (1, 1)),
                        ((0, 3), (3, 0, 2)), ((2, 3, 4), (4, 6))]:
        yield "view", list(view), [shape], ["plain"]
    yield "view", [2, 6], [(3, 4)], ["transposed"]
    for shape, dims in [((3, 4), (0, 1)), ((2, 3, 4), (0, 2)), ((2, 3, 4), (1, 2)), ((3,), (0, 0)),
                        ((0, 2), (1, 0))]:
        yield "transpose", list(dims), [shape], ["plain"]
    yield "transpose", [1, 2], [(2, 3, 4)], ["transposed"]
    for shape, part in [((5,), (0, 1, 3)), ((3, 4), (1, 2, 2)), ((3, 4), (0, 0, 3)),
                        ((3, 4), (0, 2, 0)), ((2, 3, 4), (1, 1, 1))]:
        yield "slice", list(part), [shape], ["plain"]
    yield "slice", [1, 0, 2], [(3, 4)], ["transposed"]
    for shape, rows in [((7, 3), 3), ((7, 3), 1), ((7,), 7), ((7, 2), 9), ((0, 3), 2)]:
        yield "split_backwards", [rows], [shape], ["plain"]
    yield "split_backwards", [2], [(5, 4)], ["transposed"]
    yield "cat", [], [(2, 3)], ["plain"]
    yield "cat", [], [(2, 3), (1, 3), (4, 3)], ["plain"] * 3
    yield "cat", [], [(0, 3), (2, 3)], ["plain"] * 2
    yield "cat", [], [(2,), (3,)], ["plain"] * 2
    yield "cat", [], [(2, 3), (2, 3)], ["transposed", "sliced"]


def leaf_shape(shape, mode):
    if mode == "transposed":
        return (shape[1], shape[0], *shape[2:])
    if mode == "sliced":
        return (*shape[:-1], shape[-1] + 2)
    return shape


def operand(leaf, mode):
    if mode == "transposed":
        return leaf.transpose(0, 1)
    if mode == "sliced":
        return leaf[..., 1:-1]
    return leaf


def draw(shape, dtype, generator):
    """Four decimals, and never near 0, where relu has a kink and div a pole."""
    values = torch.randn(shape, dtype=torch.float64, generator=generator)
    values = values.sign() * (values.abs() + 0.05)
    return ((values * 1e4).round() / 1e4).to(dtype)


def numbers_of(tensor):
    return [float(f"{value:.9g}") for value in tensor.detach().double().flatten().tolist()]


def case(name, numbers, shapes, modes, dtype, generator):
    leaves = [draw(leaf_shape(s, m), dtype, generator).requires_grad_()
              for s, m in zip(shapes, modes)]
    output = OPERATIONS[name](*(operand(x, m) for x, m in zip(leaves, modes)), *numbers)
    weights = draw(output.shape, output.dtype, generator)
    (output * weights).sum().backward()
    return {
        "op": name,
        "dtype": str(dtype).split(".")[1],
        "numbers": numbers,
        "modes": modes,
        "leaves": [{"shape": list(x.shape), "values": numbers_of(x)} for x in leaves],
        "shape": list(output.shape),
        "output": numbers_of(output),
        "weights": numbers_of(weights),
        "gradients": [numbers_of(x.grad) for x in leaves],
    }


def main():
    generator = torch.Generator().manual_seed(2468)
    everything = [case(*c, dtype, generator)
                  for c in cases() for dtype in (torch.float32, torch.float64)]
    lines = ",\n".join(json.dumps(c, separators=(",", ":")) for c in everything)
    sys.stdout.write("[\n" + lines.replace("NaN", "null") + "\n]\n")


main()
