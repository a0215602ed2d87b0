"""Loaders with workers used from several threads at once."""

from __future__ import annotations

import sys
import threading

import pytest
import taeda
from taeda.utils import data

THREADS, LOADERS, SAMPLES = 8, 4, 6


class Marked(data.Dataset):
    """Tensors large enough for memory of their own, small ones, and plain values."""

    def __init__(self, mark: int) -> None:
        self.mark = mark

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int):
        value = float(self.mark * SAMPLES + index)
        large = [taeda.full((96, 96), value + part / 8) for part in range(3)]
        return {"large": large, "small": taeda.full((3,), value), "index": index}


def wrong_batches(mark: int) -> list[str]:
    """What differs from the truth in one pass over a loader of its own."""
    wrong, count = [], 0
    loader = data.DataLoader(Marked(mark), batch_size=2, num_workers=1)
    for number, batch in enumerate(loader):
        count += 1
        indices = [2 * number, 2 * number + 1]
        values = taeda.tensor([float(mark * SAMPLES + i) for i in indices])
        if batch["index"].tolist() != indices:
            wrong.append(f"loader {mark}: {batch['index']} in place of {indices}")
        if not batch["small"].equal(values[:, None].expand(2, 3)):
            wrong.append(f"loader {mark}: small {batch['small'][:, 0]}, not {values}")
        for part, large in enumerate(batch["large"]):
            want = (values + part / 8)[:, None, None].expand(2, 96, 96)
            if not large.equal(want):
                wrong.append(f"loader {mark}: large {large[:, 0, 0]}, not {values}")
    if count != SAMPLES // 2:
        wrong.append(f"loader {mark}: {count} batches")
    return wrong


@pytest.fixture
def eager_switching():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_loaders_in_threads_keep_to_their_own_values(eager_switching) -> None:
    wrong: list[str] = []

    def work(first: int) -> None:
        try:
            for mark in range(first, first + LOADERS):
                wrong.extend(wrong_batches(mark))
        except BaseException as error:
            wrong.append(f"thread {first // LOADERS}: {type(error).__name__}: {error}")

    threads = [
        threading.Thread(target=work, args=(LOADERS * i,)) for i in range(THREADS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert not any(thread.is_alive() for thread in threads)
    assert wrong == []
