"""How a pointwise overload maps onto the shared driver of aten/iter/pointwise.h."""

from __future__ import annotations

from dataclasses import dataclass

from .choices import When, is_given
from .expr import (
    Binary,
    Expr,
    Literal,
    Name,
    backward_expr,
    names,
    parse,
    replace,
    substitute,
    walk,
)
from .model import Operator
from .record_checks import formula_for, is_cpp
from .record_dtypes import KINDS
from .record_formulas import KindExpr
from .record_types import Overload, Pointwise, Record
from .schema import Argument
from .yaml_fields import Text

KIND_OF_COMPUTE = {
    "bool": "bool",
    **dict.fromkeys(("u8", "i8", "i16", "i32", "i64", "u16", "u32", "u64"), "int"),
    **dict.fromkeys(("f32", "f64"), "float"),
    **dict.fromkeys(("c64", "c128"), "complex"),
}

# Arguments that are conditions: read as bool and without a say in the result's dtype.
CONDITIONS = frozenset({"condition", "mask"})
_OUT_KIND = {"bool_out": "Bool", "complex_to_float": "Real", "int_to_real": "Real"}


# What a mean's gradient is multiplied by: a number that reductions have by themselves.
SHARE = "share"


@dataclass(frozen=True)
class PointwiseKernel:
    """One kernel table: an expression per kind over named operands and scalars."""

    name: str
    exprs: dict[str, Expr]
    operands: tuple[str, ...]
    scalars: tuple[str, ...]
    compute: tuple[str, ...]
    out_kind: str = "Same"
    when: When = ()
    # Operands of a gradient that the forward kernel rounds where they are numbers.
    rounded: tuple[str, ...] = ()

    @property
    def descriptor(self) -> str:
        return f"op_{self.name}"

    @property
    def conditions(self) -> tuple[str, ...]:
        return tuple(n for n in self.operands if n in CONDITIONS)


@dataclass(frozen=True)
class PointwiseBackward:
    """The gradient of one operand, real and complex, in terms of grad and result.

    `kernel` computes it in one pass where that is more than one operator. Where the
    record gives C++ text, autograd takes that.
    """

    argument: str
    real: Expr
    complex: Expr
    kernel: PointwiseKernel | None
    when: When = ()
    cpp: Text | None = None


def kernels_of(record: Record) -> list[PointwiseKernel]:
    """The forward kernel tables of a record: one per distinct expression."""
    return [k for i, overload in _groups(record) for k in _kernels(record, overload, i)]


def _groups(record: Record) -> list[tuple[int, Overload]]:
    found: dict[tuple, Overload] = {}
    for overload in record.overloads:
        if isinstance(overload.body, Pointwise):
            found.setdefault(_key(overload), overload)
    return list(enumerate(found.values()))


def _kernels(record: Record, overload: Overload, index: int) -> list[PointwiseKernel]:
    choices = _body(overload).expr.by_choice
    group = f"_{index}" if index else ""
    return [
        _kernel(
            record,
            overload,
            f"k_{record.name}{group}" + (f"_v{i}" if len(choices) > 1 else ""),
            when,
            exprs,
        )
        for i, (when, exprs) in enumerate(choices)
    ]


def _kernel(
    record: Record, overload: Overload, name: str, when: When, by_kind: KindExpr
) -> PointwiseKernel:
    dtypes = _body(overload).dtypes.for_choice(when)
    operands, scalars = _roles(record, overload, when)
    kinds = {KIND_OF_COMPUTE[c] for c in dtypes.compute_types}
    known = {*operands, *scalars}
    exprs = {
        kind: parse(by_kind.for_kind(kind), known) for kind in KINDS if kind in kinds
    }
    used = {n for expr in exprs.values() for n in names(expr)}
    return PointwiseKernel(
        name,
        exprs,
        operands,
        tuple(n for n in scalars if n in used),
        dtypes.compute_types,
        _OUT_KIND.get(dtypes.promote, "Same"),
        when,
    )


def op_kernels(op: Operator) -> list[PointwiseKernel]:
    """The kernel tables that an operator chooses from."""
    wanted = _key(op.overload)
    for i, overload in _groups(op.record):
        if _key(overload) == wanted:
            return _kernels(op.record, overload, i)
    raise AssertionError(op.schema.name)


def backward_of(op: Operator) -> list[PointwiseBackward]:
    """The gradients of an operator's operands, for each choice, in their order."""
    backward = op.overload.backward
    if backward is not None and not backward.differentiable:
        return []
    found = []
    for kernel in op_kernels(op):
        for name in kernel.operands:
            if name not in kernel.conditions:
                text = formula_for(backward, name, kernel.when)
                if text == "none":
                    continue
                found.append(_backward(op, kernel, name, text))
    return found


def _backward(
    op: Operator, kernel: PointwiseKernel, name: str, text: Text | None
) -> PointwiseBackward:
    cpp = text if text is not None and is_cpp(text) else None
    body = _body(op.overload)
    numbers = (*kernel.scalars, *body.numbers)
    known = {"grad", "result", *kernel.operands, *numbers, *_scalars(op, kernel)}
    if text is not None and cpp is None:
        real = complex_ = parse(text, known)
    else:
        source = kernel.exprs.get("float") or next(iter(kernel.exprs.values()))
        real = _named_result(backward_expr(source, name), source)
        other = kernel.exprs.get("complex")
        complex_ = real
        if other is not None:
            derived = backward_expr(other, name, is_complex=True)
            complex_ = _named_result(derived, other)
    if body.reduction is not None:
        shared = {"grad": Binary("*", Name("grad"), Name(SHARE))}
        real, complex_ = substitute(real, shared), substitute(complex_, shared)
    fused = None if cpp is not None else _fused(op, kernel, name, real, complex_)
    return PointwiseBackward(name, real, complex_, fused, kernel.when, cpp)


def _scalars(op: Operator, kernel: PointwiseKernel) -> tuple[str, ...]:
    """All numbers that formulas may use, whether the forward expression does or not."""
    _, scalars = _roles(op.record, op.overload, kernel.when)
    shared = (SHARE,) if _body(op.overload).reduction is not None else ()
    return (*scalars, *shared)


def _named_result(derivative: Expr, forward: Expr) -> Expr:
    """Where the derivative repeats the forward value, the saved result serves."""
    if isinstance(forward, Name):
        return derivative
    return replace(derivative, forward, "result")


def _fused(
    op: Operator, kernel: PointwiseKernel, name: str, real: Expr, complex_: Expr
) -> PointwiseKernel | None:
    if sum(not isinstance(n, Name | Literal) for n in walk(real)) < 2:
        return None
    used = names(real) | names(complex_)
    conditions = [n for n in kernel.operands if n in CONDITIONS and n in used]
    operands = [n for n in ("grad", "result", *kernel.operands) if n in used]
    operands = conditions + [n for n in operands if n not in conditions]
    compute = tuple(c for c in kernel.compute if c in ("f32", "f64", "c64", "c128"))
    exprs = {"float": real, "complex": complex_}
    kinds = {KIND_OF_COMPUTE[c] for c in compute}
    exact = _body(op.overload).dtypes.for_choice(kernel.when).exact
    numbers = _numbers_of(op.record)
    return PointwiseKernel(
        f"{kernel.name}_bw_{name}",
        {kind: e for kind, e in exprs.items() if kind in kinds},
        tuple(operands),
        tuple(n for n in _scalars(op, kernel) if n in used),
        compute,
        when=kernel.when,
        rounded=tuple(n for n in operands if n in numbers and n not in exact),
    )


def _numbers_of(record: Record) -> set[str]:
    """The arguments that are numbers in some overload."""
    return {
        a.name
        for overload in record.overloads
        for a in overload.schema.arguments
        if str(a.type) == "Scalar"
    }


def _body(overload: Overload) -> Pointwise:
    assert isinstance(overload.body, Pointwise)
    return overload.body


def _key(overload: Overload) -> tuple:
    body = _body(overload)
    return (body.expr.key, body.dtypes)


def _roles(
    record: Record, overload: Overload, when: When
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """An argument is an operand if some overload of the expression takes a tensor.

    Optional arguments count where `when` says that they are given.
    """
    tensors: set[str] = set()
    for other in record.overloads:
        if isinstance(other.body, Pointwise) and _key(other) == _key(overload):
            tensors |= {a.name for a in other.schema.arguments if a.type.is_tensor}
    given = {choice.argument for choice in when if is_given(choice)}
    arguments: list[Argument] = [
        a
        for a in overload.schema.arguments
        if not a.type.is_optional or a.name in given
    ]
    operands = [a.name for a in arguments if a.name in tensors]
    operands.sort(key=lambda name: name not in CONDITIONS)
    scalars = [a.name for a in arguments if a.name not in tensors]
    return tuple(operands), (*scalars, *_body(overload).numbers)
