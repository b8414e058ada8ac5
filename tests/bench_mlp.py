"""One training step of the residual MLP in PyTorch, as a student would write it: the peer of
bench_mlp.c. Run both with OMP_NUM_THREADS=1 and OPENBLAS_NUM_THREADS=1."""
import time

import torch
from torch import nn
from torch.nn import functional as F

BLOCKS, WIDTH, ROWS, WARM_UP, STEPS = 8, 512, 512, 3, 15


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        return x + 0.1 * F.gelu(self.linear(x))


torch.set_num_threads(1)
torch.manual_seed(0)
model = nn.Sequential(*(Block(WIDTH) for _ in range(BLOCKS)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss_fn = nn.MSELoss()
x, y = torch.randn(ROWS, WIDTH), torch.randn(ROWS, WIDTH)


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
print(f"residual MLP step, PyTorch {torch.__version__}: {ms:.2f} ms, {gflop / ms * 1e3:.1f} GFLOP/s")
print(f"mlp_step_ms {ms:.3f}")
