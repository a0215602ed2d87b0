"""What a record must satisfy beyond having the right fields of the right types."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .axes import axes_problems
from .errors import CodegenError, Location
from .expr import Expr, backward_expr, check, parse
from .expr_types import rank
from .map_formula import formula_of
from .record_types import (
    KIND_OF_DTYPE,
    Kernel,
    Map,
    MapOfOthers,
    Overload,
    Pointwise,
    Record,
)
from .schema import Schema
from .yaml_fields import Text

# Schema types that an expression can compute with.
_SCALAR_BASES = ("Tensor", "Scalar", "int", "SymInt", "float", "bool")


def check_schema_name(name: str, schema: Schema, location: Location) -> None:
    """A record holds the overloads of one base name, in-place ones included."""
    if schema.base not in (name, f"{name}_"):
        raise CodegenError(
            f"{name}: the schema's name must be {name!r} or '{name}_', "
            f"got {schema.base!r}",
            location,
        )


def check_overload(overload: Overload) -> None:
    """Names used by the fields must exist in the schema."""
    schema = overload.schema
    arguments = {a.name for a in schema.arguments}
    if overload.backward is not None:
        for names, formula in overload.backward.formulas.items():
            _require(names, arguments, f"{schema.name}: backward", formula.location)
    for name in overload.linear:
        tensors = {a.name for a in schema.tensor_args}
        _require([name], tensors, f"{schema.name}: linear", overload.location)
    if isinstance(overload.body, Pointwise):
        _check_pointwise(overload, overload.body)
    if isinstance(overload.body, Map | MapOfOthers):
        formula_of(overload)
    axes = getattr(overload.body, "axes", None)
    for problem in axes_problems(axes, schema) if axes is not None else ():
        raise CodegenError(f"{schema.name}: {problem}", axes.location)


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


def _check_pointwise(overload: Overload, body: Pointwise) -> None:
    """Every expression and derivative has a legal type in every kind of compute."""
    usable = {
        a.name
        for a in overload.schema.arguments
        if a.type.base in _SCALAR_BASES and not a.type.is_list
    }
    kinds = sorted({KIND_OF_DTYPE[name] for name in body.dtypes.compute_types})
    result_is_real = body.dtypes.promote in (
        "complex_to_float",
        "int_to_real",
        "bool_out",
    )
    for kind in kinds:
        text = body.expr.for_kind(kind)
        expr = parse(text, usable)
        _check_kind(expr, text, dict.fromkeys(usable, kind), kind)
        if kind in ("float", "complex") and body.dtypes.promote != "bool_out":
            result = "float" if result_is_real else kind
            env = dict.fromkeys(usable, kind) | {"grad": result, "result": result}
            _check_derivatives(overload, expr, text, env, kind)


def _check_derivatives(
    overload: Overload, expr: Expr, text: Text, env: dict[str, str], kind: str
) -> None:
    backward = overload.backward
    given: set[str] = set()
    if backward is not None:
        if not backward.differentiable:
            return
        for names, formula in backward.formulas.items():
            given |= set(names)
            _check_kind(parse(formula, env.keys()), formula, env, kind)
    for argument in overload.schema.arguments:
        if argument.type.is_tensor and argument.name not in given:
            try:
                backward_expr(expr, argument.name, kind == "complex")
            except CodegenError as error:
                raise error.at(text.location, str(text)) from None


def _check_kind(expr: Expr, text: Text, env: dict[str, str], compute: str) -> None:
    try:
        kind = check(expr, env, compute)
    except CodegenError as error:
        raise error.at(text.location, str(text)) from None
    if rank(kind) > rank(compute):
        raise CodegenError(
            f"the value is {kind} where the compute type is {compute}; "
            "give an expression per kind, or narrow the compute types",
            text.location,
            str(text),
        )


def _require(
    names: Iterable[str], known: set[str], what: str, location: Location
) -> None:
    for name in names:
        if name not in known:
            choices = ", ".join(sorted(known))
            raise CodegenError(
                f"{what}: no argument {name!r} (has {choices})", location
            )


def lint_records(records: Iterable[Record]) -> Iterator[CodegenError]:
    """Rules of style and completeness: what loads but must not be committed."""
    for record in records:
        for overload in record.overloads:
            body = overload.body
            if isinstance(body, Kernel) and body.axes is None:
                yield CodegenError(
                    f"{overload.schema.name}: a kernel needs `axes` "
                    "(`opaque: REASON` if no axis takes a batch)",
                    overload.location,
                )
        summary = record.doc.summary
        if not summary.endswith("."):
            yield CodegenError(
                f"{record.name}: the first line of doc is a sentence ending in '.'",
                record.location,
            )
