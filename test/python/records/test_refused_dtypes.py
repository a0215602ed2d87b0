"""A dtype that an operator's kernel refuses is refused on the meta device too.

So graphs, which are traced on meta tensors, refuse what eager calls do.
"""

from __future__ import annotations

import pytest
import taeda
from all_calls import OVERLOADS, Function, all_calls, argument_names
from test_meta import on_meta

# Calls of an overload that are looked at, each in all of the dtypes.
MOST = 2
DTYPES = (taeda.int64, taeda.bool, taeda.complex64)


def in_dtype(values: dict, dtype: taeda.dtype) -> dict:
    """The arguments with floating-point and complex tensors in another dtype."""

    def moved(value: object) -> object:
        if isinstance(value, taeda.Tensor):
            inexact = value.is_floating_point() or value.is_complex()
            return value.detach().real.to(dtype) if inexact else value
        if isinstance(value, (list, tuple)):
            return [moved(part) for part in value]
        return value

    return {name: moved(value) for name, value in values.items()}


def refusal(function: Function) -> str | None:
    """The error of a call that is refused, by its dtype where it says so."""
    try:
        function(*function.tensors)
    except NotImplementedError as error:
        return str(error)
    except (RuntimeError, ValueError, TypeError, IndexError) as error:
        return f"other: {error}"
    return None


def test_every_call() -> None:
    refused, failures = set(), []
    for name, calls in all_calls().items():
        schema = OVERLOADS[name].schema
        for values in calls[:MOST]:
            for dtype in DTYPES:
                given = in_dtype(values, dtype)
                names = argument_names(schema, given)
                on_device = refusal(Function(schema, on_meta(given), names))
                eager = refusal(Function(schema, given, names))
                if eager is None or "not implemented for" not in eager:
                    continue
                refused.add(name)
                if on_device is None:
                    failures.append(f"{name} of {dtype}: {eager}")
    print(f"{len(refused)} operators refuse a dtype")
    assert not failures, "\n".join(failures)
    assert len(refused) > 200


@pytest.mark.parametrize("dynamic", [None, True])
def test_a_dead_call_in_a_graph(dynamic: bool | None) -> None:
    def function(x: taeda.Tensor) -> taeda.Tensor:
        taeda.nn.functional.layer_norm(x, (x.shape[-1],))
        return x + 1

    compiled = taeda.compile(function, dynamic=dynamic)
    for rows in (2, 3, 4):
        with pytest.raises(NotImplementedError, match="LayerNormKernelImpl.*'Long'"):
            compiled(taeda.ones(rows, 4, dtype=taeda.int64))
        assert compiled(taeda.ones(rows, 4)).sum().item() == 8 * rows


def test_no_elements_are_normalised_in_any_dtype() -> None:
    x = taeda.ones(0, 3, 2, dtype=taeda.int64)
    for device in ("cpu", "meta"):
        given = x.to(device)
        result = taeda.nn.functional.batch_norm(given, None, None, training=True)
        assert result.shape == (0, 3, 2)
