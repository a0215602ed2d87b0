"""How a pointwise overload maps onto the shared driver of aten/iter/pointwise.h."""

from __future__ import annotations

from dataclasses import dataclass

from .expr import Expr, Literal, Name, backward_expr, names, parse, replace, walk
from .model import Operator
from .record_types import KINDS, Overload, Pointwise, Record
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


@dataclass(frozen=True)
class PointwiseForm:
    """What the C++ call of one operator needs."""

    table: str
    descriptor: str
    operands: tuple[str, ...]
    scalars: tuple[str, ...]


@dataclass(frozen=True)
class PointwiseKernel:
    """One kernel table: an expression per kind over named operands and scalars."""

    name: str
    exprs: dict[str, Expr]
    operands: tuple[str, ...]
    scalars: tuple[str, ...]
    compute: tuple[str, ...]
    out_kind: str = "Same"

    @property
    def conditions(self) -> tuple[str, ...]:
        return tuple(n for n in self.operands if n in CONDITIONS)


@dataclass(frozen=True)
class PointwiseBackward:
    """The gradient of one operand, real and complex, in terms of grad and result.

    `kernel` computes it in one pass where that is more than one operator.
    """

    argument: str
    real: Expr
    complex: Expr
    kernel: PointwiseKernel | None


def kernels_of(record: Record) -> list[PointwiseKernel]:
    """The forward kernel tables of a record: one per distinct expression."""
    return [_kernel(record, overload, i) for i, overload in _groups(record)]


def _groups(record: Record) -> list[tuple[int, Overload]]:
    found: dict[tuple, Overload] = {}
    for overload in record.overloads:
        if isinstance(overload.body, Pointwise):
            found.setdefault(_key(overload), overload)
    return list(enumerate(found.values()))


def _kernel(record: Record, overload: Overload, index: int) -> PointwiseKernel:
    body = _body(overload)
    operands, scalars = _roles(record, overload)
    suffix = f"_{index}" if index else ""
    kinds = {KIND_OF_COMPUTE[c] for c in body.dtypes.compute_types}
    known = {*operands, *scalars}
    exprs = {
        kind: parse(body.expr.for_kind(kind), known) for kind in KINDS if kind in kinds
    }
    return PointwiseKernel(
        f"k_{record.name}{suffix}",
        exprs,
        operands,
        scalars,
        body.dtypes.compute_types,
        _OUT_KIND.get(body.dtypes.promote, "Same"),
    )


def kernel_of(op: Operator) -> PointwiseKernel:
    """The kernel table that an operator runs."""
    wanted = _key(op.overload)
    for i, overload in _groups(op.record):
        if _key(overload) == wanted:
            return _kernel(op.record, overload, i)
    raise AssertionError(op.schema.name)


def backward_of(op: Operator) -> list[PointwiseBackward]:
    """The gradients of an operator's operands, in the order of its arguments."""
    kernel = kernel_of(op)
    backward = op.overload.backward
    if backward is not None and not backward.differentiable:
        return []
    formulas = backward.formulas if backward else {}
    given = {name: text for names_, text in formulas.items() for name in names_}
    found = []
    for name in kernel.operands:
        if name in kernel.conditions:
            continue
        found.append(_backward(kernel, name, given.get(name)))
    return found


def _backward(
    kernel: PointwiseKernel, name: str, text: Text | None
) -> PointwiseBackward:
    known = {"grad", "result", *kernel.operands, *kernel.scalars}
    if text is not None:
        real = complex_ = parse(text, known)
    else:
        source = kernel.exprs.get("float") or next(iter(kernel.exprs.values()))
        real = _named_result(backward_expr(source, name), source)
        other = kernel.exprs.get("complex")
        complex_ = real
        if other is not None:
            derived = backward_expr(other, name, is_complex=True)
            complex_ = _named_result(derived, other)
    return PointwiseBackward(name, real, complex_, _fused(kernel, name, real, complex_))


def _named_result(derivative: Expr, forward: Expr) -> Expr:
    """Where the derivative repeats the forward value, the saved result serves."""
    if isinstance(forward, Name):
        return derivative
    return replace(derivative, forward, "result")


def _fused(
    kernel: PointwiseKernel, name: str, real: Expr, complex_: Expr
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
    return PointwiseKernel(
        f"{kernel.name}_bw_{name}",
        {kind: e for kind, e in exprs.items() if kind in kinds},
        tuple(operands),
        tuple(n for n in kernel.scalars if n in used),
        compute,
    )


def pointwise_form(op: Operator) -> PointwiseForm:
    """The C++ call of one operator."""
    kernel = kernel_of(op)
    return PointwiseForm(
        table=kernel.name,
        descriptor=f"op_{kernel.name}",
        operands=kernel.operands,
        scalars=kernel.scalars,
    )


def _body(overload: Overload) -> Pointwise:
    assert isinstance(overload.body, Pointwise)
    return overload.body


def _key(overload: Overload) -> tuple:
    body = _body(overload)
    exprs = tuple(sorted((k, str(v)) for k, v in body.expr.by_kind.items()))
    return (exprs, body.dtypes)


def _roles(
    record: Record, overload: Overload
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """An argument is an operand if some overload of the expression takes a tensor."""
    tensors: set[str] = set()
    for other in record.overloads:
        if isinstance(other.body, Pointwise) and _key(other) == _key(overload):
            tensors |= {a.name for a in other.schema.arguments if a.type.is_tensor}
    arguments: list[Argument] = list(overload.schema.arguments)
    operands = [a.name for a in arguments if a.name in tensors]
    operands.sort(key=lambda name: name not in CONDITIONS)
    scalars = [a.name for a in arguments if a.name not in tensors]
    return tuple(operands), tuple(scalars)
