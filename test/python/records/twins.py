"""Arguments for overloads that nobody recorded: those of another form."""

from __future__ import annotations

import taeda

from tools.codegen.schema_types import Argument, Schema


def twin_calls(
    schema: Schema, known: dict[str, Schema], calls: dict[str, list[dict]]
) -> list[dict]:
    """Calls of an overload with the same arguments: in-place, out= and generator forms.

    out= arguments get empty tensors, generators the default one.
    """
    base = schema.base.removesuffix("_")
    for name in sorted(calls):
        other = known[name]
        if other.base.removesuffix("_") == base and _fits(schema, other):
            return [_values(schema, other, call) for call in calls[name]]
    return []


def _fits(schema: Schema, other: Schema) -> bool:
    theirs = {a.name: _type(a) for a in other.arguments}
    return all(
        theirs.get(a.name, _type(a) if a.has_default or _free(schema, a) else "")
        == _type(a)
        for a in schema.arguments
    ) and {n for n, t in theirs.items() if t.startswith("Tensor")} <= {
        a.name for a in schema.arguments
    } | {a.name for a in other.out_args}


def _free(schema: Schema, argument: Argument) -> bool:
    return argument in schema.out_args or argument.type.base == "Generator"


def _type(argument: Argument) -> str:
    return str(argument.type.with_alias(None))


def _dtype(call: dict) -> taeda.dtype:
    tensors = [v for v in call.values() if isinstance(v, taeda.Tensor)]
    return tensors[0].dtype if tensors else taeda.get_default_dtype()


def _values(schema: Schema, other: Schema, call: dict) -> dict:
    values = {}
    for argument in schema.arguments:
        if argument in schema.out_args:
            values[argument.name] = taeda.empty(0, dtype=_dtype(call))
        elif argument.type.base == "Generator":
            values[argument.name] = None
        elif argument.name in call:
            values[argument.name] = call[argument.name]
        else:
            values[argument.name] = argument.default
    return values
