"""Iterates a slow loader; prints the workers' process ids first."""

from __future__ import annotations

import sys
import time

from taeda.utils import data


class Slow(data.Dataset):
    def __len__(self) -> int:
        return 1000

    def __getitem__(self, index: int) -> int:
        time.sleep(0.1)
        return index


if __name__ == "__main__":
    iterator = iter(
        data.DataLoader(Slow(), num_workers=2, multiprocessing_context=sys.argv[1])
    )
    next(iterator)
    print(*(w.process.pid for w in iterator._workers), flush=True)
    for _ in iterator:
        pass
