"""What a record must satisfy beyond having the right fields of the right types."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .axes import axes_problems
from .choices import When, check_choices, is_given
from .errors import CodegenError, Location
from .expr import Expr, backward_expr, check, parse
from .expr_types import rank
from .fold_formula import expression_of, formulas_of
from .map_formula import formula_of
from .record_dtypes import KIND_OF_DTYPE
from .record_types import (
    Backward,
    Folded,
    FoldedOfOthers,
    Kernel,
    Map,
    MapOfOthers,
    Overload,
    Pointwise,
    PointwiseOfOthers,
    Record,
    Reduction,
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
        _check_chosen(overload, arguments)
    for name in overload.linear:
        tensors = {a.name for a in schema.tensor_args}
        _require([name], tensors, f"{schema.name}: linear", overload.location)
    if isinstance(overload.body, Pointwise):
        _check_pointwise(overload, overload.body)
    if isinstance(overload.body, Reduction):
        _check_reduction(overload, overload.body)
    if isinstance(overload.body, Map | MapOfOthers):
        formula_of(overload)
    if isinstance(overload.body, Folded | FoldedOfOthers):
        _check_fold(overload, overload.body)
    if isinstance(overload.body, PointwiseOfOthers):
        expression_of(overload)
    axes = getattr(overload.body, "axes", None)
    for problem in axes_problems(axes, schema) if axes is not None else ():
        raise CodegenError(f"{schema.name}: {problem}", axes.location)


def _check_chosen(overload: Overload, arguments: set[str]) -> None:
    """Derivatives by choice: of what `expr` chooses by, in pointwise records."""
    body, what = overload.body, f"{overload.schema.name}: backward"
    assert overload.backward is not None
    for name, chosen in overload.backward.by_choice.items():
        _require([name], arguments, what, overload.backward.location)
        if not isinstance(body, Pointwise):
            raise CodegenError(
                f"{what}: only pointwise records choose by parameters",
                overload.backward.location,
            )
        _check_known(overload, (when for when, _ in chosen), "backward")


def _check_known(overload: Overload, whens: Iterable[When], field: str) -> None:
    assert isinstance(overload.body, Pointwise)
    known = {choice for when in overload.body.expr.whens for choice in when}
    for choice in (c for when in whens for c in when):
        if choice not in known:
            raise CodegenError(
                f"{overload.schema.name}: {field}: `expr` has no choice {choice}",
                choice.value.location,
            )


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
    for value in record.python.arg_aliases.values():
        _require([value], arguments, f"{name}: python.arg_aliases", value.location)
    variadic = record.python.variadic
    if variadic is not None:
        _require([variadic], arguments, f"{name}: python.variadic", variadic.location)


def _check_reduction(overload: Overload, body: Reduction) -> None:
    check_choices([when for when, _ in body.fold], overload.schema)
    for part in ("init", "combine"):
        if bool(getattr(body, part)) == bool(body.fold):
            raise CodegenError(
                f"{overload.schema.name}: a reduction has either {part!r} or 'fold'",
                overload.location,
            )


def _check_fold(overload: Overload, body: Folded | FoldedOfOthers) -> None:
    formulas_of(overload)
    if body.reverse and overload.family != "scan":
        raise CodegenError(
            f"{overload.schema.name}: only a scan goes in `reverse`", overload.location
        )
    dims = {a.name for a in overload.schema.arguments if a.type.base == "int"}
    if overload.family == "scan":
        _require(["dim"], dims, f"{overload.schema.name}: scan", overload.location)


def _check_pointwise(overload: Overload, body: Pointwise) -> None:
    """Every expression and derivative has a legal type in every kind of compute."""
    check_choices(body.expr.whens, overload.schema)
    if body.reduction is not None:
        integers = {a.name for a in overload.schema.arguments if a.type.base == "int"}
        what = f"{overload.schema.name}: reduction"
        _require([body.reduction], integers, what, body.reduction.location)
    _check_known(overload, (when for when, _ in body.dtypes.by_choice), "dtypes")
    for when, exprs in body.expr.by_choice:
        dtypes = body.dtypes.for_choice(when)
        kinds = sorted({KIND_OF_DTYPE[name] for name in dtypes.compute_types})
        usable = _usable(overload.schema, when) | set(body.numbers)
        for kind in kinds:
            text = exprs.for_kind(kind)
            expr = parse(text, usable)
            env = dict.fromkeys(usable, kind)
            _check_kind(expr, text, env, kind)
            if kind in ("float", "complex") and dtypes.promote != "bool_out":
                real = dtypes.promote in ("complex_to_float", "int_to_real")
                env |= dict.fromkeys(("grad", "result"), "float" if real else kind)
                _check_derivatives(overload, when, expr, text, env, kind)


def _usable(schema: Schema, when: When) -> set[str]:
    """The arguments that an expression can compute with where `when` holds."""
    given = {c.argument for c in when if is_given(c)}
    return {
        a.name
        for a in schema.arguments
        if a.type.base in _SCALAR_BASES
        and not a.type.is_list
        and (not a.type.is_optional or a.name in given)
    }


def _check_derivatives(
    overload: Overload,
    when: When,
    expr: Expr,
    text: Text,
    env: dict[str, str],
    kind: str,
) -> None:
    backward = overload.backward
    if backward is not None and not backward.differentiable:
        return
    for argument in overload.schema.arguments:
        given = formula_for(backward, argument.name, when)
        if given is not None:
            if given != "none" and not is_cpp(given):
                _check_kind(parse(given, env.keys()), given, env, kind)
        elif argument.type.is_tensor and argument.name in env:
            try:
                backward_expr(expr, argument.name, kind == "complex")
            except CodegenError as error:
                raise error.at(text.location, str(text)) from None


def is_cpp(formula: Text) -> bool:
    """Whether a formula of a pointwise record is C++ text and no expression."""
    return "ops::" in formula


def formula_for(backward: Backward | None, name: str, when: When) -> Text | None:
    """The given derivative by an argument where `when` holds."""
    if backward is None:
        return None
    for names, formula in backward.formulas.items():
        if name in names:
            return formula
    for chosen, formula in backward.by_choice.get(name, ()):
        if set(chosen) <= set(when):
            return formula
    return None


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
