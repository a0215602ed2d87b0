"""Stubs: forms that are one, and orders of arguments from before keywords."""

from __future__ import annotations

from tools.codegen import emit_stubs

OUT = "Tensor"


def merged(*forms: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [parts for parts, _ in emit_stubs._merged([(f, OUT) for f in forms])]


def test_a_keyword_of_one_form_alone_gets_a_default() -> None:
    plain = ("x: Tensor", "*", "out: Tensor = ...")
    with_mode = ("x: Tensor", "*", "mode: str", "out: Tensor = ...")
    one = ("x: Tensor", "*", "mode: str = ...", "out: Tensor = ...")
    assert merged(plain, with_mode) == merged(with_mode, plain) == [one]
    first = ("self", "other: Tensor | Number")
    second = ("self", "other: Number | Tensor", "*", "mode: str")
    assert merged(first, second) == [(*second[:3], "mode: str = ...")]


def test_what_differs_otherwise_stays() -> None:
    for other in (
        ("x: Tensor", "mode: str"),
        ("x: Number", "*", "mode: str"),
        ("x: Tensor", "*", "mode: str = ..."),
        ("x: Tensor", "*", "mode: str", "more: str"),
    ):
        forms = [("x: Tensor",), other]
        assert merged(*forms) == forms
    different = [(("x: Tensor",), "Tensor"), (("x: Tensor", "*", "n: str"), "None")]
    assert emit_stubs._merged(different) == different
