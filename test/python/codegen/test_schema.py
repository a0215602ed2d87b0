"""The schema grammar against every operator of the installed PyTorch."""

from __future__ import annotations

import pytest

from tools.codegen.errors import CodegenError
from tools.codegen.schema import (
    inplace_schema,
    out_overload_name,
    out_schema,
    parse_schema,
    parse_type,
)

# aten schemas of PyTorch 2.13 that the suites below must reach at least.
MINIMUM_SCHEMAS = 3500


@pytest.fixture(scope="module")
def torch_schemas() -> dict[str, str]:
    """Name (base.overload) to torch's own text, without the namespace."""
    import torch

    found = {}
    for schema in torch._C._jit_get_all_schemas():
        text = str(schema)
        if text.startswith("aten::"):
            text = text.removeprefix("aten::")
            found[text[: text.index("(")]] = text
    return found


def test_every_aten_schema_round_trips(torch_schemas: dict[str, str]) -> None:
    assert len(torch_schemas) >= MINIMUM_SCHEMAS
    different = [t for t in torch_schemas.values() if str(parse_schema(t)) != t]
    assert different == []


def test_namespace_is_kept() -> None:
    text = "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
    schema = parse_schema(text)
    assert (schema.namespace, schema.base, schema.overload) == ("aten", "add", "Tensor")
    assert str(schema) == text


def test_derived_inplace_forms_are_torchs(torch_schemas: dict[str, str]) -> None:
    checked, different = 0, []
    for name, text in torch_schemas.items():
        base, _, overload = name.partition(".")
        theirs = torch_schemas.get(f"{base}_.{overload}" if overload else f"{base}_")
        schema = parse_schema(text)
        if theirs is None or not schema.is_functional or schema.is_view:
            continue
        if not schema.arguments or schema.arguments[0].name != "self":
            continue
        if not schema.returns or not parse_schema(theirs).is_inplace:
            continue
        if not schema.arguments[0].type.is_tensor_like:
            continue
        if len(schema.returns) != 1:
            continue
        checked += 1
        ours = str(inplace_schema(schema))
        if ours != theirs:
            different.append((ours, theirs))
    assert checked > 250
    assert different == []


# `X.out` belongs to another overload than the unnamed one, so that a record says so
# (`forms: {out: "max.unary_out"}`); torch's nested list operator keeps its options.
OUT_OF_ANOTHER_OVERLOAD = {
    *("all.out", "any.out", "max.out", "min.out", "mean.out", "std.out", "var.out"),
    *("range.out", "arange.start_out", "_nested_tensor_from_tensor_list.out"),
}


def test_derived_out_forms_are_torchs(torch_schemas: dict[str, str]) -> None:
    checked, different = 0, []
    for name, text in torch_schemas.items():
        base, _, overload = name.partition(".")
        schema = parse_schema(text)
        theirs = torch_schemas.get(f"{base}.{out_overload_name(overload)}")
        returns = [r.type for r in schema.returns]
        if theirs is None or not schema.is_functional or schema.is_view:
            continue
        if not returns or not all(r.is_tensor_like for r in returns):
            continue
        if not parse_schema(theirs).is_out:
            continue
        names = tuple(a.name for a in parse_schema(theirs).out_args)
        if len(names) != len(returns):
            continue
        checked += 1
        ours = str(out_schema(schema, names=names))
        if ours != theirs:
            different.append((ours, theirs))
    assert checked > 900
    assert {ours.partition("(")[0] for ours, _ in different} == OUT_OF_ANOTHER_OVERLOAD


def test_out_names_come_from_named_returns_else_numbers() -> None:
    named = parse_schema("mode(Tensor self) -> (Tensor values, Tensor indices)")
    assert str(out_schema(named, "values")) == (
        "mode.values(Tensor self, *, Tensor(a!) values, Tensor(b!) indices)"
        " -> (Tensor(a!) values, Tensor(b!) indices)"
    )
    unnamed = parse_schema("split2(Tensor self) -> (Tensor, Tensor)")
    assert str(out_schema(unnamed)) == (
        "split2.out(Tensor self, *, Tensor(a!) out0, Tensor(b!) out1)"
        " -> (Tensor(a!), Tensor(b!))"
    )


def test_out_form_of_a_factory_drops_the_tensor_options() -> None:
    schema = parse_schema(
        "ones(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, "
        "Device? device=None, bool? pin_memory=None) -> Tensor"
    )
    assert schema.is_factory
    wanted = "ones.out(SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)"
    assert str(out_schema(schema)) == wanted


def test_questions_about_a_schema() -> None:
    add = parse_schema("add_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)")
    assert add.is_inplace and not add.is_out and not add.is_functional
    assert [a.name for a in add.mutable_args] == ["self"]
    out = parse_schema("exp.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)")
    assert out.is_out and not out.is_inplace
    assert [a.name for a in out.tensor_args] == ["self"]
    view = parse_schema("view(Tensor(a) self, SymInt[] size) -> Tensor(a)")
    assert view.is_view and view.is_functional
    assert parse_schema("__iadd__(Tensor(a!) self, Tensor b) -> Tensor(a!)").is_inplace


def test_questions_about_a_type() -> None:
    kind = parse_type("int[2]?")
    assert kind.is_optional and kind.is_list
    assert (kind.base, kind.list_size) == ("int", 2)
    kind = parse_type("Tensor?[]")
    assert kind.is_list and kind.element.is_optional and kind.is_tensor_like
    assert not kind.is_tensor and parse_type("Tensor?").is_tensor


def test_named_defaults_are_their_numbers() -> None:
    schema = parse_schema(
        "loss(Tensor self, int reduction=Mean, *, MemoryFormat? "
        "memory_format=contiguous_format) -> Tensor"
    )
    assert [a.default for a in schema.arguments] == [None, 1, 0]


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("add(Tensor self", 15, "expected ',', got 'end of schema'"),
        ("add(Tensor self, Tensor self) -> Tensor", 17, "one argument named 'self'"),
        ("add(Tensor self=foo) -> Tensor", 16, "expected a default value"),
        ("add(Tensor(a! self) -> Tensor", 14, "expected ')'"),
        ("add(Tensor self) Tensor", 17, "expected '->'"),
        ("add(Tensor @self) -> Tensor", 10, "unexpected character"),
    ],
)
def test_a_bad_schema_is_shown_with_a_caret(
    text: str, column: int, message: str
) -> None:
    with pytest.raises(CodegenError) as caught:
        parse_schema(text)
    assert message in str(caught.value)
    assert caught.value.column == column
    assert str(caught.value).endswith("\n" + " " * (column + 4) + "^")


def test_forms_that_do_not_exist_are_refused() -> None:
    view = parse_schema("t(Tensor(a) self) -> Tensor(a)")
    with pytest.raises(CodegenError, match="only a functional schema"):
        out_schema(view)
    factory = parse_schema("ones(SymInt[] size) -> Tensor")
    with pytest.raises(CodegenError, match="first `Tensor self`"):
        inplace_schema(factory)
    number = parse_schema("item(Tensor self) -> Scalar")
    with pytest.raises(CodegenError, match="Tensor results only"):
        out_schema(number)
