"""How a reduction overload maps onto the shared driver of aten/iter/reduce.h."""

from __future__ import annotations

from dataclasses import dataclass

from .expr import Expr, parse
from .model import Operator
from .pointwise import KIND_OF_COMPUTE
from .record_types import KINDS, Overload, Record, Reduction

# Arguments that say what to reduce rather than how.
_GEOMETRY = ("self", "dim", "keepdim", "dtype")


@dataclass(frozen=True)
class ReductionKernel:
    """The expressions of one reduction: an accumulator, folded and combined."""

    name: str
    init: dict[str, Expr]
    map: dict[str, Expr]
    combine: dict[str, Expr]
    finish: dict[str, Expr]
    scalars: tuple[str, ...]
    compute: tuple[str, ...]
    out_kind: str


def reduction_kernel(record: Record, overload: Overload) -> ReductionKernel:
    """The kernel of an overload; all overloads of a record share one."""
    body = overload.body
    assert isinstance(body, Reduction)
    scalars = scalars_of(overload)
    kinds = [k for k in KINDS if k in {KIND_OF_COMPUTE[c] for c in _compute(body)}]

    def exprs(table: dict[str, str], default: str, known: set[str]) -> dict[str, Expr]:
        text = {**{"default": default}, **table}
        return {
            kind: parse(text.get(kind, text.get("acc", text["default"])), known)
            for kind in kinds
        }

    finish = {"acc": body.finish} if body.finish is not None else {}
    known = set(scalars)
    return ReductionKernel(
        f"r_{record.name}",
        exprs(body.init, "0", set()),
        exprs(body.map, "self", {"self", *known}),
        exprs(body.combine, "a + b", {"a", "b"}),
        exprs(finish, "acc", {"acc", "count", *known}),
        scalars,
        _compute(body),
        out_kind(body),
    )


def _compute(body: Reduction) -> tuple[str, ...]:
    return body.dtypes.compute_types


def out_kind(body: Reduction) -> str:
    """OutKind of the driver."""
    kinds = {"bool_out": "Bool", "complex_to_float": "Real"}
    return kinds.get(body.dtypes.promote, "Same")


def scalars_of(overload: Overload) -> tuple[str, ...]:
    """Scalar parameters of the expressions."""
    arguments = overload.schema.arguments
    return tuple(a.name for a in arguments if a.name not in _GEOMETRY)


def descriptor(op: Operator, rule: str) -> str:
    """The constant that describes the reduction; `rule` is its DtypeRule."""
    body = op.overload.body
    assert isinstance(body, Reduction)
    name = f"r_{op.record.name}"
    identity = "false" if body.empty == "error" else "true"
    return (
        f"static constexpr ReduceOp op_{name} = {{"
        f'"{op.record.name}", {rule}, {identity}, TAEDA_LEVELS({name})}};'
    )


def reduction_call(op: Operator) -> list[str]:
    """The body of the backend function of one form."""
    call = _reduce_expression(op)
    if op.form == "functional":
        return [f"return {call};"]
    if op.form == "inplace":
        return [f'write_inplace("{op.record.name}", {call}, self);']
    out = op.schema.mutable_args[0].name
    return [f'write_out("{op.record.name}", {call}, {out});']


def _reduce_expression(op: Operator) -> str:
    arguments = {a.name: a for a in op.functional.arguments}
    fields = []
    if "dim" in arguments:
        kind = arguments["dim"].type
        single = not kind.is_list
        fields.append(".dims = IntArrayRef(dim)" if single else ".dims = dim")
    if "keepdim" in arguments:
        fields.append(".keepdim = keepdim")
    if "dtype" in arguments:
        fields.append(".dtype = dtype" if op.form != "out" else ".dtype = dtype")
    scalars = ", ".join(scalars_of(op.overload))
    parts = ", ".join(fields)
    return f"reduce(op_r_{op.record.name}, self, {{{parts}}}, {{{scalars}}})"
