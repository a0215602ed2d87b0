"""Checks the backend "nccl" on real GPUs and prints times, under the launcher.

python -m taeda.distributed.run --nproc-per-node=2 benchmarks/distributed_nccl.py
"""

from __future__ import annotations

import os
import time

import taeda
import taeda.distributed as dist

SIZES = (4, 64 << 10, 4 << 20, 64 << 20)  # bytes


def _calls(count: int, world: int, device):
    """Each collective on new tensors, and what the first element is afterwards."""
    one = taeda.ones(count, device=device)
    whole = taeda.ones(count * world, device=device)
    yield "all_reduce", lambda: dist.all_reduce(one.fill_(1)) or one, world
    yield "broadcast", lambda: dist.broadcast(one.fill_(1), 0) or one, 1

    def gathered():
        dist.all_gather_into_tensor(whole, one.fill_(1))
        return whole

    def scattered():
        dist.reduce_scatter_tensor(one, whole.fill_(1))
        return one

    def exchanged():
        out = taeda.zeros_like(whole)
        dist.all_to_all_single(out, whole.fill_(1))
        return out

    yield "all_gather", gathered, 1
    yield "reduce_scatter", scattered, world
    yield "all_to_all", exchanged, 1


def main() -> None:
    """Every collective at every size: its value and the median of 20 times."""
    rank = int(os.environ["LOCAL_RANK"])
    taeda.cuda.set_device(rank)
    dist.init_process_group("nccl")
    world, device = dist.get_world_size(), taeda.device("cuda", rank)
    for size in SIZES:
        for name, call, want in _calls(max(size // 4, 1), world, device):
            times = []
            for _ in range(20):
                dist.barrier()
                begin = time.perf_counter()
                result = call()
                taeda.cuda.synchronize()
                times.append(time.perf_counter() - begin)
            got = result.double().mean().item()
            assert got == want, f"{name}: expected {want}, got {got}"
            if rank == 0:
                print(f"{name} {size}: {sorted(times)[10] * 1e6:.0f} us", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
