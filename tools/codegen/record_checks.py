"""What a record must satisfy beyond having the right fields of the right types."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .errors import CodegenError, Location
from .record_types import Axes, Kernel, Overload, Record


def check_overload(name: str, overload: Overload) -> None:
    """Names used by the fields must exist in the schema."""
    schema = overload.schema
    if schema.base not in (name, f"{name}_"):
        raise CodegenError(
            f"{name}: the schema's name must be {name!r} or '{name}_', "
            f"got {schema.base!r}",
            overload.location,
        )
    arguments = {a.name for a in schema.arguments}
    if overload.backward is not None:
        for names, formula in overload.backward.formulas.items():
            _require(names, arguments, f"{schema.name}: backward", formula.location)
    axes = getattr(overload.body, "axes", None)
    if axes is not None and not axes.opaque:
        _check_axes(overload, axes)


def check_record(record: Record) -> None:
    """Names used by docs and Python fields must exist in some overload."""
    arguments = {
        a.name
        for overload in record.overloads
        for schema in overload.schemas.values()
        for a in schema.arguments
    }
    name = record.name
    for key, value in record.args.items():
        _require([key], arguments, f"{name}: args", value.location)
    for key, value in record.python.arg_aliases.items():
        _require([key], arguments, f"{name}: python.arg_aliases", value.location)
    variadic = record.python.variadic
    if variadic is not None:
        _require([variadic], arguments, f"{name}: python.variadic", variadic.location)


def _require(
    names: Iterable[str], known: set[str], what: str, location: Location
) -> None:
    for name in names:
        if name not in known:
            choices = ", ".join(sorted(known))
            raise CodegenError(
                f"{what}: no argument {name!r} (has {choices})", location
            )


def _check_axes(overload: Overload, axes: Axes) -> None:
    schema = overload.schema
    tensors = len(schema.tensor_args)
    results = sum(r.type.is_tensor_like for r in schema.returns)
    for side, given, needed in (
        ("left", len(axes.inputs), tensors),
        ("right", len(axes.outputs), results),
    ):
        if given != needed:
            raise CodegenError(
                f"{schema.name}: axes has {given} operands on the {side}, "
                f"the schema {needed} tensors",
                axes.location,
            )
    unbound = {n for o in axes.outputs for n in o} - {n for o in axes.inputs for n in o}
    fresh = {name for name in unbound if name not in ("...", "1", "_")}
    if axes.inputs and fresh and not all(name.endswith("!") for name in fresh):
        raise CodegenError(
            f"{schema.name}: axes: {', '.join(sorted(fresh))} only on the right; "
            "mark a new axis opaque with `!`",
            axes.location,
        )


def lint_records(records: Iterable[Record]) -> Iterator[CodegenError]:
    """Rules of style and completeness: what loads but must not be committed."""
    for record in records:
        for overload in record.overloads:
            body = overload.body
            if isinstance(body, Kernel) and body.axes is None:
                yield CodegenError(
                    f"{overload.schema.name}: a kernel needs `axes` "
                    "(`opaque` if no axis can be split)",
                    overload.location,
                )
        summary = record.doc.summary
        if not summary.endswith("."):
            yield CodegenError(
                f"{record.name}: the first line of doc is a sentence ending in '.'",
                record.location,
            )
