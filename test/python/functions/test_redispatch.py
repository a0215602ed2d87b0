"""Functions called past the override that is being answered."""

from __future__ import annotations

import pytest
import taeda
import torch

LIBRARIES = pytest.mark.parametrize("library", [taeda, torch])


def scaled(library):
    overrides = library.overrides

    def scaled_product(a, b):
        if overrides.has_torch_function((a, b)):
            return overrides.handle_torch_function(scaled_product, (a, b), a, b)
        return library.mul(a, b) + 1

    return scaled_product


@LIBRARIES
def test_what_a_function_calls_is_overridden(library) -> None:
    calls = []

    class Kept(library.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            calls.append(func.__name__)
            return library.overrides.redispatch_function(func, types, args, kwargs)

    x = library.ones(2).as_subclass(Kept)
    found = scaled(library)(x, x)
    assert type(found) is library.Tensor and found.tolist() == [2, 2]
    assert calls == ["scaled_product", "mul"]
    assert library.add(x, 1, alpha=3).tolist() == [4, 4] and calls[2:] == ["add"]


@LIBRARIES
def test_errors_leave_overrides_as_they_were(library) -> None:
    class Kept(library.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return library.overrides.redispatch_function(func, types, args, kwargs)

    x = library.ones(2).as_subclass(Kept)
    with pytest.raises(RuntimeError):
        library.mm(x, x)
    assert library.overrides.has_torch_function_unary(x)


@LIBRARIES
def test_modes_see_what_a_function_calls(library) -> None:
    calls = []

    class Mode(library.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            calls.append(func.__name__)
            with self:
                return library.overrides.redispatch_function(func, types, args, kwargs)

    with Mode():
        scaled(library)(library.ones(2), library.ones(2))
    assert [name for name in calls if name in ("scaled_product", "mul", "add")] == [
        "scaled_product",
        "mul",
        "add",
    ]
