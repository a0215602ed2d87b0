"""The language of `axes:`: every construct, its canonical text, and every mistake."""

from __future__ import annotations

import pytest

from tools.codegen.axes import Axes, axes_problems, parse_axes
from tools.codegen.errors import CodegenError, CodegenErrors
from tools.codegen.records import load_text
from tools.codegen.schema import parse_schema
from tools.codegen.yaml_fields import Text

# One line for each construct: axes, and a schema that they fit.
FITTING = [
    ("n^ k, k m^ -> n^ m^", "mm(Tensor self, Tensor mat2) -> Tensor"),
    ("..., ... -> ... /how", "f(Tensor x, Tensor y, int how) -> Tensor"),
    ("* n! n! -> * n! n!, *", "f(Tensor x) -> (Tensor, Tensor)"),
    ("* @dim! -> * @dim!", "f(Tensor x, int dim) -> Tensor"),
    ("* @dim*! -> *", "f(Tensor x, int[]? dim, bool keepdim) -> Tensor"),
    ("* @a! @b! -> * @a! @b!", "f(Tensor x, int a, int b) -> Tensor"),
    ("* #shape!, #shape! -> *", "f(Tensor x, Tensor? w, SymInt[] shape) -> Tensor"),
    ("* #pad/2! -> * #pad/2!", "f(Tensor x, SymInt[] pad) -> Tensor"),
    ("n^=N c! *! -> n^ c! *!", "f(Tensor x, SymInt N) -> Tensor"),
    ("n?^ c h! -> n?^ c h! =size", "f(Tensor x, SymInt[] size) -> Tensor"),
    ("[* @dim!] -> * @dim!", "f(Tensor[] x, int dim) -> Tensor"),
    ("[*], [()], () ->", "f(Tensor(a!)[] x, Tensor[] y, Tensor z) -> ()"),
    ("_ -> * =size", "f(Tensor x, SymInt[] size) -> Tensor"),
    ("-> n!", "f(int n) -> Tensor"),
    ("opaque: its result's size depends on data", "f(Tensor x) -> Tensor"),
]

MISTAKES = [
    ("opaque", "f(Tensor x) -> Tensor", "`opaque` needs its reason"),
    ("* @dim", "f(Tensor x) -> Tensor", "expected `a b, c -> d`"),
    ("* m$ -> *", "f(Tensor x) -> Tensor", "bad axis 'm$'"),
    ("* -> * =n m", "f(Tensor x, int[] n) -> Tensor", "bad axis 'm'"),
    (", * -> *", "f(Tensor x, Tensor y) -> Tensor", "without axes is written ()"),
    ("*, * -> *", "f(Tensor x) -> Tensor", "has 2 operands on the left, the schema 1"),
    ("* -> *, *", "f(Tensor x) -> Tensor", "has 2 operands on the right"),
    ("* -> *", "f(Tensor[] x) -> Tensor", "[...] stands for a list"),
    ("* @dim! -> *", "f(Tensor x) -> Tensor", "no argument 'dim' (has x)"),
    ("* @p! -> *", "f(Tensor x, float p) -> Tensor", "'p' must be int or int[]"),
    ("* #n! -> *", "f(Tensor x, int n) -> Tensor", "'n' must be int[]"),
    ("n^=N -> n^", "f(Tensor x, int[] N) -> Tensor", "'N' must be int"),
    ("* -> * q", "f(Tensor x) -> Tensor", "q only on the right"),
    ("n^ -> n", "f(Tensor x) -> Tensor", "n has `^` in one place and not in another"),
    ("*! -> ()", "f(Tensor x) -> Tensor", "no axis takes a batch; say `opaque"),
    ("*, () ->", "f(Tensor(a!) x, Tensor(b!) y) -> ()", "no axis takes a batch"),
]


def _problems(axes: str, schema: str) -> list[str]:
    return list(axes_problems(parse_axes(Text(axes)), parse_schema(schema)))


@pytest.mark.parametrize(("axes", "schema"), FITTING)
def test_every_construct_prints_itself(axes: str, schema: str) -> None:
    assert str(parse_axes(Text(axes))) == axes
    assert str(parse_axes(Text(axes.replace(" ", "  ")))) == axes.replace(
        " ", "  " if axes.startswith("opaque") else " "
    ).replace("opaque:  ", "opaque: ")
    assert _problems(axes, schema) == []


@pytest.mark.parametrize(("axes", "schema", "message"), MISTAKES)
def test_every_mistake_is_told(axes: str, schema: str, message: str) -> None:
    try:
        found = _problems(axes, schema)
    except CodegenError as error:
        found = [str(error)]
    assert any(message in problem for problem in found), found


def test_a_mistake_names_file_and_line() -> None:
    text = """\
- name: f
  family: kernel
  doc: Does nothing.
  cpu: f
  axes: "* @dim! -> *"
  overloads:
    - schema: "f(Tensor self) -> Tensor"
"""
    with pytest.raises(CodegenErrors, match=r"a\.yaml:5: f: axes: no argument 'dim'"):
        load_text(text, "a.yaml")


def _parsed(text: str) -> Axes:
    return parse_axes(Text(text))


def test_names_missing_on_the_right_are_reduced() -> None:
    assert _parsed("n^ k, k m^ -> n^ m^").reduced == {"k"}


def test_places_of_a_batch() -> None:
    plain = parse_schema("f(Tensor x, Tensor y) -> (Tensor, Tensor)")
    masked = parse_schema(
        "f(Tensor x, Tensor y, bool[2] output_mask) -> (Tensor, Tensor)"
    )
    assert _parsed("n^ *, * -> n^ *, n^ *").places(plain) == ("*", "n")
    weights = _parsed("n^ o! *!, n^ i! *! -> n^ i! *!, o! i! *!")
    assert weights.places(plain) == ()
    assert weights.places(masked) == ("n",)
