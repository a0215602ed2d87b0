"""Types of nodes, of tensors and of arguments, against PyTorch's."""

from __future__ import annotations

import typing
from itertools import product

import pytest
import taeda
import torch.fx.operator_schemas as theirs
import torch.fx.tensor_type as their_types
from taeda.fx import annotate, operator_schemas, tensor_type

List, Tuple, Union = typing.List, typing.Tuple, typing.Union  # noqa: UP006
TYPES = [
    int,
    float,
    bool,
    str,
    typing.Any,
    type(None),
    Union[int, None],
    Union[int, str],
    tuple,
    list[int],
    List[int],
    List[float],
    tuple[int, int],
    Tuple[int],
    Tuple[int, float],
]


@pytest.mark.parametrize("signature", TYPES)
def test_arguments_match_as_in_pytorch(signature):
    for argument in TYPES:
        got = operator_schemas.type_matches(signature, argument)
        assert got == theirs.type_matches(signature, argument), argument


def test_dtypes_are_numbers():
    assert operator_schemas.type_matches(int, taeda.dtype)
    assert operator_schemas.type_matches(taeda.Tensor, taeda.nn.Parameter)


@pytest.mark.parametrize(
    "kinds",
    [
        int,
        [int, int],
        [int, float],
        (int, bool),
        [bool, int],
        [],
        (),
        [typing.Any, int],
    ],
)
def test_hints_are_pytorchs(kinds):
    assert operator_schemas.create_type_hint(kinds) == theirs.create_type_hint(kinds)


def _types(module) -> list:
    kinds = [module.Dyn, int, str]
    sizes = [(1, 2), (1, module.Dyn), (module.Dyn, module.Dyn), (1, 2, 3), (2, 2)]
    return kinds + [module.TensorType(s) for s in sizes]


@pytest.mark.parametrize("relation", ["is_consistent", "is_more_precise"])
def test_relations_of_tensor_types(relation):
    ours, wanted = (
        [getattr(m, relation)(a, b) for a, b in product(_types(m), repeat=2)]
        for m in (tensor_type, their_types)
    )
    assert ours == wanted
    assert tensor_type.TensorType[2, 3] == tensor_type.TensorType((2, 3))


def test_a_node_has_one_type():
    class Annotated(taeda.nn.Module):
        def forward(self, x):
            y = annotate.annotate(x + 1, taeda.Tensor)
            return annotate.annotate(3, int) * y

    graph = taeda.fx.symbolic_trace(Annotated()).graph
    assert [node.type for node in graph.nodes].count(taeda.Tensor) == 1
    proxy = taeda.fx.Proxy(next(iter(graph.nodes)))
    annotate.annotate(proxy, int)
    with pytest.raises(RuntimeError, match="already has a type, <class 'int'>"):
        annotate.annotate(proxy, str)


def test_functions_are_annotated():
    from taeda.fx import traceback

    @traceback.annotate_fn({"stage": 1})
    def stage(x):
        return x.sin()

    class Staged(taeda.nn.Module):
        def forward(self, x):
            return stage(x).cos()

    with traceback.preserve_node_meta():
        program = taeda.export.export(Staged(), (taeda.ones(2),))
    stages = {n.name: n.meta.get("custom") for n in program.graph.nodes}
    assert stages["sin"] == {"stage": 1} and not stages["cos"]
