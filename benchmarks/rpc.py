"""What remote calls cost, against PyTorch's TensorPipe, both over one machine.

    PYTHONPATH=python OMP_NUM_THREADS=1 .venv/bin/python benchmarks/rpc.py

Two workers of each library; their runs follow each other in the order A B A B. Prints
microseconds of a call, the least of several rounds of both runs, and the ratio.
"""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
import tempfile
import time

WORKER = "--worker"


def same(value):
    return value


def nothing() -> None:
    return None


def many(rpc, count: int) -> None:
    """`count` calls under way at once."""
    for future in [rpc.rpc_async("w1", nothing) for _ in range(count)]:
        future.wait()


def train(lib, rpc, autograd) -> None:
    """Forward and backward through the other worker."""
    x = lib.ones(16, 16, requires_grad=True)
    with autograd.context() as context:
        y = rpc.rpc_sync("w1", lib.mul, args=(x, x))
        autograd.backward(context, [y.sum()])


def cases(lib, rpc, autograd) -> dict:
    """Name -> (call, how many calls that is)."""
    small, large = lib.ones(256), lib.ones(1 << 20)
    return {
        "call": (lambda: rpc.rpc_sync("w1", nothing), 1),
        "100 at once": (lambda: many(rpc, 100), 100),
        "1 KiB there and back": (lambda: rpc.rpc_sync("w1", same, (small,)), 1),
        "4 MiB there and back": (lambda: rpc.rpc_sync("w1", same, (large,)), 1),
        "remote, to_here": (lambda: rpc.remote("w1", nothing).to_here(), 1),
        "forward and backward": (lambda: train(lib, rpc, autograd), 1),
    }


def worker(name: str, rank: int, folder: str, rounds: int) -> None:
    lib = importlib.import_module(name)
    rpc = importlib.import_module(f"{name}.distributed.rpc")
    autograd = importlib.import_module(f"{name}.distributed.autograd")
    options = rpc.TensorPipeRpcBackendOptions(init_method=f"file://{folder}/job")
    rpc.init_rpc(f"w{rank}", rank=rank, world_size=2, rpc_backend_options=options)
    if rank == 0:
        found = {}
        for case, (call, count) in cases(lib, rpc, autograd).items():
            call()
            times = []
            for _ in range(rounds):
                begin = time.perf_counter()
                call()
                times.append((time.perf_counter() - begin) / count * 1e6)
            found[case] = min(times)
        print(json.dumps(found), flush=True)
    rpc.shutdown()


def run(name: str, rounds: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        base = [sys.executable, __file__, WORKER, name, folder, str(rounds)]
        other = subprocess.Popen([*base, "1"], stderr=subprocess.DEVNULL)
        first = subprocess.run(
            [*base, "0"], capture_output=True, text=True, timeout=600, check=True
        )
        other.wait(60)
        return json.loads(first.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    rounds = parser.parse_args().rounds
    runs = [(name, run(name, rounds)) for name in ("taeda", "torch") * 2]
    for case in runs[0][1]:
        ours, theirs = (
            min(found[case] for name, found in runs if name == lib)
            for lib in ("taeda", "torch")
        )
        print(f"{case:24} {ours:9.0f} {theirs:9.0f}   {ours / theirs:.2f}")


if __name__ == "__main__":
    if sys.argv[1:2] == [WORKER]:
        worker(sys.argv[2], int(sys.argv[5]), sys.argv[3], int(sys.argv[4]))
    else:
        main()
