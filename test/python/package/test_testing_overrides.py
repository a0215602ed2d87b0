"""Stand-ins of overridable functions take what PyTorch's take."""

from __future__ import annotations

import inspect
import warnings

import pytest
import taeda
import torch

# Optional there, and required by the operator itself.
STRICTER = {
    *("native_layer_norm", "_fused_rms_norm", "nonzero_static", "scatter"),
    "segment_reduce",  # `reduce` has no default in the operator
}
STRICTER |= {"scatter_", "index", "tile", "repeat"}


def required(signature: inspect.Signature) -> int:
    """How many arguments a stand-in of PyTorch's needs by position."""
    placed = (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
    )
    parameters = signature.parameters.values()
    return sum(p.default is p.empty and p.kind in placed for p in parameters)


def test_stand_ins_take_the_arguments_that_pytorchs_need() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = torch.overrides.get_testing_overrides()
    ours, taken, refused = taeda.overrides.get_testing_overrides(), 0, set()
    for space, other in (
        (taeda, torch),
        (taeda.nn.functional, torch.nn.functional),
        (taeda.linalg, torch.linalg),
        (taeda.Tensor, torch.Tensor),
    ):
        for function, stand_in in theirs.items():
            name = getattr(function, "__name__", "")
            mine = getattr(space, name, None)
            if getattr(other, name, None) is not function or mine not in ours:
                continue
            try:
                assert ours[mine](*[0] * required(inspect.signature(stand_in))) == -1
                taken += 1
            except TypeError:
                refused.add(name)
    assert refused <= STRICTER and taken > 500


def test_stand_ins_refuse_other_arguments() -> None:
    ours = taeda.overrides.get_testing_overrides()
    assert ours[taeda.add](1, 2, alpha=3) == -1
    assert ours[taeda.nn.functional.linear](1, 2) == -1
    for call in (
        lambda: ours[taeda.add](1),
        lambda: ours[taeda.add](1, 2, beta=3),
        lambda: ours[taeda.nn.functional.linear](1),
    ):
        with pytest.raises(TypeError):
            call()
    assert set(ours) <= {
        f for fs in taeda.overrides.get_overridable_functions().values() for f in fs
    }


class Sub(taeda.Tensor):
    """A subclass that overrides nothing."""


class Like:
    """No tensor, but takes every function over."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func


def test_all_overridable_functions_have_a_stand_in() -> None:
    overridable = taeda.overrides.get_overridable_functions()
    listed = {f for functions in overridable.values() for f in functions}
    assert listed == set(taeda.overrides.get_testing_overrides())
    assert taeda.Tensor.__add__ in listed and taeda.Tensor.shape.__get__ in listed
    assert taeda.linalg.LinAlgError not in listed
    assert not any(f in listed for f in taeda.overrides.get_ignored_functions())


def test_signatures_of_stand_ins() -> None:
    ours = taeda.overrides.get_testing_overrides()
    for function, text in (
        (taeda.Tensor.greater, "(self, other)"),
        (taeda.Tensor.data_ptr, "(self)"),
        (taeda.Tensor.shape.__get__, "(self)"),
    ):
        assert str(inspect.signature(ours[function])) == text


def test_functions_ask_what_is_like_a_tensor() -> None:
    functions = (taeda.is_complex, taeda.numel, taeda.get_device, taeda.is_nonzero)
    for function in (*functions, taeda.fft.fftshift, taeda.unique):
        assert function(Like()) is function


def test_results_of_methods_keep_the_subclass() -> None:
    x = taeda.tensor([5, 6, 7]).as_subclass(Sub)
    assert [type(item) for item in x] == [Sub] * 3
    assert [int(item) for item in x] == [5, 6, 7]
    for result in (x.unique(), x.nonzero(), x.unique(return_counts=True)[1]):
        assert type(result) is Sub
