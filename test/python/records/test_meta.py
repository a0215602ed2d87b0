"""On the meta device every operator gives the real shapes, dtypes and strides."""

from __future__ import annotations

import pytest
import taeda
from all_calls import OVERLOADS, Function, all_calls, argument_names, tensors_in


def shown(results: tuple) -> list[tuple]:
    """What is known without values; strides of dims of size 1 mean nothing."""
    found = []
    for t in tensors_in(results):
        pairs = zip(t.stride(), t.shape, strict=True)
        strides = [s for s, n in pairs if n > 1] if t.numel() else []
        found.append((t.dtype, tuple(t.shape), strides))
    return found


def on_meta(values: dict) -> dict:
    def moved(value: object) -> object:
        if isinstance(value, taeda.Tensor):
            return value.to("meta")
        if isinstance(value, (list, tuple)):
            return [moved(part) for part in value]
        return value

    new = {name: moved(value) for name, value in values.items()}
    if new.get("device") is not None:
        new["device"] = taeda.device("meta")
    return new


def test_every_call() -> None:
    done, failures = 0, []
    for name, calls in all_calls().items():
        schema = OVERLOADS[name].schema
        for values in calls:
            names = argument_names(schema, values)
            real = Function(schema, values, names)
            meta = Function(schema, on_meta(values), names)
            want = shown(real(*real.tensors))
            try:
                results = meta(*meta.tensors)
                assert all(t.is_meta for t in tensors_in(results))
                assert shown(results) == want
                done += 1
            except (AssertionError, RuntimeError, NotImplementedError) as error:
                failures.append(f"{name}: {type(error).__name__}: {str(error)[:300]}")
    print(f"{done} calls on meta")
    assert not failures, "\n".join(failures)
    assert done > 1250


def test_writes_beside_what_shares_no_memory() -> None:
    """Nothing overlaps where there are no bytes, as in PyTorch."""
    z = taeda.empty(3, 2, device="meta")
    assert z.detach().mul_(z).shape == (3, 2)
    assert z[:2].add_(z[1:]).shape == (2, 2)
    real = taeda.ones(3, 2)
    with pytest.raises(RuntimeError, match="single memory location"):
        real[:2].add_(real[1:])
