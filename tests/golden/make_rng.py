"""What CPython's random module gives, for tests/test_rng.c: python3 make_rng.py > rng.json"""
import json
import random

SEEDS = [0, 1, 19, 20, 1234, 2**40 + 7]
BOUNDS = [1, 2, 3, 7, 8, 1000, 2**31, 2**32, 2**32 + 1, 2**63 - 1, 2**64 - 1]


def shuffled(seed, size):
    order = list(range(size))
    random.Random(seed).shuffle(order)
    return order


def checksum(seed):
    """FNV-1a over the permutations of all sizes from 0 to 1000."""
    digest = 0xCBF29CE484222325
    for size in range(1001):
        for index in shuffled(seed, size):
            digest = (digest ^ index) * 0x100000001B3 % 2**64
    return f"{digest:016x}"


def case(seed):
    draw = random.Random(seed)
    return {
        "seed": seed,
        "bits": [str(draw.getrandbits(bits)) for bits in range(1, 65)],
        "below": [str(draw.randrange(bound)) for bound in BOUNDS],
        "doubles": [draw.random() for _ in range(700)][::100],
        "shuffled_17": shuffled(seed, 17),
        "shuffled_to_1000": checksum(seed),
    }


print(json.dumps({"bounds": [str(b) for b in BOUNDS], "cases": [case(s) for s in SEEDS]}, indent=1))
