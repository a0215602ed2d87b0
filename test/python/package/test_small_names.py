"""Public names of several modules, each with what it does, against PyTorch's."""

from __future__ import annotations

import io
import time

import pytest
import taeda
import torch


def test_types_of_results_by_the_names_of_their_out_forms() -> None:
    ours, theirs = taeda.return_types, torch.return_types
    names = {kind.__name__ for kind in theirs.all_return_types}
    assert all(hasattr(ours, name) for name in names)
    assert {kind.__name__ for kind in ours.all_return_types} <= names
    x = taeda.eye(2)
    written = taeda.max(x, 0, out=(taeda.empty(0), taeda.empty(0, dtype=taeda.int64)))
    assert isinstance(written, ours.max_out) and written.indices.tolist() == [0, 1]


def test_trees_go_through_tuples_made_in_c() -> None:
    tree = taeda.utils._pytree
    for value in (taeda.max(taeda.eye(2), 0), time.gmtime(0)):
        assert tree.is_structseq(value) and tree.is_structseq(type(value))
        assert tree.is_structseq_instance(value)
        assert tree.is_structseq_class(type(value))
        assert not tree.is_structseq_instance(type(value))
    for value in ((1, 2), taeda.ones(1), tuple, int):
        theirs = torch.utils._pytree.is_structseq(value)
        assert tree.is_structseq(value) is theirs is False
    taeda.return_types.pytree_register_structseq(time.struct_time)
    years = tree.tree_map(lambda n: n + 1, time.gmtime(0))
    assert isinstance(years, time.struct_time) and years.tm_year == 1971


def test_shapes_of_trees_as_text() -> None:
    for value in ([1, (2, {"a": 3})], {}, 5, {"b": [], "a": None}):
        texts = [
            library.utils._pytree.treespec_pprint(
                library.utils._pytree.tree_structure(value)
            )
            for library in (taeda, torch)
        ]
        assert texts[0] == texts[1]


def test_kinds_of_devices_of_dlpack() -> None:
    ours, theirs = taeda.utils.dlpack.DLDeviceType, torch.utils.dlpack.DLDeviceType
    assert {k: int(v) for k, v in ours.__members__.items()} == {
        k: int(v) for k, v in theirs.__members__.items()
    }
    assert taeda.ones(1).__dlpack_device__()[0] == ours.kDLCPU


def test_backends_that_are_not_there_say_so() -> None:
    for library in (taeda, torch):
        backends = library.backends
        assert backends.cusparselt.is_available() is False
        assert backends.cusparselt.version() is None
        assert backends.cusparselt.get_max_alg_id() is None
        assert backends.kleidiai.is_available() is False
        with backends.miopen.flags(immediate=True):
            assert backends.miopen.immediate is True
        assert backends.miopen.immediate is False
    assert taeda.backends.nnpack.is_available() is False
    before = taeda.backends.nnpack.set_flags(False)
    assert before == (True,) == torch.backends.nnpack.set_flags(True)
    assert taeda.backends.nnpack.set_flags(True) == (False,)
    assert taeda.version.rocm is torch.version.rocm is None


def test_a_step_that_is_wrapped_by_hand_calls_hooks() -> None:
    for library in (taeda, torch):
        seen: list[str] = []

        class Own(library.optim.Optimizer):
            def __init__(self, params):
                super().__init__(params, {})

            def step(self, closure=None, seen=seen):
                seen.append("step")

        Own.step = library.optim.Optimizer.profile_hook_step(Own.step)
        Own.step.hooked = True
        optimizer = Own([library.ones(1)])
        optimizer.register_step_post_hook(lambda *_, seen=seen: seen.append("after"))
        optimizer.step()
        assert seen == ["step", "after"]


def test_a_ctx_for_tests_keeps_what_it_is_given() -> None:
    for library in (taeda, torch):
        ctx = library.autograd.function.FunctionCtx()
        ctx.save_for_backward(1, 2)
        ctx.mark_dirty(3)
        ctx.mark_non_differentiable(4)
        ctx.set_materialize_grads(False)
        kept = ctx.to_save, ctx.dirty_tensors, ctx.non_differentiable
        assert kept == ((1, 2), (3,), (4,)) and ctx.materialize_grads is False
    assert issubclass(taeda.autograd.NestedIOFunction, taeda.autograd.Function)


def test_progress_where_tqdm_is_not_installed() -> None:
    from taeda._progress import Progress

    out = io.StringIO()
    assert list(Progress(range(4), file=out, desc="four")) == [0, 1, 2, 3]
    assert out.getvalue() == "\rfour 25%\rfour 50%\rfour 75%\rfour 100%\n"
    out = io.StringIO()
    with Progress(file=out) as bar:
        bar.update(3)
        bar.set_description("more")
        bar.update(2)
    assert out.getvalue() == "\r3\rmore 5\n" and bar.n == 5
    with Progress([1], disable=True, file=out) as bar:
        bar.update()
    assert out.getvalue().endswith("5\n")
    assert callable(taeda.hub.tqdm) and callable(taeda.utils.model_zoo.tqdm)
    with pytest.raises(AttributeError, match="taeda.hub.*no_such"):
        taeda.hub.no_such  # noqa: B018


def test_errors_of_accelerators_can_be_caught() -> None:
    for library in (taeda, torch):
        assert issubclass(library.AcceleratorError, RuntimeError)
        assert issubclass(library.FatalError, Exception)
        assert not issubclass(library.FatalError, RuntimeError)
        assert library.AcceleratorError.__module__ == library.__name__


@pytest.mark.parametrize(
    "name",
    "int_repr q_per_channel_axis q_per_channel_scales q_per_channel_zero_points"
    " q_scale q_zero_point qscheme".split(),
)
def test_questions_of_quantized_tensors_are_refused_by_others(name: str) -> None:
    for library in (taeda, torch):
        with pytest.raises(NotImplementedError, match=f"Could not run 'aten::{name}'"):
            getattr(library.ones(2), name)()


def test_a_list_to_dequantize_has_quantized_tensors() -> None:
    for library in (taeda, torch):
        with pytest.raises(NotImplementedError, match="aten::dequantize.tensors"):
            library.dequantize([library.ones(2)])


def test_tensors_by_the_name_of_their_parameter() -> None:
    for library in (taeda, torch):
        x = library.ones(2, 3)
        assert library.numel(input=x) == 6
        assert library.is_floating_point(input=x)
        assert not library.is_complex(input=x)
        assert library.is_nonzero(input=x[0, 0])
        assert library.get_device(input=x) == -1
        assert library.fft.fftshift(input=x).shape == x.shape
        assert x.new(storage=x.storage()).tolist() == [1] * 6


def test_guards_that_mean_something_outside_of_python() -> None:
    class Entry:
        def __init__(self, guard_type: str, is_global: bool) -> None:
            self.guard_type, self.is_global = guard_type, is_global

    kinds = ("GLOBAL_STATE", "SHAPE_ENV", "TENSOR_MATCH", "ID_MATCH")
    entries = [Entry(kind, is_global) for kind in kinds for is_global in (True, False)]
    ours, theirs = (
        library.compiler.keep_portable_guards_unsafe(entries)
        for library in (taeda, torch)
    )
    assert ours == theirs


def test_a_tensor_that_keeps_its_shape_stays_within_the_storage() -> None:
    for library in (taeda, torch):
        x = library.ones(2)
        with pytest.raises(RuntimeError, match="out of bounds for storage of size 8"):
            x.set_(x.untyped_storage(), 1, (2,), (1,))
        assert x.set_(x.untyped_storage(), 1, (1,), (1,)).tolist() == [1]
