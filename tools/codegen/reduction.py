"""How a reduction overload maps onto the shared driver of aten/iter/reduce.h."""

from __future__ import annotations

from dataclasses import dataclass

from .choices import When
from .expr import Expr, parse
from .model import Operator
from .pointwise import KIND_OF_COMPUTE
from .record_dtypes import KINDS
from .record_formulas import Fold
from .record_types import Overload, Record, Reduction

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
    has_identity: bool = True
    when: When = ()
    # Whether results are converted to out= instead of computed in its dtype.
    casts_out: bool = False


def reduction_kernels(record: Record, overload: Overload) -> list[ReductionKernel]:
    """One kernel for each choice; overloads of a record share them."""
    body = overload.body
    assert isinstance(body, Reduction)
    folds = body.folds
    return [
        _kernel(
            overload,
            f"r_{record.name}" + (f"_v{i}" if len(folds) > 1 else ""),
            when,
            fold,
        )
        for i, (when, fold) in enumerate(folds)
    ]


def _kernel(overload: Overload, name: str, when: When, fold: Fold) -> ReductionKernel:
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

    finish = {"acc": fold.finish} if fold.finish is not None else {}
    known = set(scalars)
    return ReductionKernel(
        name,
        exprs(fold.init, "0", set()),
        exprs(fold.map, "self", {"self", *known}),
        exprs(fold.combine, "a + b", {"a", "b"}),
        exprs(finish, "acc", {"acc", "count", *known}),
        scalars,
        _compute(body),
        out_kind(body),
        fold.empty != "error",
        when,
        body.dtypes.promote == "float_only",
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


def descriptor(op: Operator, kernel: ReductionKernel, rule: str) -> str:
    """The constant that describes the reduction; `rule` is its DtypeRule."""
    identity = str(kernel.has_identity).lower()
    return (
        f"static constexpr ReduceOp op_{kernel.name} = {{"
        f'"{op.record.name}", {rule}, {identity}, TAEDA_LEVELS({kernel.name})}};'
    )


def reduction_call(op: Operator, kernel: ReductionKernel) -> list[str]:
    """The statement of one form that runs a kernel."""
    call = _reduce_expression(op, kernel)
    if op.form == "functional":
        return [f"return {call};"]
    if op.form == "inplace":
        return [f'write_inplace("{op.record.name}", {call}, self);']
    out = op.schema.mutable_args[0].name
    write = "write_truth" if kernel.out_kind == "Bool" else "derived::write_exact"
    if kernel.casts_out:
        write = "write_out"
    return [f'{write}("{op.record.name}", {call}, {out});']


def _reduce_expression(op: Operator, kernel: ReductionKernel) -> str:
    arguments = {a.name: a for a in op.functional.arguments}
    fields = []
    if "dim" in arguments:
        kind = arguments["dim"].type
        single = not kind.is_list
        fields.append(".dims = IntArrayRef(dim)" if single else ".dims = dim")
    if "keepdim" in arguments:
        fields.append(".keepdim = keepdim")
    if "dtype" in arguments:
        given = "dtype"
        if op.form == "out" and kernel.out_kind == "Same" and not kernel.casts_out:
            # What is not said is the dtype of the result.
            out = op.schema.mutable_args[0].name
            given = f'derived::dtype_into("{op.record.name}", dtype, {out})'
        fields.append(f".dtype = {given}")
    scalars = ", ".join(kernel.scalars)
    parts = ", ".join(fields)
    return f"reduce(op_{kernel.name}, self, {{{parts}}}, {{{scalars}}})"
