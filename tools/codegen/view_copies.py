"""Derives `NAME_copy` from the overloads of a view: what it shows, in own memory.

Copies are row-major and neither conjugated nor negated lazily. `copy: false` in the
record of a view says that there is none.
"""

from __future__ import annotations

from dataclasses import replace

from .record_types import Autocast, Composite, Doc, Forms, Overload, Record, View
from .schema import Return, Schema, out_schema
from .yaml_fields import Text


def view_copy_records(record: Record) -> list[Record]:
    """The record of copies that follows from one of views."""
    views = [o for o in record.overloads if isinstance(o.body, View) and o.body.copy]
    if not views:
        return []
    name = Text(f"{record.name}_copy", record.location)
    return [
        Record(
            name=name,
            doc=Doc(f"A copy of what {record.name} is a view of.", ""),
            args=record.args,
            overloads=tuple(_overload(o, name) for o in views),
            location=record.location,
        )
    ]


def _overload(view: Overload, name: Text) -> Overload:
    schema = replace(
        view.schema,
        base=str(name),
        arguments=tuple(
            replace(a, type=a.type.with_alias(None)) for a in view.schema.arguments
        ),
        returns=tuple(Return(r.type.with_alias(None)) for r in view.schema.returns),
    )
    return replace(
        view,
        family="composite",
        schema=schema,
        derived={"out": out_schema(schema)},
        body=Composite(call=Text(_text(view.schema), view.location), casts_out=False),
        forms=Forms({"out": None}),
        variants=view.variants and ("function",),
        tags=("view_copy",),
        # What the view is to autograd and autocast, the call of it is.
        backward=None,
        linear=(),
        autocast=Autocast(),
        node=None,
        differentiable_outputs=None,
    )


def _text(schema: Schema) -> str:
    call = f"ops::{schema.base}({', '.join(a.name for a in schema.arguments)})"
    if not schema.returns[0].type.is_list:
        return f"return {_copy(call)};"
    return (
        f"std::vector<Tensor> copies = {call};\n"
        f"for (Tensor& t : copies) t = {_copy('t')};\n"
        "return copies;"
    )


def _copy(view: str) -> str:
    return (
        f"ops::clone(ops::resolve_neg(ops::resolve_conj({view})), "
        "MemoryFormat::Contiguous)"
    )
