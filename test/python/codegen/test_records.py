"""The record loader: what it reads, and that every mistake names its file and line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tools.codegen.errors import CodegenError, CodegenErrors
from tools.codegen.records import (
    Kernel,
    Pointwise,
    Record,
    View,
    lint_records,
    load_records,
    load_text,
)

from .conftest import ROOT

ADD = """\
- name: add
  family: pointwise
  doc: |
    Adds other, scaled by alpha, to self.

    out = self + alpha * other
  args: {self: "a tensor", alpha: "the factor"}
  dtypes: {in: all, compute: [f32, f64, c64, c128, i64]}
  expr: "self + alpha * other"
  backward:
    self: "grad"
    other: "grad * conj(alpha)"
  overloads:
    - schema: "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
      forms: {inplace: , out: add.out}
    - schema: "add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor"
      forms: [inplace, out]
      backward: {self: grad}
      variants: [function]
"""
BMM = """\
- name: bmm
  family: kernel
  doc: Multiplies batches of matrices.
  cpu: bmm_cpu
  shape: bmm_shape
  axes: "b^ m k, b^ k n -> b^ m n"
  overloads:
    - schema: "bmm(Tensor self, Tensor mat2) -> Tensor"
"""


def _one(text: str) -> Record:
    (record,) = load_text(text, "ops.yaml")
    return record


def _error(text: str) -> str:
    with pytest.raises(CodegenErrors) as caught:
        load_text(text, "ops.yaml")
    return str(caught.value)


def test_autocast_is_one_word_or_one_for_each_device() -> None:
    text = (
        "- name: f\n  family: composite\n  doc: Does.\n"
        "  overloads:\n"
        "    - schema: 'f(Tensor self) -> Tensor'\n"
        "      call: g\n"
    )
    for field, expected in (
        ("lower", ("lower", "lower")),
        ("{cuda: promote}", ("keep", "promote")),
        ("{cpu: float32, cuda: refuse}", ("float32", "refuse")),
    ):
        (record,) = load_text(f"{text}      autocast: {field}\n")
        found = record.overloads[0].autocast
        assert (found.cpu, found.cuda) == expected
    for field in ("higher", "{cpu: higher}", "{xpu: lower}"):
        with pytest.raises(CodegenError, match=r"a\.yaml:7: "):
            load_text(f"{text}      autocast: {field}\n", "a.yaml")


def test_a_pointwise_record() -> None:
    record = _one(ADD)
    assert record.name == "add" and record.location.line == 1
    assert record.doc.summary == "Adds other, scaled by alpha, to self."
    assert record.doc.details == "out = self + alpha * other"
    tensor, scalar = record.overloads
    assert {form: schema.name for form, schema in tensor.schemas.items()} == {
        "functional": "add.Tensor",
        "inplace": "add_.Tensor",
        "out": "add.out",
    }
    assert scalar.derived["out"].name == "add.Scalar_out"
    assert isinstance(tensor.body, Pointwise)
    assert tensor.body.dtypes.compute_types[0] == "f32"
    expr = tensor.body.expr.for_kind("int")
    assert expr == "self + alpha * other" and expr.location.line == 9


def test_an_overload_overrides_its_record() -> None:
    tensor, scalar = _one(ADD).overloads
    assert tensor.variants == ("function", "method")
    assert scalar.variants == ("function",)
    assert tensor.backward is not None and scalar.backward is not None
    assert set(tensor.backward.formulas) == {("self",), ("other",)}
    assert set(scalar.backward.formulas) == {("self",)}


def test_one_record_may_mix_families() -> None:
    record = _one("""\
- name: diag
  doc: A diagonal.
  geometry: diag_view
  overloads:
    - schema: "diag.v(Tensor(a) self) -> Tensor(a)"
      family: view
      copy: false
    - schema: "diag.k(Tensor self, int n) -> Tensor"
      family: kernel
      cpu: diag_cpu
""")
    view, kernel = record.overloads
    assert isinstance(view.body, View) and view.body.geometry == "diag_view"
    assert isinstance(kernel.body, Kernel) and kernel.body.cpu == "diag_cpu"


def test_expressions_per_kind() -> None:
    record = _one(
        ADD.replace(
            'expr: "self + alpha * other"',
            'expr: {bool: "self or (alpha and other)", default: "self + other"}',
        ).replace("c128, i64]", "c128, i64, bool]")
    )
    body = record.overloads[0].body
    assert isinstance(body, Pointwise)
    assert body.expr.for_kind("bool") == "self or (alpha and other)"
    assert body.expr.for_kind("complex") == "self + other"


def test_compute_types_follow_from_the_inputs() -> None:
    text = ADD.replace(", compute: [f32, f64, c64, c128, i64]", "")
    float_only = text.replace("in: all", "in: float, promote: int_to_float")
    body = _one(float_only).overloads[0].body
    assert isinstance(body, Pointwise)
    assert body.dtypes.compute_types == ("f32", "f64")
    assert "the value is int where the compute type is bool" in _error(text)


def test_backward_none() -> None:
    record = _one(BMM + "  backward: none\n")
    backward = record.overloads[0].backward
    assert backward is not None and not backward.differentiable


def test_lint_wants_axes_and_a_sentence() -> None:
    assert list(lint_records([_one(BMM)])) == []
    text = BMM.replace('  axes: "b^ m k, b^ k n -> b^ m n"\n', "").replace(
        "ces.", "ces"
    )
    messages = [str(problem) for problem in lint_records([_one(text)])]
    assert messages == [
        "ops.yaml:7: bmm: a kernel needs `axes` (`opaque: REASON` if "
        "no axis takes a batch)",
        "ops.yaml:1: bmm: the first line of doc is a sentence ending in '.'",
    ]


MISTAKES = [
    ("family: pointwise", "family: pointwize", "ops.yaml:2: expected one of"),
    ("  doc: |\n", "  dok: |\n", "ops.yaml:3: add: unknown field 'dok'"),
    ("  expr:", "  expression:", "ops.yaml:9: add: unknown field 'expression'"),
    ("name: add", "nom: add", "ops.yaml:1: record: unknown field 'nom'"),
    ("in: all", "in: everything", "ops.yaml:8: expected one of 'all'"),
    ("i64]", "i63]", "ops.yaml:8: expected one of 'bool'"),
    ("[function]", "function", "ops.yaml:19: expected a list, got text 'function'"),
    ("self: grad}", "selv: grad}", "ops.yaml:18: add.Scalar: backward: no argument"),
    ("{self: ", "{selv: ", "ops.yaml:7: add: args: no argument 'selv'"),
    ("out: add.out", "out: sub.out", "ops.yaml:15: out form must be named add.*"),
    ('"add.Tensor(', '"sub.Tensor(', "ops.yaml:14: add: the schema's name must be"),
    ("Tensor other,", "Tensr? 3,", "ops.yaml:14: schema: expected an argument name"),
    ("add.Scalar(", "add.Tensor(", "ops.yaml:16: 'add.Tensor' is already defined"),
    ('"self + alpha * other"', "[1]", "ops.yaml:9: expected text, got a list"),
    ("expr: ", "#expr: ", "missing field 'expr'"),
    ("  family: pointwise", "  doc: x", "ops.yaml:3: key 'doc' given twice"),
    ("{self: ", "{self: [", "YAML:"),
]


@pytest.mark.parametrize(("old", "new", "message"), MISTAKES)
def test_mistakes_name_file_and_line(old: str, new: str, message: str) -> None:
    assert old in ADD
    assert message in _error(ADD.replace(old, new, 1))


def test_a_bad_expression_is_shown_with_a_caret() -> None:
    text = ADD.replace("self + alpha * other", "self + alfa * other")
    assert _error(text) == (
        "ops.yaml:9: expression: unknown name 'alfa' (did you mean 'alpha'?)\n"
        "    self + alfa * other\n"
        "           ^"
    )


def test_a_bad_derivative_is_shown_with_a_caret() -> None:
    text = ADD.replace("grad * conj(alpha)", "grad * floor(alpha)")
    assert _error(text) == (
        "ops.yaml:12: floor is not defined for complex arguments\n"
        "    grad * floor(alpha)\n"
        "           ^"
    )


def test_all_mistakes_are_reported_at_once() -> None:
    text = ADD.replace("family: pointwise", "family: x") + BMM.replace("cpu:", "cpv:")
    lines = _error(text).splitlines()
    assert [line.split(":")[1] for line in lines] == ["2", "23"]


def test_names_are_unique_over_files(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(BMM)
    (tmp_path / "b.yaml").write_text(BMM.replace("bmm", "bmn") + "  alias_names: [bmm]")
    with pytest.raises(CodegenError, match="'bmm' is already defined at .*a.yaml:1"):
        load_records(tmp_path)


def test_the_command_prints_errors_and_fails(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tools.codegen.records", str(tmp_path)]
    (tmp_path / "a.yaml").write_text(BMM)
    good = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (good.returncode, good.stderr) == (0, "")
    assert "1 records, 1 overloads" in good.stdout
    (tmp_path / "a.yaml").write_text(BMM.replace("family: kernel", "family: 3"))
    bad = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert bad.returncode == 1
    assert f"{tmp_path}/a.yaml:2: expected one of" in bad.stderr


def test_the_librarys_own_records_load() -> None:
    records = load_records(Path(ROOT) / "aten" / "ops")
    assert [str(problem) for problem in lint_records(records)] == []
    assert len(records) >= 10


def test_a_control_character_is_an_error_with_its_line() -> None:
    with pytest.raises(CodegenError, match=r"a\.yaml:2: YAML: control characters"):
        load_text("- name: f\n  doc: \x7f\n", "a.yaml")
