"""One training step of the residual MLP in PyTorch, as a student would write it: the peer of
bench_mlp.c. Run both with OMP_NUM_THREADS=1 and OPENBLAS_NUM_THREADS=1; "cuda" measures the
assignment's step on a GPU instead, in single precision without TF32."""
import sys
import time

import torch
from torch import nn

from residual_block import ResidualBlock

DEVICE = sys.argv[1] if len(sys.argv) > 1 else "cpu"
BLOCKS, WARM_UP, STEPS = 8, 3, 15
WIDTH, ROWS = (512, 512) if DEVICE == "cpu" else (2048, 8192)

torch.set_num_threads(1)
torch.backends.cuda.matmul.allow_tf32 = False
torch.manual_seed(0)
model = nn.Sequential(*(ResidualBlock(WIDTH) for _ in range(BLOCKS))).to(DEVICE)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss_fn = nn.MSELoss()
x, y = torch.randn(ROWS, WIDTH).to(DEVICE), torch.randn(ROWS, WIDTH).to(DEVICE)


def step():
    optimizer.zero_grad(set_to_none=True)
    loss = loss_fn(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.item()


def timed():
    start = time.perf_counter()
    step()
    return 1e3 * (time.perf_counter() - start)


for _ in range(WARM_UP):
    step()
ms = sorted(timed() for _ in range(STEPS))[STEPS // 2]
gflop = 1e-9 * 2 * ROWS * WIDTH * WIDTH * (3 * BLOCKS - 1)
print(f"residual MLP step on {DEVICE}, PyTorch {torch.__version__}: {ms:.2f} ms, {gflop / ms * 1e3:.1f} GFLOP/s")
print(f"mlp_step_{DEVICE}_ms {ms:.3f}")
