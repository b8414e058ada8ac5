"""PyTorch and the runtime read each other's files. PyTorch writes one, test_serialize loads it and
saves what it held, and PyTorch reads that again: names, dtypes, shapes and numbers must be the same."""
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import torch
except ImportError:
    print("skipped: this Python has no PyTorch")
    sys.exit(1 if os.environ.get("REQUIRE_TORCH") == "1" else 77)

TOOL = pathlib.Path("build", os.environ.get("VARIANT", "release"), "tests", "test_serialize").resolve()


def various():
    torch.manual_seed(1)
    matrix = torch.randn(7, 5)
    return {
        "plain": matrix,
        "transposed": matrix.t(),
        "column": matrix[:, 1:3],
        "double": torch.randn(2, 3, 4, dtype=torch.float64),
        "half": torch.randn(9).half(),
        "scalar": torch.tensor(-1.5),
        "empty": torch.zeros(0, 4),
        "trained": torch.nn.Parameter(torch.randn(3)),
        "unusual": torch.tensor([float("inf"), float("-inf"), float("nan"), -0.0, 1e-45]),
        "größe": torch.ones(1, 1),
        "wide": torch.randn(300, 260),
    }


def adapters():
    return {f"{layer}.lora_{part}": torch.randn(3, 4) for layer in (0, 2) for part in "AB"}


def state_dict():
    return torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Tanh(), torch.nn.Linear(5, 4)).state_dict()


def many():
    return {f"layer{i}.weight": torch.full((i % 5, 2), float(i)) for i in range(1000)}


def same(got, expected):
    return (
        got.dtype == expected.dtype
        and got.shape == expected.shape
        and got.is_contiguous()
        and not got.requires_grad
        and got.numpy().tobytes() == expected.detach().contiguous().numpy().tobytes()
    )


def check(name, expected, folder):
    theirs, ours = folder / f"{name}.theirs.pt", folder / f"{name}.ours.pt"
    torch.save(expected, theirs)
    subprocess.run([TOOL, "copy", theirs, ours], check=True)
    got = torch.load(ours, weights_only=True)
    assert type(got) is dict, f"{name}: {type(got)}"
    assert list(got) == list(expected), f"{name}: other names or another order"
    for key, value in expected.items():
        assert same(got[key], value), f"{name}: {key} differs: {got[key]} for {value}"
    print(f"{name}: {len(expected)} tensors")


with tempfile.TemporaryDirectory() as scratch:
    for case in (dict, various, adapters, state_dict, many):
        check(case.__name__, case(), pathlib.Path(scratch))
