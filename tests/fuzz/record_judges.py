#!/usr/bin/env python3
"""Record tests/fuzz/corpus/judges again: what the reference submission lets each criterion observe.

Each subject is started as grade starts it, but with its observations going to a file. A seed is
as fuzz_judges.c reads it. What a criterion would supply is the reference's own. Needs ./grade and the
simulated device (make).
"""

import math
import os
import pathlib
import shutil
import struct
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CORPUS = ROOT / "tests/fuzz/corpus/judges"
FILES = ROOT / "tests/fuzz/judge_files"  # where the judge of adapter looks for:
SAVED = ["first.pt", "second.adapter"]
REFERENCE = ROOT / "tests/submissions/reference/assignment"
GRADE = ROOT / "build/release/grade"
SIM = ROOT / "build/release/sim.so"
SEED = 5  # fuzz_judges.c has the same
END = bytes([9]) + bytes(4)  # the last record, which fuzz_judges.c appends
STATUS_BYTES = 1 << 20  # as much as a status page needs, or more
DTYPE_BYTES = [4, 8, 2]  # FLOAT32, FLOAT64, FLOAT16
PATIENCE_S = 240

# Bytes that are kept of what one rank recorded, where that is much.
KEPT = {"partitions": 12 << 10, "schedule": 16 << 10, "dp_performance": 4 << 10}

# In the rubric's order: the student's file, the world sizes in the criterion's order, the device.
CRITERIA = {
    "partitions": ("data_parallel", [2], "cpu"),
    "gradients": ("data_parallel", [2, 3, 4, 1], "cpu"),
    "updates": ("data_parallel", [2, 3], "cpu"),
    "dp_performance": ("data_parallel", [2], "cpu"),
    "schedule": ("pipeline", [1], "cpu"),
    "forward": ("pipeline", [1], "cpu"),
    "backward": ("pipeline", [1], "cpu"),
    "pipeline_performance": ("pipeline", [1], "cpu"),
    "config": ("finetune", [1], "cpu"),
    "zero_runtime": ("finetune", [2], "sim"),
    "lora": ("finetune", [1], "cpu"),
    "zero_updates": ("finetune", [2], "sim"),
    "adapter": ("finetune", [1], "cpu"),
}


def build(name, folder):
    """returns: the path of the library"""
    library = folder / f"{name}.so"
    jansson = subprocess.check_output(["pkg-config", "--cflags", "jansson"], text=True).split()
    command = ["cc", "-std=gnu17", "-O2", "-fPIC", "-shared", f"-I{ROOT}", f"-I{ROOT}/assignment"]
    subprocess.run(command + jansson + ["-o", library, REFERENCE / f"{name}.c"], check=True)
    return library


def start(criterion, device, library, folder, rank, world_size):
    """returns: the process, and the file with its observations"""
    own = folder / f"rank-{rank}-of-{world_size}"
    own.mkdir()
    meeting = folder / f"meeting-of-{world_size}" if world_size > 1 else "-"
    plugin = SIM if device == "sim" else "-"
    arguments = ["grade-subject", criterion, device, plugin, SEED, rank, world_size, library, own]
    arguments += [PATIENCE_S, "process", "-", meeting] + ["-"] * world_size
    with open(f"{own}.observations", "wb") as observations, open(f"{own}.status", "w+b") as status:
        status.truncate(STATUS_BYTES)

        def arrange():
            taken = os.dup(observations.fileno()), os.dup(status.fileno())
            os.dup2(taken[0], 3)
            os.dup2(taken[1], 4)

        process = subprocess.Popen([str(argument) for argument in arguments], executable=GRADE,
                                   cwd=own, preexec_fn=arrange, close_fds=False)
    return process, pathlib.Path(observations.name)


def observe(criterion, device, library, world_size, folder):
    """returns: what each rank recorded, without the end"""
    subjects = [start(criterion, device, library, folder, rank, world_size)
                for rank in range(world_size)]
    streams = []
    for process, observations in subjects:
        status = process.wait()
        stream = observations.read_bytes()
        assert status == 0 and stream.endswith(END), f"{criterion} went wrong: status {status}"
        streams.append(stream[:-len(END)])
    return streams


def text_end(stream, at):
    return at + 4 + struct.unpack_from("=I", stream, at)[0]


def tensor_end(stream, at):
    dtype, ndim = stream[at], stream[at + 3]
    sizes = struct.unpack_from(f"={ndim}q", stream, at + 8)
    return at + 8 + 8 * ndim + math.prod(sizes) * DTYPE_BYTES[dtype]


# The end of a value by the kind of its record (grading/observations.h).
VALUE_END = {
    1: lambda stream, at: at + 8,
    2: lambda stream, at: at + 8 + 8 * struct.unpack_from("=q", stream, at)[0],
    3: lambda stream, at: at + 8,
    4: text_end,
    5: lambda stream, at: text_end(stream, text_end(stream, at)),
    6: tensor_end,
    7: lambda stream, at: at,
}


def beginning(stream, kept):
    """returns: the whole records among the first `kept` bytes"""
    end = at = 0
    while end <= kept and end < len(stream):
        at, end = end, VALUE_END[stream[end]](stream, text_end(stream, end + 1))
    return stream[: end if end <= kept else at]


def record(place, criterion, folder):
    name, worlds, device = CRITERIA[criterion]
    library = build(name, folder)
    streams = []
    for world_size in worlds:
        streams += observe(criterion, device, library, world_size, folder)
    kept = [beginning(stream, KEPT.get(criterion, len(stream))) for stream in streams]
    framed = b"".join(struct.pack("=I", len(stream)) + stream for stream in kept)
    (CORPUS / criterion).write_bytes(bytes([place]) + framed)
    (CORPUS / f"{criterion}_empty").write_bytes(bytes([place]))


def main():
    CORPUS.mkdir(parents=True, exist_ok=True)
    FILES.mkdir(exist_ok=True)
    for place, criterion in enumerate(CRITERIA):
        with tempfile.TemporaryDirectory() as folder:
            record(place, criterion, pathlib.Path(folder))
            if criterion == "adapter":
                for name in SAVED:
                    shutil.copy(pathlib.Path(folder) / "rank-0-of-1" / name, FILES / name)


if __name__ == "__main__":
    main()
