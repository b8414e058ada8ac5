"""The measurement of bench_allreduce.c with torch.distributed's gloo backend.

Prints "allreduce RANKS BYTES MICROSECONDS" for each size. Optional arguments: RANKS and BYTES.
"""

import os
import statistics
import sys
import tempfile
import time

import torch
import torch.distributed as dist

SIZES = [4 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20]
WARM_UP = 5


def repeats_for(size):
    return max(9, min(400, (256 << 20) // size))


def run_rank(rank, ranks, file, size):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=ranks)
    x = torch.zeros(size // 4)
    times = []
    for i in range(-WARM_UP, repeats_for(size)):
        dist.barrier()
        begin = time.perf_counter()
        dist.all_reduce(x)
        if i >= 0:
            times.append(time.perf_counter() - begin)
    slowest = torch.tensor(times, dtype=torch.float64)
    dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
    if rank == 0:
        print("allreduce", ranks, size, f"{1e6 * statistics.median(slowest.tolist()):.1f}", flush=True)
    dist.destroy_process_group()


def bench(ranks, size):
    with tempfile.TemporaryDirectory() as folder:
        children = []
        for rank in range(ranks):
            child = os.fork()
            if child == 0:
                run_rank(rank, ranks, os.path.join(folder, "rendezvous"), size)
                os._exit(0)
            children.append(child)
        return [os.waitpid(child, 0)[1] for child in children]


def main():
    only_ranks, only_size = (list(map(int, sys.argv[1:])) + [0, 0])[:2]
    failed = False
    for ranks in (2, 4):
        for size in SIZES:
            if only_ranks in (0, ranks) and only_size in (0, size):
                failed |= any(bench(ranks, size))
    return failed


if __name__ == "__main__":
    sys.exit(main())
