"""Kernels by key, rules by class, and operators of Triton kernels."""

from __future__ import annotations

import importlib

import pytest
import taeda
import torch

BOTH = pytest.mark.parametrize("t", [taeda, torch], ids=["taeda", "torch"])


@BOTH
def test_kernels_by_key(t) -> None:
    get = t.library.get_kernel
    kernel = get("aten::neg", "CPU")
    keys = t._C.DispatchKeySet(t._C.DispatchKey.CPU)
    x = t.ones(2, requires_grad=True)
    result = kernel.call_boxed(keys, x)
    assert result.tolist() == [-1, -1] and not result.requires_grad
    for name, key, kind in (
        ("aten::no_such", "CPU", RuntimeError),
        ("aten::neg", "NoKey", ValueError),
    ):
        with pytest.raises(kind, match="does not exist|Invalid dispatch key"):
            get(name, key)
    with pytest.raises(NotImplementedError, match="never be called"):
        t.library.fallthrough_kernel()


@BOTH
def test_rules_of_modes_and_classes(t) -> None:
    modes = importlib.import_module(f"{t.__name__}.utils._python_dispatch")

    class Mode(modes.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    class Five(t.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return t.full((2,), 5.0)

    @t.library.custom_op(
        "rules_by_class::copied", mutates_args=(), schema="(Tensor x) -> Tensor"
    )
    def copied(x):
        return x.clone()

    library = t.library.Library("rules_by_class", "FRAGMENT")
    register = t.library.register_torch_dispatch
    register(
        "rules_by_class::copied",
        Mode,
        lambda mode, func, types, args, kwargs: args[0] + 1,
        lib=library,
    )

    @register("rules_by_class::copied", Five)
    def _(cls, func, types, args, kwargs):
        return t.zeros(2)

    x = t.ones(2)
    assert copied(x).tolist() == [1, 1]
    with Mode():
        assert copied(x).tolist() == [2, 2] and t.neg(x).tolist() == [-1, -1]
    five = t.Tensor._make_wrapper_subclass(Five, (2,), dtype=t.float32)
    assert copied(five).tolist() == [0, 0] and t.neg(five).tolist() == [5, 5]


def test_an_operator_of_the_library_has_rules_too() -> None:
    from taeda.utils._python_dispatch import BaseTorchDispatchMode

    class Mode(BaseTorchDispatchMode):
        pass

    @taeda.library.register_torch_dispatch("aten::neg", Mode)
    def _(mode, func, types, args, kwargs):
        return args[0] + 1

    with Mode():
        assert taeda.neg(taeda.ones(1)).item() == 2
    assert taeda.neg(taeda.ones(1)).item() == -1


def test_operators_of_triton_kernels() -> None:
    t = taeda

    @t.library.triton_op(
        "rules_by_class::twice", mutates_args=(), schema="(Tensor x) -> Tensor"
    )
    def twice(x):
        return x * 2

    assert twice(t.ones(1)).item() == 2
    with pytest.raises(RuntimeError, match="annotated with triton.jit"):
        t.library.wrap_triton(3)


def test_registering_twice_can_be_forbidden() -> None:
    with taeda.library._scoped_library("twice_forbidden", "DEF") as library:
        library.define("f(Tensor x) -> Tensor")
        library.impl("f", lambda x: x + 1, "CPU")
        with pytest.raises(RuntimeError, match="already a kernel"):
            library.impl("f", lambda x: x + 2, "CPU", allow_override=False)
        fall = taeda.library.fallthrough_kernel
        library.impl("f", fall, "Meta")
        with pytest.raises(NotImplementedError, match="passed over"):
            library.impl("f", fall, "CPU")
        assert taeda.ops.twice_forbidden.f(taeda.ones(1)).item() == 2


def test_a_fallback_answers_where_there_is_no_kernel() -> None:
    own = taeda.library.Library("falls", "DEF")
    own.define("back(Tensor x, float y=2.0, *, bool up=False) -> Tensor")
    own.define("two(Tensor x) -> (Tensor, Tensor)")
    calls = []

    def answer(op, *args, **kwargs):
        calls.append((str(op), args[1:], kwargs))
        return args[0] + 1 if "back" in str(op) else (args[0], args[0] * 2)

    x = taeda.ones(2)
    library = taeda.library.Library("_", "IMPL")
    library.fallback(answer, "CPU")
    assert taeda.ops.falls.back(x, 3.0, up=True).tolist() == [2, 2]
    assert taeda.ops.falls.back(x).tolist() == [2, 2]
    assert [t.tolist() for t in taeda.ops.falls.two(x)] == [[1, 1], [2, 2]]
    assert (x + x).tolist() == [2, 2]
    name = "falls.back.default"
    assert calls[:2] == [(name, (3.0,), {"up": True}), (name, (), {})]
    library._destroy()
    with pytest.raises(NotImplementedError, match="falls::back"):
        taeda.ops.falls.back(x)


def test_fallbacks_that_are_refused() -> None:
    with pytest.raises(RuntimeError, match='global namespace "_" but it is falls'):
        taeda.library.Library("falls", "IMPL").fallback(lambda op: None, "CPU")
    library = taeda.library.Library("_", "IMPL")
    with pytest.raises(ValueError, match="expected a dispatch key"):
        library.fallback(lambda op: None)
    with pytest.raises(TypeError, match="callable"):
        library.fallback(3, "CPU")
    for key in ("AutocastCPU", "Autograd"):
        with pytest.raises(NotImplementedError, match=key):
            library.fallback(lambda op: None, key)
