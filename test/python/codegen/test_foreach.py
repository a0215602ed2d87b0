"""Operators of lists follow from the records of their elements, as PyTorch has them."""

from __future__ import annotations

from pathlib import Path

import pytest
import taeda

from tools.codegen.errors import CodegenErrors
from tools.codegen.model import element_of, load_operators
from tools.codegen.records import load_text

from .conftest import ROOT

OPERATORS = [
    op
    for op in load_operators(Path(ROOT, "aten", "ops"))
    if op.schema.base.startswith("_foreach_")
]
# What PyTorch has besides and we have not, other than out= forms.
ABSENT = {"_foreach_copy", "_foreach_zero"}

TWICE = """\
- name: twice
  family: pointwise
  doc: Twice self, to the power.
  dtypes: {in: float}
  foreach: FIELD
  overloads:
    - schema: "twice.Tensor(Tensor self, Tensor end, *, Scalar k=2) -> Tensor"
      forms: [inplace]
      expr: "self + end * k"
    - schema: "twice.Scalar(Tensor self, Scalar end, Scalar k=2) -> Tensor"
      expr: "self + end * k"
"""


def test_schemas_are_torchs() -> None:
    import torch

    texts = (str(s) for s in torch._C._jit_get_all_schemas())
    theirs = {
        text.partition("(")[0]: text
        for text in (t.removeprefix("aten::") for t in texts)
        if text.startswith("_foreach_") and "[] out) -> ()" not in text
    }
    ours = {op.schema.name: str(op.schema) for op in OPERATORS}
    assert ours == {n: text for n, text in theirs.items() if n not in ABSENT}
    assert len(ours) == 146


def test_all_but_norms_are_derived() -> None:
    written = {op.schema.name for op in OPERATORS if element_of(op) is None}
    assert written == {"_foreach_norm.Scalar", "_foreach_powsum.Scalar"}


def test_each_argument_is_one_of_the_elements() -> None:
    for op in OPERATORS:
        element = element_of(op)
        if element is None:
            continue
        for ours, theirs in zip(op.arguments, element.arguments, strict=False):
            # `Tensor scalars` has the numbers of all calls.
            assert ours.type.base == theirs.type.base or ours.name == "scalars"
        rest = element.arguments[len(op.arguments) :]
        assert all(a.has_default for a in rest)
        assert bool(op.schema.mutable_args) == bool(element.schema.mutable_args)


def test_the_record_at_run_time_names_the_element() -> None:
    aten = taeda.ops.aten
    for op in OPERATORS:
        packet = getattr(aten, op.schema.base)
        record = getattr(packet, op.schema.overload or "default").record
        element = element_of(op)
        if element is None:
            assert record.element is None
            continue
        assert record.family == "foreach" and record.form == op.form
        assert record.element.name == f"aten::{element.schema.name}"
        assert record.element.family == element.overload.family
    assert aten.add.Tensor.record.element is None
    tags = aten._foreach_add_.List.tags
    assert tags == [taeda.Tag.inplace] and aten._foreach_add.List.tags == []


def _schemas(field: str) -> list[str]:
    records = load_text(TWICE.replace("FIELD", field))
    return [
        str(schema)
        for record in records
        if record.name.startswith("_foreach_")
        for overload in record.overloads
        for schema in overload.schemas.values()
    ]


def test_the_field_says_which_overloads_and_names() -> None:
    assert _schemas("[ScalarList, Tensor]") == [
        "_foreach_twice.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]",
        "_foreach_twice.Tensor(Tensor[] self, Tensor other, *, Scalar k=2) -> Tensor[]",
        "_foreach_twice_.Tensor(Tensor(a!)[] self, Tensor other, *, Scalar k=2) -> ()",
    ]
    only = "{overloads: {List: ends}, forms: [functional], rename: {k: factor}}"
    assert _schemas(only) == [
        "_foreach_twice.List"
        "(Tensor[] self, Tensor[] ends, *, Scalar factor=2) -> Tensor[]"
    ]
    assert _schemas("{overloads: [Scalar], names: [thrice, twice]}") == [
        "_foreach_thrice.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]",
        "_foreach_twice.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]",
    ]


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("[Lists]", r"a\.yaml:5: expected one of 'Scalar'"),
        ("false", r"a\.yaml:5: foreach: leave the field out"),
        ("{overload: [List]}", r"a\.yaml:5: foreach: unknown field 'overload'"),
        ("[ScalarAndTensor]", r"a\.yaml:1: twice: foreach: no overload, or several"),
        ("true", r"a\.yaml:1: twice: foreach: no overload without a name"),
    ],
)
def test_mistakes_have_their_line(field: str, message: str) -> None:
    with pytest.raises(CodegenErrors, match=message):
        load_text(TWICE.replace("FIELD", field), "a.yaml")


def test_what_is_done_in_place_is_returned() -> None:
    tensors = [taeda.ones(2), taeda.ones(3)]
    assert taeda._foreach_add_(tensors, 1) is tensors
    assert taeda._foreach_zero_(self=tensors) is tensors
    assert taeda._foreach_copy_(tensors, [taeda.ones(2), taeda.ones(3)]) is tensors
    pair = tuple(tensors)
    assert taeda._foreach_lerp_(pair, tensors, 0.5) is pair
    assert taeda.ops.aten._foreach_add_.Scalar(tensors, 1) is None
    assert taeda._foreach_add_.__doc__.startswith("_foreach_add_(self")
    first = taeda._foreach_add_.__doc__.splitlines()[0]
    assert first.endswith("-> list of Tensors")
