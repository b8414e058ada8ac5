"""The measurement of bench_data_parallel.c in PyTorch, over gloo. Run both with OMP_NUM_THREADS=1 and
OPENBLAS_NUM_THREADS=1."""
import os
import statistics
import sys
import tempfile
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F

from residual_block import ResidualBlock

BLOCKS, WIDTH, RANKS, WARM_UP, PAIRS = 8, 512, 2, 2, 11
ALL_ROWS = (512, 2048)


class Training:
    def __init__(self):
        torch.manual_seed(0)
        self.model = nn.Sequential(*(ResidualBlock(WIDTH) for _ in range(BLOCKS)))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.x, self.y = torch.randn(max(ALL_ROWS), WIDTH), torch.randn(max(ALL_ROWS), WIDTH)

    def step(self, start, rows, parallel):
        begin = time.perf_counter()
        self.optimizer.zero_grad(set_to_none=True)
        loss = F.mse_loss(self.model(self.x[start:start + rows]), self.y[start:start + rows])
        loss.backward()
        if parallel:
            for parameter in self.model.parameters():
                dist.all_reduce(parameter.grad)
                parameter.grad.div_(RANKS)
        self.optimizer.step()
        loss.item()
        return time.perf_counter() - begin


def pair(training, rank, rows):
    """Seconds of a step in one process, and of the slower rank of two."""
    dist.barrier()
    alone = training.step(0, rows, False) if rank == 0 else 0
    dist.barrier()
    both = training.step(rank * (rows // RANKS), rows // RANKS, True)
    slowest = torch.tensor([alone, both], dtype=torch.float64)
    dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
    return slowest.tolist()


def run_rank(rank, file):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=RANKS)
    training = Training()
    for rows in ALL_ROWS:
        pairs = [pair(training, rank, rows) for _ in range(WARM_UP + PAIRS)][WARM_UP:]
        if rank == 0:
            one, two = (1e3 * statistics.median(times) for times in zip(*pairs))
            print(f"{rows} rows, PyTorch {torch.__version__}: "
                  f"one process {one:.1f} ms, two {two:.1f} ms")
            print(f"data_parallel_speedup {rows} {statistics.median(a / b for a, b in pairs):.3f}",
                  flush=True)
    dist.destroy_process_group()


def main():
    with tempfile.TemporaryDirectory() as folder:
        children = []
        for rank in range(RANKS):
            child = os.fork()
            if child == 0:
                run_rank(rank, os.path.join(folder, "rendezvous"))
                os._exit(0)
            children.append(child)
        return any([os.waitpid(child, 0)[1] for child in children])


if __name__ == "__main__":
    sys.exit(main())
