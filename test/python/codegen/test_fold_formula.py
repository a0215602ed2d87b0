"""Formulas of reductions and scans: what they may say, where mistakes are reported."""

from __future__ import annotations

import pytest

from tools.codegen.errors import CodegenErrors
from tools.codegen.expr import to_text
from tools.codegen.fold_formula import formulas_of, number_names, step_of
from tools.codegen.record_types import Folded, FoldedOfOthers, PointwiseOfOthers
from tools.codegen.records import load_text

RECORD = """
- name: pick
  family: {}
  doc: Picks.
  overloads:
    - schema: "pick(Tensor self, int dim, int? k) -> (Tensor values, Tensor indices)"
      fold: {}
      {}
"""
PAIR = '{map: {v: "self", i: "index"}, combine: {v: "a.v + b.v", i: "b.i"}}'


def load(fold: str, family: str = "reduction", made_by: str = "cpu: pick_cpu"):
    [record] = load_text(RECORD.format(family, fold, made_by), "ops.yaml")
    return record.overloads[0]


def test_accumulators_have_kinds() -> None:
    overload = load(PAIR)
    assert isinstance(overload.body, Folded)
    [formula] = formulas_of(overload)
    assert (formula.accumulators, formula.kinds) == (("v", "i"), ("float", "int"))
    assert [to_text(tree) for tree in formula.finish] == ["v", "i"]
    assert number_names(overload) == ["v", "i", "a.v", "a.i", "b.v", "b.i"]
    assert formula.init == () and step_of(overload) is None


def test_an_accumulator_is_as_wide_as_what_parts_become() -> None:
    fold = '{map: {v: "self", i: "1"}, combine: {v: "a.v", i: "a.i / b.i"}}'
    [formula] = formulas_of(load(fold))
    assert formula.kinds == ("float", "float")


def test_scans_have_a_direction() -> None:
    assert to_text(step_of(load(PAIR, "scan"))) == "1"
    reverse = load(PAIR, "scan", "cpu: pick_cpu\n      reverse: true")
    assert to_text(step_of(reverse)) == "-1"


def test_call_makes_a_composite() -> None:
    assert isinstance(load(PAIR, made_by="call: pick").body, FoldedOfOthers)
    [record] = load_text(
        """
- name: twice
  family: pointwise
  doc: Twice.
  overloads:
    - schema: "twice(Tensor self, Scalar? by=None) -> Tensor"
      expr: "self + self if by is None else self * by"
      call: twice
""",
        "ops.yaml",
    )
    assert isinstance(record.overloads[0].body, PointwiseOfOthers)


@pytest.mark.parametrize(
    ("fold", "message"),
    [
        ('{combine: "a + b"}', "1 values for 2 results"),
        (PAIR.replace('i: "index"', 'i: "indez"'), "unknown name 'indez'"),
        (PAIR.replace('"b.i"', '"b.j"'), "unknown name 'b.j' (did you mean"),
        (PAIR.replace('"b.i"', '"c.i"'), "unknown name 'c.i'"),
        (PAIR.replace('"b.i"', '"i"'), "unknown name 'i'"),
        (PAIR.replace('"index"', '"at(0)"'), "only index maps look at their place"),
        (PAIR.replace(', i: "index"', ""), "v given for v, i"),
        (PAIR.replace("v:", "self:"), "no accumulator can be named 'self'"),
        (PAIR.replace("v:", "count:"), "no accumulator can be named 'count'"),
        (PAIR[:-1] + ', init: {v: "0"}}', "v given for v, i"),
        (PAIR[:-1] + ', finish: ["v", "self"]}', "unknown name 'self'"),
        (PAIR[:-1] + ', finish: ["v"]}', "1 values for 2 results"),
    ],
)
def test_mistakes_have_their_place(fold: str, message: str) -> None:
    with pytest.raises(CodegenErrors, match="^ops.yaml:7: ") as caught:
        load(fold)
    assert message in str(caught.value)


def test_only_scans_have_a_direction() -> None:
    with pytest.raises(CodegenErrors, match="only a scan"):
        load(PAIR, made_by="cpu: pick_cpu\n      reverse: true")
