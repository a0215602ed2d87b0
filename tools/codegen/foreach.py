"""Derives `_foreach_` operators from the overloads of the element's record.

The *operand* is the argument that numbers may stand for: `other` of add.Scalar,
`weight` of lerp.Scalar, `value` of addcdiv. Each overload asked for is the element's
schema with lists in place of its tensors, and the operand as the overload's name says:

| overload | operand | element |
|---|---|---|
| Scalar | one number for all | the overload with the number |
| ScalarList | a list of numbers | the same |
| List | a list of tensors | the overload with a tensor there |
| Tensor | one tensor for all | the same |
| Tensor, where none has a tensor there | a tensor of all numbers | that of Scalar |
| ScalarAndTensor | a list of tensors; `self` is a number | the overload with that |

Numbers come last, positional: options behind them keep their defaults.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from .errors import CodegenError
from .record_types import Autocast, Doc, Foreach, ForeachForms, Forms, Overload, Record
from .schema import Argument, Return, Schema, Type, inplace_schema
from .yaml_fields import Text

_NUMBERS = ("Scalar", "ScalarList")


def foreach_records(record: Record) -> list[Record]:
    """The records of lists that follow from one of elements."""
    if record.foreach is None:
        return []
    return [
        Record(
            name=Text(f"_foreach_{name}", record.location),
            doc=Doc(f"{name} of every tensor of a list.", ""),
            overloads=tuple(_overloads(record, record.foreach, name)),
            location=record.location,
        )
        for name in record.foreach.names or (record.name,)
    ]


def _overloads(record: Record, asked: ForeachForms, name: str) -> Iterator[Overload]:
    if not asked.overloads:
        yield from _all_listed(record, asked, name)
        return
    place = _place(record)
    for word, operand in asked.overloads.items():
        element, packed = _element(record, word, place)
        arguments = []
        for i, a in enumerate(element.schema.arguments):
            if i == place:
                arguments.append(_operand(a, word, operand, packed))
            elif i < place or (word not in _NUMBERS and not packed):
                arguments.append(_listed(a, asked.rename.get(a.name)))
        yield _overload(element, f"_foreach_{name}", word, arguments, asked)


def _all_listed(record: Record, asked: ForeachForms, name: str) -> Iterator[Overload]:
    """Lists for all tensors of the overloads without a name: one, or `f` and `f_`."""
    found = [o for o in record.overloads if not o.schema.overload]
    if not found:
        raise _fail(record, "no overload without a name; say which are wanted")
    for element in found:
        schema = element.schema
        form = "inplace" if schema.mutable_args else "functional"
        if form in asked.forms:
            base = f"_foreach_{name}" + schema.base.removeprefix(record.name)
            arguments = [_listed(a) for a in schema.arguments]
            yield _overload(element, base, "", arguments, asked)


def _overload(
    element: Overload,
    base: str,
    word: str,
    arguments: list[Argument],
    asked: ForeachForms,
) -> Overload:
    """The overload of lists, with an in-place form where the element has one."""
    returns = tuple(Return(_list(r.type)) for r in element.schema.returns)
    if element.schema.mutable_args:
        returns = ()
    schema = Schema(base, word, tuple(arguments), returns)
    inplace = "inplace" in element.derived and "inplace" in asked.forms
    return replace(
        element,
        family="foreach",
        schema=schema,
        derived={"inplace": inplace_schema(schema)} if inplace else {},
        body=Foreach(element),
        forms=Forms({}),
        variants=("function",),
        # What the element is to autograd and autocast, its calls are.
        backward=None,
        linear=(),
        autocast=Autocast(),
        node=None,
        differentiable_outputs=None,
    )


def _place(record: Record) -> int:
    """Which argument is the operand: the first number that only tensors precede."""
    places = [
        i
        for overload in record.overloads
        for i in range(1, len(overload.schema.arguments))
        if _fits(overload, i, "Tensor", "Scalar")
    ]
    if not places:
        raise _fail(record, "no overload takes a number after its tensors")
    return min(places)


def _element(record: Record, word: str, place: int) -> tuple[Overload, bool]:
    """The overload that is called for each entry; whether numbers lie in a tensor."""
    first = "Scalar" if word == "ScalarAndTensor" else "Tensor"
    kinds = ("Scalar",) if word in _NUMBERS else ("Tensor", "Scalar")
    for kind in kinds:
        found = [o for o in record.overloads if _fits(o, place, first, kind)]
        packed = word == "Tensor" and kind == "Scalar"
        if len(found) == 1 and (kind == kinds[0] or packed):
            return found[0], packed
    raise _fail(record, f"no overload, or several, for {word}")


def _fits(overload: Overload, place: int, first: str, kind: str) -> bool:
    """`kind` at `place`, tensors (and `first`) before it, only options after it."""
    schema = overload.schema
    wanted = [first, *["Tensor"] * (place - 1), kind]
    types = [str(a.type) for a in schema.arguments]
    options = schema.arguments[place + 1 :]
    return (
        schema.is_functional
        and types[: place + 1] == wanted
        and all(a.has_default for a in options)
    )


def _operand(a: Argument, word: str, name: str, packed: bool) -> Argument:
    if word == "Scalar":
        return replace(a, name=name, kwarg_only=False)
    if word == "Tensor":
        return Argument(name, Type("Tensor") if packed else a.type)
    return Argument(name, _list(a.type))


def _listed(a: Argument, name: str | None = None) -> Argument:
    kind = _list(a.type) if a.type.is_tensor else a.type
    return replace(a, type=kind, name=name or a.name)


def _list(element: Type) -> Type:
    return Type("List", (element,))


def _fail(record: Record, why: str) -> CodegenError:
    return CodegenError(f"{record.name}: foreach: {why}", record.location)
