"""Calls of one operator for each entry of a list, which share launches on a device."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import taeda

Tensor = taeda.Tensor
Lists = list[list[Tensor]]


def tensors(dtype: taeda.dtype, shift: float = 0.0) -> list[Tensor]:
    """More than a table has; large, empty, unaligned, turned and with holes."""
    sizes = [(9000,), (3, 5), (0,), (1,), (2, 3, 4), *[(7,)] * 50]
    made = [taeda.rand(*size) + 0.5 + shift for size in sizes]
    made += [taeda.rand(18)[1:] + 1, taeda.rand(4, 6).t() + 1, taeda.rand(8)[::2] + 1]
    return [t.to(dtype) for t in made]


CALLS: dict[str, Callable[[list[Tensor], list[Tensor], list[Tensor]], object]] = {
    "a number": lambda x, y, z: taeda._foreach_add(x, 2.5),
    "numbers": lambda x, y, z: taeda._foreach_mul(x, [i / 7 for i in range(len(x))]),
    "lists": lambda x, y, z: taeda._foreach_sub(x, y, alpha=0.5),
    "a tensor": lambda x, y, z: taeda._foreach_mul(x, y[3].reshape(())),
    "three lists": lambda x, y, z: taeda._foreach_addcdiv(x, y, z, value=-0.1),
    "three lists and numbers": lambda x, y, z: taeda._foreach_addcmul(
        x, y, z, [i / 3 for i in range(len(x))]
    ),
    "one operand": lambda x, y, z: taeda._foreach_sqrt(x),
    "in place": lambda x, y, z: taeda._foreach_div_(x, y),
    "in place by numbers": lambda x, y, z: taeda._foreach_lerp_(x, y, 0.25),
    "copies": lambda x, y, z: taeda._foreach_copy_(x, y),
    "zeros": lambda x, y, z: taeda._foreach_zero_(x),
    "clamps": lambda x, y, z: taeda._foreach_clamp_max_(x, 1.0),
}


def on(device: str, lists: Lists) -> Lists:
    """Copies that lie as the originals, in storages of the same size."""
    return [
        [
            taeda.empty(t._typed_storage().size(), dtype=t.dtype, device=device)
            .copy_(t.new_empty(0).set_(t.untyped_storage()))
            .as_strided(t.size(), t.stride(), t.storage_offset())
            for t in each
        ]
        for each in lists
    ]


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.bfloat16], ids=str)
@pytest.mark.parametrize("name", CALLS)
def test_as_on_the_cpu(name: str, dtype: taeda.dtype) -> None:
    lists = [tensors(dtype), tensors(dtype, 1.0), tensors(dtype, 2.0)]
    there = on("cuda", lists)
    want, got = CALLS[name](*lists), CALLS[name](*there)
    if want is not None:
        for a, b in zip(got, want, strict=True):
            assert (a.dtype, a.stride()) == (b.dtype, b.stride())
            taeda.testing.assert_close(a.cpu(), b)
    for a, b in zip(there[0], lists[0], strict=True):
        taeda.testing.assert_close(a.cpu(), b)


def test_dtypes_that_take_turns() -> None:
    dtypes = [taeda.float32, taeda.float32, taeda.int64, taeda.float16, taeda.float32]
    x = [taeda.arange(1, 6).to(t) for t in dtypes]
    got = taeda._foreach_mul(on("cuda", [x])[0], 3)
    for a, b in zip(got, taeda._foreach_mul(x, 3), strict=True):
        assert a.dtype is b.dtype and a.cpu().tolist() == b.tolist()


def test_entries_that_hang_on_each_other_are_done_in_order() -> None:
    def values(device: str) -> list[float]:
        x = taeda.arange(1.0, 9.0, device=device)
        low, high, all_of_it = x[:5], x[3:], x[:]
        taeda._foreach_add_([low, high, all_of_it], [low, high, all_of_it])
        taeda._foreach_mul_([low, low, high], [2.0, 3.0, 0.5])
        taeda._foreach_copy_([low[:3], high[:3]], [high[2:], low[:3]])
        return x.cpu().tolist()

    assert values("cuda") == values("cpu")


def test_what_comes_before_an_error_is_done() -> None:
    def values(device: str) -> list[list[float]]:
        x = [taeda.ones(3, device=device) for _ in range(4)]
        y = [taeda.ones(3 + (i == 2), device=device) for i in range(4)]
        with pytest.raises(RuntimeError, match="size"):
            taeda._foreach_add_(x, y)
        return [t.cpu().tolist() for t in x]

    assert values("cuda") == values("cpu")


def test_results_do_not_take_each_others_memory() -> None:
    x = [taeda.full((64,), float(i), device="cuda") for i in range(20)]
    for _ in range(3):
        x = taeda._foreach_add(taeda._foreach_mul(x, 2.0), 1.0)
    assert [t[0].item() for t in x] == [8.0 * i + 7 for i in range(20)]


def test_gradients() -> None:
    def slopes(device: str) -> list[list[float]]:
        x = [taeda.full((3,), float(i), device=device) for i in range(1, 5)]
        for t in x:
            t.requires_grad_()
        sum(t.sum() for t in taeda._foreach_mul(taeda._foreach_exp(x), x)).backward()
        return [t.grad.cpu() for t in x]

    for a, b in zip(slopes("cuda"), slopes("cpu"), strict=True):
        taeda.testing.assert_close(a, b)


def test_another_stream_within_a_list() -> None:
    """A subclass may do anything between two entries."""
    side = taeda.cuda.Stream()

    class Turning(taeda.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            taeda.cuda.set_stream(side)
            side.wait_stream(taeda.cuda.default_stream())
            given = [t.inner if isinstance(t, Turning) else t for t in args]
            return func(*given, **(kwargs or {}))

    plain = [taeda.full((5,), 2.0, device="cuda") for _ in range(3)]
    turning = taeda.Tensor._make_subclass(Turning, plain[1])
    turning.inner = plain[1]
    try:
        got = taeda._foreach_mul([plain[0], turning, plain[2]], 3.0)
        values = [t.cpu().tolist() for t in got]
    finally:
        taeda.cuda.set_stream(taeda.cuda.default_stream())
    assert values == [[6.0] * 5] * 3


def test_a_table_is_one_launch(tmp_path: Path) -> None:
    text = """
import taeda
x = [taeda.ones(n % 7 + 4, device="cuda") for n in range(96)]
y = [taeda.ones(n % 7 + 4, device="cuda") for n in range(96)]
taeda._foreach_add_(x, y)
taeda._foreach_addcdiv_(x, y, y, [n / 2 for n in range(96)])
taeda._foreach_zero_(y)
assert [t[1].item() for t in x] == [2 + n / 2 for n in range(96)]
assert not any(t.any() for t in y)
"""
    counts, texts = tmp_path / "launches", tmp_path / "texts"
    texts.mkdir()
    environment = os.environ | {
        "TAEDA_EMULATOR_LAUNCHES": str(counts),
        "TAEDA_EMULATOR_TEXTS": str(texts),
    }
    subprocess.run([sys.executable, "-c", text], env=environment, check=True)
    launches = {}
    for line in counts.read_text().splitlines():
        count, name = line.split()
        kernel = (texts / name).read_text()
        if "PointwiseTable" in kernel:
            launches[kernel[kernel.index("void ") :].split("(")[0]] = int(count)
    assert launches == {
        "void add_kernel": 2,
        "void addcdiv_kernel": 2,
        "void same_kernel": 2,
    }
