"""The records that the built library holds say what the files of aten/ops say."""

from __future__ import annotations

import json
import subprocess

import pytest
import taeda
from devtool.shell import ROOT, python

from tools.codegen.emit_info import expression_variants
from tools.codegen.expr import to_text
from tools.codegen.model import load_operators
from tools.codegen.record_types import (
    Autocast,
    Folded,
    FoldedOfOthers,
    Map,
    MapOfOthers,
    Pointwise,
    PointwiseOfOthers,
    Reduction,
)

FORMULAS = (
    *(Pointwise, PointwiseOfOthers, Reduction, Folded, FoldedOfOthers, Map),
    MapOfOthers,
)
OPERATORS = load_operators(ROOT / "aten" / "ops")


def overload_of(op):
    """The operator as `taeda.ops` has it."""
    packet = getattr(taeda.ops.aten, op.schema.base)
    return getattr(packet, op.schema.overload or "default")


def test_every_operator_has_its_record() -> None:
    for op in OPERATORS:
        record = overload_of(op).record
        assert record.schema == str(op.schema)
        assert record.form == op.form
        assert record.family == op.overload.family
        assert {a.name for a in record.arguments} == {
            a.name for a in op.schema.arguments
        }
        written = {a.name for a in record.arguments if hasattr(a, "written")}
        assert written == {a.name for a in op.schema.mutable_args}
        assert set(op.overload.tags) <= set(record.tags)
        cast = op.overload.autocast if op.form == "functional" else Autocast()
        assert (record.autocast.cpu, record.autocast.cuda) == (cast.cpu, cast.cuda)
    assert len(OPERATORS) > 1700


def test_expressions_are_printed_alike() -> None:
    """Both languages hold the same trees: the texts of one are those of the other."""
    count = 0
    for op in OPERATORS:
        if op.form != "functional":
            continue
        expected = [
            (choice, role, kind, to_text(expr))
            for choice, sections in expression_variants(op)
            for (role, kind, _), expr in sections.items()
        ]
        found = [
            (getattr(e, "choice", ""), e.role, e.kind, e.text)
            for e in overload_of(op).record.expressions
        ]
        assert found == expected, op.ident
        formula = isinstance(op.overload.body, FORMULAS)
        assert bool(expected) == formula, op.ident
        count += len(found)
    print(f"{count} expressions")
    assert count > 700


def test_record_of_an_operator() -> None:
    add = taeda.ops.aten.add.Tensor
    assert [a.name for a in add.record.arguments] == ["self", "other", "alpha"]
    assert add.record.arguments[2].default == "1"
    assert add.record.arguments[2].keyword_only
    texts = {e.kind: e.text for e in add.record.expressions if e.role == "forward"}
    assert texts["float"] == "self + alpha * other"
    assert "float32" in add.record.dtypes.accepts
    assert add.tags == [taeda.Tag.pointwise]
    assert taeda.ops.aten.add_.Tensor.tags == [taeda.Tag.inplace, taeda.Tag.pointwise]
    assert taeda.ops.aten.nonzero.default.tags == [taeda.Tag.dynamic_output_shape]
    assert repr(taeda.Tag.pointwise) == "<Tag.pointwise: 16>"


def test_formulas_by_choice() -> None:
    """A formula for each value of a parameter; numbers that are no arguments."""
    found = taeda.ops.aten.gelu.default.record.expressions
    forward = {e.choice: e.text for e in found if e.role == "forward"}
    assert list(forward) == ["approximate: none", "approximate: tanh"]
    assert "erf(" in forward["approximate: none"]
    assert "tanh(" in forward["approximate: tanh"]
    (loss,) = taeda.ops.aten.celu.default.record.expressions[:1]
    assert "expm1(self * slope)" in loss.text
    losses = taeda.ops.aten.mse_loss.default
    assert losses.record.axes == "..., ... -> ... /reduction"
    assert losses.tags == []


def test_record_of_an_index_map() -> None:
    record = taeda.ops.aten.flip.default.record
    [formula] = record.expressions
    assert (record.family, formula.role) == ("map", "element")
    mirrored = "size(self, axis) - 1 - at(axis) if axis in dims else at(axis)"
    assert formula.text == f"self[axis: {mirrored}]"


def test_record_of_a_reduction_with_several_accumulators() -> None:
    record = taeda.ops.aten.argmax.default.record
    assert (record.family, record.axes) == ("reduction", "* @dim*! -> *")
    texts = {
        (e.role, getattr(e, "accumulator", "")): e.text for e in record.expressions
    }
    assert texts["map", "place"] == "index"
    first = "a.value >= b.value or is_nan(a.value)"
    assert texts["combine", "place"] == f"a.place if {first} else b.place"
    assert texts["finish", ""] == "place"


def test_record_of_a_scan() -> None:
    for name, step in (("cumsum", "1"), ("_reverse_cumsum", "-1")):
        record = getattr(taeda.ops.aten, name).default.record
        texts = {e.role: e.text for e in record.expressions}
        assert record.family == "scan"
        assert texts == {
            **{"map": "self", "combine": "a + b", "finish": "acc"},
            "step": step,
        }


def test_record_of_a_composite_with_an_expression() -> None:
    record = taeda.ops.aten.relu6.default.record
    [formula] = record.expressions
    assert (record.family, formula.role) == ("pointwise", "forward")
    assert formula.text == "minimum(maximum(self, 0), 6)"


def test_operators_of_libraries_have_records() -> None:
    library = taeda.library.Library("record_test", "DEF")
    library.define("twice(Tensor(a!) x, int[2] size=[1, 2], *, str? how=None) -> ()")
    record = taeda.ops.record_test.twice.default.record
    assert record.family == "user"
    assert [a.type for a in record.arguments] == ["Tensor", "int[2]", "str?"]
    assert record.arguments[0].alias == "a"
    assert record.results == []


@pytest.mark.parametrize("names", [["exp"], ["add.Tensor", "add.out"]])
def test_the_tool_prints_json(names) -> None:
    command = [python(), ROOT / "tools" / "dev", "records", *names]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    shown = [row["name"] for row in json.loads(run.stdout)]
    assert shown == [f"aten::{n}" for n in names] or {*names} == {"exp"}
    assert "aten::exp" in shown or len(shown) == 2


def test_the_tool_knows_no_such_name() -> None:
    command = [python(), ROOT / "tools" / "dev", "records", "no_such_operator"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 1
