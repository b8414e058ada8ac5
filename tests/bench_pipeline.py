"""The measurement of bench_pipeline.c in PyTorch, with a thread per stage as the assignment's Python
edition has it. Run both with OMP_NUM_THREADS=1 and OPENBLAS_NUM_THREADS=1."""
import queue
import statistics
import threading
import time

import torch
from torch import nn

from residual_block import ResidualBlock

STAGES, BLOCKS, WIDTH, ROWS, MICROBATCHES, PAIRS = 2, 4, 512, 2048, 8, 15


class Worker:
    def __init__(self):
        self.tasks, self.results = queue.Queue(), queue.Queue()
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            self.results.put(self.tasks.get()())


torch.set_num_threads(1)
torch.manual_seed(0)
stages = [nn.Sequential(*(ResidualBlock(WIDTH) for _ in range(BLOCKS))) for _ in range(STAGES)]
model = nn.Sequential(*stages)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss_fn = nn.MSELoss()
x, y = torch.randn(ROWS, WIDTH), torch.randn(ROWS, WIDTH)
workers = [Worker() for _ in range(STAGES)]


def pipe_forward():
    batches = list(x.split(ROWS // MICROBATCHES))
    for wave in range(MICROBATCHES + STAGES - 1):
        pairs = [(wave - j, j) for j in range(STAGES) if 0 <= wave - j < MICROBATCHES]
        for i, j in pairs:
            workers[j].tasks.put(lambda stage=stages[j], batch=batches[i]: stage(batch))
        for i, j in pairs:
            batches[i] = workers[j].results.get()
    return torch.cat(batches)


def step(pipelined):
    optimizer.zero_grad(set_to_none=True)
    loss = loss_fn(pipe_forward() if pipelined else model(x), y)
    loss.backward()
    optimizer.step()
    loss.item()


def measure(pipelined):
    step(pipelined)
    begin = time.perf_counter()
    step(pipelined)
    return time.perf_counter() - begin


pairs = [(measure(False), measure(True)) for _ in range(PAIRS)]
serial, pipelined = (1e3 * statistics.median(times) for times in zip(*pairs))
print(f"two stages, PyTorch {torch.__version__}: serial {serial:.1f} ms, pipelined {pipelined:.1f} ms")
print(f"pipeline_speedup {statistics.median(a / b for a, b in pairs):.3f}")
