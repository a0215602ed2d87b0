"""Times one expression after another in Taeda and PyTorch, in one process and thread.

    PYTHONPATH=python .venv/bin/python benchmarks/sweep.py [PART ...] [--over 1.05]

Expressions are the lines of sweep.txt that contain a PART. Printed are those whose
ratio is above --over (all, where a PART is given): ratio, microseconds here and there.
A ratio is that of the shortest of some rounds, so that other work shows little.
"""

import argparse
import pathlib
import time
import warnings

import numpy
import taeda
import torch

SIZE = 512
ROUNDS = 5
BLOCK_SECONDS = 0.004


def names_of(library):
    """The tensors that expressions are about, the same numbers in each library."""
    random = numpy.random.default_rng(0)

    def floats(*shape):
        return library.from_numpy(random.standard_normal(shape).astype("f4"))

    def whole(low, high, *shape):
        return library.from_numpy(random.integers(low, high, shape))

    library.manual_seed(0)
    n = SIZE
    found = {"T": library, "F": library.nn.functional, "N": n}
    found |= {name: floats(n, n) for name in ("x", "y")}
    found |= {"p": floats(n, n).abs() + 0.1, "v": floats(n), "w": floats(n)}
    found |= {name: floats(8, 128, 128) for name in ("b3", "c3")}
    found |= {"im": floats(4, 16, 64, 64), "big": floats(1 << 20)}
    found |= {"i": whole(0, n, n, n), "iv": whole(0, n, n), "lab": whole(0, 64, n)}
    found |= {"ii": whole(-100, 100, n, n), "jj": whole(1, 100, n, n)}
    found |= {"i32": found["ii"].int(), "u8": found["i"].to(library.uint8)}
    found |= {"m": floats(n, n) > 0, "s": floats(1 << 14).sort().values}
    found |= {"h": floats(n, n).half(), "bf": floats(n, n).bfloat16()}
    found |= {"z": library.complex(floats(256, 256), floats(256, 256))}
    found |= {"dd": floats(n, n).double(), "sq": floats(64, 64), "lg": floats(n, 64)}
    found["spd"] = found["sq"] @ found["sq"].T + 64 * library.eye(64)
    return found


def seconds(body, calls):
    """CPU seconds of one of so many calls."""
    start = time.process_time()
    for _ in range(calls):
        body()
    return (time.process_time() - start) / calls


def compare(bodies):
    """Shortest time of a call of each body."""
    for body in bodies:
        body()
        body()
    calls = max(1, round(BLOCK_SECONDS / max(seconds(bodies[1], 2), 1e-7)))
    rounds = [[seconds(body, calls) for body in bodies] for _ in range(ROUNDS)]
    return [min(times) for times in zip(*rounds, strict=True)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="PART")
    parser.add_argument("--over", type=float, default=1.05)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    libraries = (taeda, torch)
    for library in libraries:
        library.set_num_threads(1)
    scopes = [names_of(library) for library in libraries]
    lines = pathlib.Path(__file__).with_suffix(".txt").read_text().splitlines()
    for line in lines:
        if line.startswith("#") or (
            args.parts and not any(p in line for p in args.parts)
        ):
            continue
        ours, theirs = compare([eval("lambda: " + line, scope) for scope in scopes])
        if args.parts or ours > args.over * theirs:
            print(f"{ours / theirs:6.2f} {ours * 1e6:9.1f} {theirs * 1e6:9.1f}  {line}")


if __name__ == "__main__":
    main()
