"""Modules that PyTorch calls private and libraries import all the same."""

from __future__ import annotations

import operator

import numpy as np
import pytest
import taeda
from taeda import _decomp, _jit_internal
from taeda.fx.experimental.proxy_tensor import make_fx

aten = taeda.ops.aten


def targets(graph) -> list:
    skipped = (operator.getitem,)
    calls = (n.target for n in graph.graph.nodes if n.op == "call_function")
    return [t for t in calls if t not in skipped]


def test_decompositions_of_records() -> None:
    table = _decomp.get_decompositions([aten._softmax, aten.mm.default])
    assert [*table] == [aten._softmax.default]
    x = taeda.randn(3, 4)
    traced = make_fx(lambda x: aten._softmax(x, 1, False), table)(x)
    assert aten._softmax.default not in targets(traced)
    assert len(targets(traced)) > 2
    taeda.testing.assert_close(traced(x), x.softmax(1))


@pytest.fixture
def table():
    return {}


def test_programs_register_their_own(table) -> None:
    @_decomp.register_decomposition(aten.tanh, table)
    def tanh(x):
        return 2 * taeda.sigmoid(2 * x) - 1

    assert table[aten.tanh.default] is tanh
    x = taeda.randn(5)
    traced = make_fx(taeda.tanh, table)(x)
    assert aten.tanh.default not in targets(traced)
    taeda.testing.assert_close(traced(x), x.tanh())
    with pytest.raises(RuntimeError, match="duplicate registrations"):
        _decomp.register_decomposition(aten.tanh.default, table)(tanh)
    _decomp.remove_decompositions(table, [aten.tanh])
    assert aten.tanh.default not in table


def test_a_global_decomposition_comes_first() -> None:
    @_decomp.register_decomposition([aten.logit.default])
    def logit(x, eps=None):
        return taeda.log(x / (1 - x))

    try:
        table = _decomp.get_decompositions([aten.logit])
        assert table[aten.logit.default] is logit
        assert _decomp.get_decompositions([aten.logit], "pre_autograd") == {}
    finally:
        del _decomp.decomposition_table[aten.logit.default]


@pytest.mark.parametrize("wrong", ["aten.add", 3, taeda.add])
def test_what_is_no_operator_is_refused(wrong) -> None:
    with pytest.raises(TypeError, match="expected an operator"):
        _decomp.register_decomposition(wrong)


def test_core_operators_stay_whole() -> None:
    table = _decomp.core_aten_decompositions()
    assert aten.linear.default in table and aten.mm.default not in table


def test_boolean_dispatch() -> None:
    both = _jit_internal.boolean_dispatch(
        "flag", 1, False, lambda x, flag: "yes", lambda x, flag=False: "no", "m", "both"
    )
    calls = both(1), both(1, True), both(1, flag=True), both(1, flag=False)
    assert calls == ("no", "yes", "yes", "no")
    assert (both.__module__, both.__name__) == ("m", "both")


def _function(a, b=1, *rest, key=None):
    return a


@pytest.mark.parametrize("subject", [_function, len, operator.add, taeda.nn.Linear])
def test_names_of_arguments(subject) -> None:
    from torch._jit_internal import get_callable_argument_names as theirs

    assert _jit_internal.get_callable_argument_names(subject) == theirs(subject)


class Named:
    pass


@pytest.mark.parametrize("mangled", [True, False])
def test_qualified_names(mangled) -> None:
    from torch._jit_internal import _qualified_name as theirs

    for subject in (Named, _function):
        ours = _jit_internal._qualified_name(subject, mangled)
        assert ours == theirs(subject, mangled)
    with pytest.raises(RuntimeError, match="Could not get name"):
        _jit_internal._qualified_name(3)


def test_triton_is_there_only_with_a_device() -> None:
    from taeda.utils import _triton

    assert _triton.has_triton() <= _triton.has_triton_package()
    if not _triton.has_triton_package():
        assert _triton.get_triton_version((7, 1)) == (7, 1)


def test_vmap_by_its_old_place() -> None:
    from taeda._vmap_internals import vmap

    assert vmap is taeda.func.vmap


SUMMARIES = {
    "scalar": ("a", 2.5),
    "histogram": ("h", np.linspace(0, 1, 50), [0.0, 0.3, 0.7, 1.0]),
    "histogram_raw": ("r", 0, 1, 3, 1.5, 2.5, [0.5, 1.0], [1, 2]),
    "text": ("x", "**bold**"),
    "pr_curve": ("p", np.array([0, 1, 1, 0]), np.array([0.2, 0.7, 0.4, 0.9]), 5),
    "pr_curve_raw": ("c", *np.random.default_rng(0).random((6, 5), np.float32), 5),
    "custom_scalars": ({"losses": {"both": ["Multiline", ["a", "b"]]}},),
}


@pytest.mark.parametrize("name", SUMMARIES)
def test_summaries_are_those_of_pytorch(name) -> None:
    from taeda.utils.tensorboard import summary
    from torch.utils.tensorboard import summary as theirs

    arguments = SUMMARIES[name]
    ours = getattr(summary, name)(*arguments).SerializeToString()
    wanted = getattr(theirs, name)(*arguments).SerializeToString()
    assert type(theirs.scalar("a", 1)).FromString(ours) == type(
        theirs.scalar("a", 1)
    ).FromString(wanted)


def test_a_tensor_is_written_as_pytorch_does() -> None:
    import torch
    from taeda.utils.tensorboard.summary import tensor_proto
    from torch.utils.tensorboard.summary import tensor_proto as theirs

    ours = tensor_proto("t", taeda.arange(6.0).reshape(2, 3)).SerializeToString()
    wanted = theirs("t", torch.arange(6.0).reshape(2, 3))
    assert type(wanted).FromString(ours) == wanted


def test_hyperparameters_are_those_of_pytorch() -> None:
    from taeda.utils.tensorboard.summary import hparams
    from torch.utils.tensorboard.summary import hparams as theirs

    given = {"lr": 0.1, "name": "adam", "layers": 3, "bias": True}
    for ours, wanted in zip(
        hparams(given, {"loss": 1.0}), theirs(given, {"loss": 1.0}), strict=True
    ):
        kind = type(wanted)
        read = kind.FromString(ours.SerializeToString())
        assert read.value[0].tag == wanted.value[0].tag
        assert read.value[0].metadata.plugin_data.plugin_name == "hparams"


def test_pictures_side_by_side() -> None:
    from taeda.utils.tensorboard._convert_np import make_np
    from taeda.utils.tensorboard._utils import make_grid
    from torch.utils.tensorboard._utils import make_grid as theirs

    pictures = np.random.default_rng(1).random((5, 3, 4, 6))
    assert np.array_equal(make_grid(pictures, 3), theirs(pictures, 3))
    with pytest.raises(AssertionError):
        make_grid(pictures[0])
    assert make_np(taeda.ones(2, 2)).tolist() == [[1, 1], [1, 1]]
