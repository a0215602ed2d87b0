"""Formulas of index maps: what they may say, and where mistakes are reported."""

from __future__ import annotations

import pytest

from tools.codegen.errors import CodegenErrors
from tools.codegen.expr import parse, to_text
from tools.codegen.expr_code import encode_sections
from tools.codegen.map_formula import formula_of
from tools.codegen.records import load_text

RECORD = """
- name: pick
  family: map
  doc: Picks.
  overloads:
    - schema: "pick(Tensor self, Tensor index, int[] dims, int k, str how) -> Tensor"
      map: "{}"
      shape: pick_shape
      cpu: pick_cpu
      axes: "opaque: a test"
"""


def formula(text: str) -> str:
    """The formula as it is printed."""
    [record] = load_text(RECORD.format(text), "ops.yaml")
    return to_text(formula_of(record.overloads[0]))


@pytest.mark.parametrize(
    "text",
    [
        "self[axis: size(self, axis) - 1 - at(axis) if axis in dims else at(axis)]",
        "flat(self, position) if k is None else 0",
        "self[...] if not inside(self[axis: at(axis) + k]) else along(dims, dims, k)",
        "dims[len(dims) - 1] + rank(result) * numel(self)",
    ],
)
def test_printed_text_is_read_back(text: str) -> None:
    assert formula(text) == text
    assert encode_sections({("element", "float", 0): parse(text, places=True)}, NAMES)


NAMES = ("self", "index", "dims", "k", "how")


def test_short_forms() -> None:
    assert formula("index[k]") == "index[axis: k]"
    assert formula("self[k, at(-1)]") == "self[axis: k if axis == 0 else at(-1)]"
    place = "axis == remainder(k, rank(self))"
    assert formula("self[k: 1]") == f"self[axis: 1 if {place} else at(axis)]"
    assert formula("self[k: 1, axis: 0]") == f"self[axis: 1 if {place} else 0]"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("self[...] + delf", "unknown name 'delf'"),
        ("self + 1", "'self' is no number here"),
        ("self[axis: dims]", "'dims' is no number here"),
        ("how + 1", "'how' is no number here"),
        ("axis", "`axis` has a meaning inside an index only"),
        ("size(k, 0)", "size of 'k', no tensor"),
        ("result[...]", "read of 'result', no tensor"),
        ("len(self)", "len of what is no list of numbers"),
        ("k in self", "names of what is no list of numbers"),
        ("along(dims, self, 1)", "along of what is no list of numbers"),
        ("self[axis: index[axis]]", "cannot depend on `axis`"),
        ("at(1, 2)", "at takes 1 arguments, got 2"),
        ("inside(k)", "inside takes a read"),
        ("k is 3", "`is` compares with None only"),
        ("self[1:2:3]", "an index is `axis: E`"),
    ],
)
def test_mistakes_have_a_place(text: str, message: str) -> None:
    with pytest.raises(CodegenErrors) as caught:
        formula(text)
    assert "ops.yaml:7: " in str(caught.value)
    assert message in str(caught.value)


def test_one_tensor_is_made() -> None:
    text = RECORD.format("self[...]").replace("-> Tensor", "-> (Tensor, Tensor)")
    with pytest.raises(CodegenErrors, match="one tensor as result"):
        load_text(text, "ops.yaml")


def test_pointwise_expressions_know_no_places() -> None:
    with pytest.raises(Exception, match="unknown function 'at'"):
        parse("at(1)")
    with pytest.raises(Exception, match="Subscript is not in the language"):
        parse("self[1]", {"self"})
