"""Loads through workers started in the way that is named; prints what arrived."""

from __future__ import annotations

import sys

import taeda
from taeda.utils import data


class Large(data.Dataset):
    def __init__(self) -> None:
        self.table = taeda.arange(12.0)[:, None].expand(12, 20_000).contiguous()

    def __len__(self) -> int:
        return 12

    def __getitem__(self, index: int):
        return self.table[index]


if __name__ == "__main__":
    loader = data.DataLoader(
        Large(), batch_size=4, num_workers=2, multiprocessing_context=sys.argv[1]
    )
    for batch in loader:
        print(*batch.mean(1).int().tolist())
