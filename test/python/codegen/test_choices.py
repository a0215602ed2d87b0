"""Formulas by parameters: what the loader reads, refuses, and generates."""

from __future__ import annotations

import pytest

from tools.codegen.emit_ops import _backend
from tools.codegen.errors import CodegenErrors
from tools.codegen.model import operators_of
from tools.codegen.pointwise import backward_of, op_kernels
from tools.codegen.records import load_text
from tools.codegen.reduction import reduction_kernels

SOFT = """\
- name: soft
  family: pointwise
  doc: A curve.
  overloads:
    - schema: "soft(Tensor self, *, str how=\\"plain\\", {more}) -> Tensor"
      forms: [inplace, out]
  dtypes: {{in: float, compute: [f32, f64]}}
  expr: {expr}
"""


def operators(expr: str, more: str = "float? eps=None", **fields: str):
    extra = "".join(f"  {key}: {value}\n" for key, value in fields.items())
    return operators_of(
        load_text(SOFT.format(expr=expr, more=more) + extra, "ops.yaml")
    )


def message(expr: str, more: str = "float? eps=None", **fields: str) -> str:
    with pytest.raises(CodegenErrors) as error:
        operators(expr, more, **fields)
    return str(error.value)


BY_HOW = '{how: {plain: "self * 2", cubed: "self * self * self"}}'


def test_each_value_has_a_kernel_and_its_gradient() -> None:
    plain, inplace, out = operators(BY_HOW)
    kernels = op_kernels(plain)
    assert [str(k.when[0]) for k in kernels] == ["how: plain", "how: cubed"]
    assert len({k.name for k in kernels}) == 2
    gradients = [str(b.real) for b in backward_of(plain)]
    assert gradients[0] == "grad * 2"
    assert "self" in gradients[1]
    for op in (plain, inplace, out):
        text = "\n".join(_backend(op))
        assert 'if (how == "plain") {' in text
        assert '} else if (how == "cubed") {' in text
        assert 'refuse_choice("soft", "how");' in text


def test_absent_arguments_and_comparisons() -> None:
    expr = '{eps: {">= 0": "maximum(self, eps)", otherwise: "self * 3"}}'
    (op, *_) = operators(expr)
    with_eps, without = op_kernels(op)
    assert with_eps.scalars == ("eps",)
    assert without.scalars == ()
    text = "\n".join(_backend(op))
    assert "if (eps.has_value() && (*eps) >= 0) {" in text
    assert "{self}, {*eps});" in text
    wrong = '{eps: {given: "self", absent: "self * eps"}}'
    assert "unknown name 'eps'" in message(wrong)


def test_numbers_are_computed_once_a_call() -> None:
    (op, *_) = operators(
        '"self * twice"', "int n=1", numbers='{twice: "2.0 * n"}', backward="none"
    )
    assert op_kernels(op)[0].scalars == ("twice",)
    assert "{self}, {Scalar(2.0 * n)});" in "\n".join(_backend(op))


def test_a_reduction_of_the_values() -> None:
    (op, *_) = operators('"self * self"', "int how_much=1", reduction="how_much")
    assert "return reduced_loss(pointwise(" in "\n".join(_backend(op))
    assert str(backward_of(op)[0].real).count("share") >= 1


@pytest.mark.parametrize(
    ("expr", "more", "wanted"),
    [
        ('{who: {plain: "self"}}', "int n", "no argument 'who' to choose by"),
        ('{self: {given: "self"}}', "int n", "self (Tensor) cannot be 'given'"),
        ('{n: {many: "self"}}', "int n", "n (int) cannot be 'many'"),
        ('{n: {absent: "self"}}', "int n", "n (int) cannot be 'absent'"),
        ('{flag: {maybe: "self"}}', "bool flag", "flag (bool) cannot be 'maybe'"),
        ('{flag: {true: "self"}}', "bool flag", "no formula for flag: false"),
        ('{how: {tanh: "self"}}', "int n", "no formula for how: plain"),
        ('{how: {plain: "self + n2"}}', "int n", "unknown name 'n2'"),
    ],
)
def test_mistakes_name_their_line(expr: str, more: str, wanted: str) -> None:
    found = message(expr, more)
    assert found.startswith("ops.yaml:8: ")
    assert wanted in found


def test_derivatives_choose_as_values_do() -> None:
    given = '{self: {how: {plain: "grad * 2", cubed: "grad * self * self * 3"}}}'
    (op, *_) = operators(BY_HOW, backward=given)
    assert [str(b.real) for b in backward_of(op)][1] == "grad * self * self * 3"
    wrong = '{self: {how: {plain: "grad", other: "grad"}}}'
    assert "`expr` has no choice how: other" in message(BY_HOW, backward=wrong)
    assert "no argument 'size'" in message('"self"', reduction="size")


NORM = """\
- name: size
  family: reduction
  doc: How large.
  overloads:
    - schema: "size(Tensor self, Scalar ord=2, int[1]? dim=None) -> Tensor"
  dtypes: {in: float, compute: [f32, f64]}
  fold: %s
"""
FOLDS = """{ord: {"== inf": {init: "0", combine: "maximum(a, b)", empty: error},
    otherwise: {init: "0", combine: "a + b", finish: "pow(acc, ord)"}}}"""


def test_reductions_choose_their_fold() -> None:
    (op,) = operators_of(load_text(NORM % FOLDS, "ops.yaml"))
    first, second = reduction_kernels(op.record, op.overload)
    assert str(first.combine["float"]) == "maximum(a, b)"
    assert not first.has_identity
    assert second.has_identity
    text = "\n".join(_backend(op))
    assert "if (ord.to_double() == std::numeric_limits<double>::infinity()) {" in text
    assert f"reduce(op_{second.name}, self" in text
    with pytest.raises(CodegenErrors, match=r"ops.yaml:7: size: ord .* 'large'"):
        load_text(NORM % '{ord: {large: {init: "0", combine: "a"}}}', "ops.yaml")
    both = NORM % FOLDS + '  init: "0"\n'
    with pytest.raises(CodegenErrors, match="either 'init' or 'fold'"):
        load_text(both, "ops.yaml")
