"""Parsing, typing, printing and simplifying of expressions."""

from __future__ import annotations

import pytest

from tools.codegen.errors import CodegenError, Location
from tools.codegen.expr import (
    Binary,
    Call,
    Literal,
    Name,
    check,
    names,
    parse,
    replace,
    simplify,
    substitute,
    to_text,
)
from tools.codegen.yaml_fields import Text

FLOATS = dict.fromkeys(("x", "y", "alpha"), "float")


@pytest.mark.parametrize(
    "text",
    [
        "x + alpha * y",
        "(x + alpha) * y",
        "x - (y - alpha)",
        "x / (y / alpha)",
        "-x ** 2",
        "(-x) ** 2",
        "x ** -y",
        "x ** y ** 2",
        "(x ** y) ** 2",
        "x if x > 0 else alpha * (exp(x) - 1)",
        "(x if y > 0 else alpha) + 1",
        "x if (y if x > 0 else alpha) > 1 else y",
        "not (x > 0 and y > 0) or is_nan(x)",
        "x & y | alpha ^ ~x",
        "x << 1 >> 2",
        "float(x > 0) * cast(y) + int(x) + bool(y) - complex(x)",
        "pi * e + inf - nan + 1e-05 - 0.5",
        "clamp(x, 0, 6) - 2j * x",
        "-(1) + -1 - -x",
    ],
)
def test_text_round_trips(text: str) -> None:
    tree = parse(text)
    assert parse(to_text(tree)) == tree


def test_sugar_becomes_plain_nodes() -> None:
    assert parse("0 < x < 1") == parse("0 < x and x < 1")
    assert parse("x // y") == parse("floor_divide(x, y)")
    assert parse("x % y") == parse("remainder(x, y)")
    assert parse("select(x > 0, x, y)") == parse("x if x > 0 else y")
    assert parse("x\n + y") == parse("x + y")
    assert parse("+x") == Name("x") and parse("-2") == Literal(-2)


def test_literals_of_different_kinds_differ() -> None:
    assert len({Literal(1), Literal(1.0), Literal(True)}) == 3


@pytest.mark.parametrize(
    ("text", "kinds", "wanted"),
    [
        ("x + y", "int int", "int"),
        ("x / y", "int int", "float"),
        ("x + 0.5", "int int", "float"),
        ("x * y", "float complex", "complex"),
        ("x * y", "bool bool", "int"),
        ("x and y", "float int", "bool"),
        ("x & y", "bool bool", "bool"),
        ("x >> y", "int int", "int"),
        ("x == y", "complex float", "bool"),
        ("exp(x)", "int int", "float"),
        ("exp(x)", "complex int", "complex"),
        ("abs(x)", "complex int", "float"),
        ("abs(x)", "int int", "int"),
        ("angle(x)", "complex int", "float"),
        ("is_nan(x)", "complex int", "bool"),
        ("maximum(x, y)", "int float", "float"),
        ("x if y else 0", "int float", "int"),
        ("-x", "bool int", "int"),
        ("not x", "float int", "bool"),
        ("~x", "bool int", "bool"),
        ("float(x > y)", "int int", "float"),
    ],
)
def test_kinds(text: str, kinds: str, wanted: str) -> None:
    env = dict(zip("xy", kinds.split(), strict=True))
    assert check(parse(text), env) == wanted


@pytest.mark.parametrize(
    ("text", "kind", "column", "message"),
    [
        ("1 + maximum(x, y)", "complex", 4, "maximum is not defined for complex"),
        ("y + (x < y)", "complex", 5, "complex has no order"),
        ("1 + (x & y)", "float", 5, "& needs bool or int"),
        ("1 + ~x", "float", 4, "~ needs bool or int"),
        ("float(x)", "complex", 0, "a complex value is cast by"),
    ],
)
def test_ill_typed(text: str, kind: str, column: int, message: str) -> None:
    with pytest.raises(CodegenError) as caught:
        check(parse(text), dict.fromkeys("xy", kind))
    assert message in str(caught.value) and caught.value.column == column


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("x + foo(1)", 4, "unknown function 'foo'"),
        ("x + sinn(y)", 4, "did you mean 'sin'"),
        ("x + z", 4, "unknown name 'z'"),
        ("x + exp(1, 2)", 4, "exp takes 1 arguments, got 2"),
        ("x + select(1, 2)", 4, "select takes 3 arguments, got 2"),
        ("x + y[0]", 4, "Subscript is not in the language"),
        ("x + 'a'", 4, "'a' is no number"),
        ("x in y", 0, "In is not in the language"),
        ("x @ y", 0, "MatMult is not in the language"),
        ("exp(x=1)", 0, "only calls"),
        ("x.real", 0, "Attribute is not in the language"),
        ("x +", None, "expression: "),
        ("", None, "expression: "),
        ("x) + (y", None, "expression: "),
    ],
)
def test_a_bad_expression(text: str, column: int | None, message: str) -> None:
    with pytest.raises(CodegenError) as caught:
        parse(text, {"x", "y"}, Location("ops.yaml", 7))
    shown = str(caught.value)
    assert shown.startswith("ops.yaml:7: ") and message in shown
    assert f"\n    {text}\n" in shown
    if column is not None:
        assert shown.endswith("\n    " + " " * column + "^")


def test_the_place_of_a_records_text_is_used() -> None:
    with pytest.raises(CodegenError, match=r"^unary\.yaml:12: "):
        parse(Text("foo(x)", Location("unary.yaml", 12)))


def test_a_variable_may_hide_a_constant() -> None:
    assert parse("e", {"e"}) == Name("e")
    assert parse("e", {"x"}) != Name("e")


def test_illegal_nodes_cannot_be_built() -> None:
    x = Name("x")
    for build in (
        lambda: Binary("%%", x, x),
        lambda: Call("exp", (x, x)),
        lambda: Call("nothing", (x,)),
        lambda: Name("a b"),
        lambda: Literal("1"),  # type: ignore[arg-type]
        lambda: Binary("+", x, 1),  # type: ignore[arg-type]
    ):
        with pytest.raises(CodegenError):
            build()


def test_replace_and_substitute() -> None:
    expr = parse("exp(x) + y * exp(x)")
    assert replace(expr, parse("exp(x)"), "result") == parse("result + y * result")
    swapped = substitute(parse("x - y"), {"x": Name("y"), "y": Name("x")})
    assert swapped == parse("y - x")
    assert names(expr) == {"x", "y"}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("x + 0", "x"),
        ("0 - x", "-x"),
        ("x * 1 / 1", "x"),
        ("0 * x + y * 0", "0"),
        ("x * -1", "-x"),
        ("-(-x)", "x"),
        ("x - -y", "x + y"),
        ("-x * -y", "x * y"),
        ("x * (1 / y)", "x / y"),
        ("x * (2 / y)", "x * 2 / y"),
        ("2 * (3 * x)", "6 * x"),
        ("x + x", "2 * x"),
        ("x ** 1 + y ** 0", "x + 1"),
        ("x ** -1", "1 / x"),
        ("x if 2 > 1 else y", "x"),
        ("x if y > 0 else x", "x"),
        ("x if not False or y > 0 else y", "x"),
        ("conj(conj(x)) + conj(2)", "x + 2"),
        ("2 ** 0 * 3 + 4 / 8", "3.5"),
    ],
)
def test_simplify(text: str, wanted: str) -> None:
    assert to_text(simplify(parse(text))) == wanted
