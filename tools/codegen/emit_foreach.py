"""Prints the bodies of operators of lists: one statement over aten/iter/foreach.h."""

from __future__ import annotations

from .model import Operator, cpp_default, cpp_type, element_of
from .schema import Type


def foreach_body(op: Operator) -> list[str]:
    """The element's entry and parameter types, and what each parameter gets."""
    element = element_of(op)
    assert element is not None
    types = ", ".join(cpp_type(a.type) for a in element.arguments)
    given = [
        _given(ours.name, ours.type, theirs.type)
        for ours, theirs in zip(op.arguments, element.arguments, strict=False)
    ]
    given += [cpp_default(a) for a in element.arguments[len(given) :]]
    call = f"foreach::Element<{types}>{{ops::entries::{element.ident}}}"
    method = "write" if op.schema.mutable_args else "results"
    returns = "" if op.schema.mutable_args else "return "
    return [f"{returns}{call}.{method}({', '.join(given)});"]


def _given(name: str, ours: Type, theirs: Type) -> str:
    if ours.is_tensor:
        return f"foreach::{'Single' if theirs.is_tensor else 'Numbers'}{{{name}}}"
    return name
