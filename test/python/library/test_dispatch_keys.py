"""Sets of dispatch keys, autocast's kernels by device, and contexts of fake kernels."""

from __future__ import annotations

import pytest
import taeda
from taeda._C import DispatchKey, DispatchKeySet, _ExcludeDispatchKeyGuard
from taeda._subclasses.fake_tensor import DynamicOutputShapeException, FakeTensorMode
from taeda.fx.experimental.symbolic_shapes import ShapeEnv
from taeda.library import Library, _scoped_library, get_ctx


def test_sets_of_keys() -> None:
    cpu, cuda = (DispatchKeySet(DispatchKey[f"Autocast{d}"]) for d in ("CPU", "CUDA"))
    both = cpu | cuda
    assert both.has(DispatchKey.AutocastCPU) and both - cuda == cpu
    assert both & cuda == cuda and hash(both - cpu) == hash(cuda)
    assert cpu.add(DispatchKey.AutocastCUDA) == both != cpu
    assert both.remove(DispatchKey.AutocastCPU) == cuda
    assert repr(both) == "DispatchKeySet(AutocastCPU, AutocastCUDA)"


def test_autocast_is_passed_over_in_a_block() -> None:
    keys = DispatchKeySet(DispatchKey.AutocastCPU)
    with taeda.autocast("cpu", dtype=taeda.bfloat16):
        with _ExcludeDispatchKeyGuard(keys):
            assert not taeda.is_autocast_enabled("cpu")
            assert (taeda.ones(2, 2) @ taeda.ones(2, 2)).dtype == taeda.float32
        assert (taeda.ones(2, 2) @ taeda.ones(2, 2)).dtype == taeda.bfloat16
    with pytest.raises(NotImplementedError, match="Autograd"):
        _ExcludeDispatchKeyGuard(DispatchKeySet(DispatchKey.Autograd))


def test_kernels_of_autocast_by_device() -> None:
    with _scoped_library("cast_by_device", "DEF") as library:
        library.define("f(Tensor x) -> Tensor")
        library.impl("f", lambda x: x.clone(), "CPU")
        f = taeda.ops.cast_by_device.f

        def lowered(x):
            with taeda.autocast("cpu", enabled=False):
                return f(x.to(taeda.bfloat16))

        library.impl("f", lambda x: 1 / 0, "AutocastCUDA")
        library.impl("f", lowered, "AutocastCPU")
        library.impl("f", lambda x: 1 / 0, "AutocastXPU")
        assert f(taeda.ones(1)).dtype == taeda.float32
        with taeda.autocast("cpu", dtype=taeda.bfloat16):
            assert f(taeda.ones(1)).dtype == taeda.bfloat16


def test_fake_kernels_ask_for_sizes_that_data_decide() -> None:
    assert get_ctx() is None
    library = Library("sized_by_data", "DEF")
    library.define("chosen(Tensor x) -> Tensor")
    library.impl("chosen", lambda x: x[x > 0], "CPU")

    def fake(x):
        return x.new_empty(get_ctx().new_dynamic_size(max=100))

    library.impl("chosen", fake, "Meta")
    chosen = taeda.ops.sized_by_data.chosen
    assert chosen(taeda.tensor([1.0, -1.0])).tolist() == [1]
    with FakeTensorMode(
        shape_env=ShapeEnv(allow_dynamic_output_shape_ops=True)
    ) as mode:
        out = chosen(mode.from_tensor(taeda.ones(3)))
    assert isinstance(out.shape[0], taeda.SymInt)
    with FakeTensorMode() as mode, pytest.raises(DynamicOutputShapeException):
        chosen(mode.from_tensor(taeda.ones(3)))
    assert get_ctx() is None
    library._destroy()
