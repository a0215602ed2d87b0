"""Derives functional operators from those that only write: `uniform` of `uniform_`.

A kernel that writes into its arguments, and no record computes the same without, gets a
form that does it on copies and returns them. Its name is the writing one's without the
underscore, with `_functional` where a record of that name does something else. What is
returned are the operator's own results, then each written argument.
"""

from __future__ import annotations

from dataclasses import replace

from .axes import Axes
from .errors import CodegenError
from .record_types import Autocast, Doc, Forms, Kernel, Overload, Record
from .schema import Argument, Return, Schema
from .yaml_fields import Text


def functional_records(records: list[Record]) -> list[Record]:
    """The records that follow from operators without a functional form."""
    by_name = {record.name: record for record in records}
    found = []
    for record in records:
        base = record.name.removesuffix("_")
        overloads = [
            o
            for o in record.overloads
            if _writes_only(o)
            and not _has_form(o, by_name.get(base))
            and not _has_form(o, by_name.get(f"{base}_functional"))
        ]
        if overloads:
            name = f"{base}_functional" if base in by_name else base
            try:
                made = _record(record, Text(name, record.location), overloads)
            except CodegenError as error:
                raise error.at(record.location) from None
            found.append(made)
    return found


def _writes_only(overload: Overload) -> bool:
    geometry = "inplace_view" in overload.tags
    kernel = isinstance(overload.body, Kernel)
    return kernel and overload.schema.is_inplace and not geometry


def _types(schema: Schema) -> list[str]:
    return [str(a.type.with_alias(None)) for a in schema.arguments]


def _has_form(overload: Overload, record: Record | None) -> bool:
    wanted = _types(overload.schema)
    return record is not None and any(
        o.schema.is_functional and _types(o.schema) == wanted for o in record.overloads
    )


def _record(record: Record, name: Text, overloads: list[Overload]) -> Record:
    return Record(
        name=name,
        doc=Doc(f"What {record.name} makes of its arguments, which stay.", ""),
        args=record.args,
        overloads=tuple(_overload(o, name) for o in overloads),
        location=record.location,
    )


def _overload(writing: Overload, name: Text) -> Overload:
    schema = writing.schema
    given = {str(r.type) for r in schema.returns}
    returns = []
    for a in schema.mutable_args:
        extra = str(a.type) not in given
        kind = a.type.with_alias(None)
        returns.append(Return(kind, f"{a.name}_out" if extra else None))
    arguments = tuple(
        replace(a, type=a.type.with_alias(None)) for a in schema.arguments
    )
    return replace(
        writing,
        family="kernel",
        schema=replace(
            schema, base=str(name), arguments=arguments, returns=tuple(returns)
        ),
        derived={},
        body=Kernel(any=_text(schema, name), axes=_axes(writing)),
        forms=Forms({}),
        variants=(),
        linear=(),
        autocast=Autocast(),
        node=None,
        differentiable_outputs=None,
    )


def _text(schema: Schema, name: Text) -> Text:
    """Copies, the writing operator on them, and what it made of them."""
    copies = [_copy(a) for a in schema.mutable_args]
    written = {a.name for a in schema.mutable_args}
    call = ", ".join(
        f"{a.name}_out" if a.name in written else a.name for a in schema.arguments
    )
    results = ", ".join(f"{a.name}_out" for a in schema.mutable_args)
    result = results if len(written) == 1 else f"{{{results}}}"
    lines = [*copies, f"ops::{schema.base}({call});", f"return {result};"]
    return Text("\n".join(lines), name.location)


def _copy(a: Argument) -> str:
    if not a.type.is_list:
        return f"Tensor {a.name}_out = ops::clone({a.name}, std::nullopt);"
    # A loop, since a list may be empty.
    return (
        f"std::vector<Tensor> {a.name}_out;\n"
        f"for (const Tensor& t : {a.name}) "
        f"{a.name}_out.push_back(ops::clone(t, std::nullopt));"
    )


def _axes(writing: Overload) -> Axes:
    """Results have the axes of the arguments that they stand for."""
    axes = writing.body.axes
    if axes is None:
        raise CodegenError("a kernel that writes needs axes")
    if axes.opaque:
        return axes
    inputs = [a.name for a in writing.schema.tensor_args]
    places = [inputs.index(a.name) for a in writing.schema.mutable_args]
    return replace(axes, outputs=tuple(axes.inputs[i] for i in places))
