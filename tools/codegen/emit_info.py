"""What the run-time record of an operator holds: parts of its entry's C++ text.

`OpInfo` (aten/core/op_info.h) hangs on every entry. Arguments and results refer to the
schema's text by position; dtype rule, axes and expressions are shared by all forms of
an overload.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from . import fold_formula
from .emit_kernels import COMPUTE_ORDER
from .expr import Expr
from .expr_code import encode_variants
from .map_formula import formula_of
from .model import (
    Operator,
    base_ident,
    element_of,
    means_name,
    numbers_name,
    symbolic_rule,
)
from .pointwise import (
    SHARE,
    PointwiseBackward,
    PointwiseKernel,
    backward_of,
    op_kernels,
)
from .record_dtypes import KIND_OF_DTYPE, Dtypes
from .record_types import (
    AUTOCAST,
    FAMILY_TAGS,
    FORM_TAGS,
    TAGS,
    Autocast,
    Composite,
    Folded,
    FoldedOfOthers,
    Foreach,
    Kernel,
    Map,
    MapOfOthers,
    Pointwise,
    PointwiseOfOthers,
    Reduction,
    View,
)
from .reduction import reduction_kernels
from .schema import Argument, Return, Type

# The order of ValueType in aten/core/op_info.h.
VALUE_TYPES = (
    *("Tensor", "Scalar", "int", "SymInt", "float", "bool", "str"),
    *("ScalarType", "Layout", "Device", "MemoryFormat", "Generator"),
)
_CPP_VALUE = {"int": "Int", "float": "Float", "bool": "Bool", "str": "Str"}
_FAMILIES = {
    Pointwise: "Pointwise",
    Reduction: "Reduction",
    Composite: "Composite",
    View: "View",
    Kernel: "Kernel",
    Foreach: "Foreach",
    Map: "Map",
    MapOfOthers: "Map",
    Folded: "Reduction",
    FoldedOfOthers: "Reduction",
    PointwiseOfOthers: "Pointwise",
}
_FORMS = {"functional": "Functional", "inplace": "InPlace", "out": "Out"}
_PROMOTE = {
    "int_to_float": "IntToFloat",
    "int_to_real": "IntToFloat",
    "int_through_double": "IntThroughDouble",
    "first": "First",
    "int_to_long": "IntToLong",
    "float_only": "FloatOnly",
}
_OUT_KIND = {"bool_out": "Bool", "complex_to_float": "Real", "int_to_real": "Real"}
TYPES_OF_KIND = {
    "bool": "kBoolTypes",
    "int": "kIntTypes",
    "float": "kFloatTypes",
    "complex": "kComplexTypes",
}
_NO_RULE = "{}"
_RARE = 1 << 15  # DtypeRule::kRare


def dtype_rule(
    dtypes: Dtypes, compute: Iterable[str], kernel: PointwiseKernel | None = None
) -> str:
    """The DtypeRule of a record as C++ text."""
    kinds = dict.fromkeys(KIND_OF_DTYPE[name] for name in dtypes.inputs)
    accepts = " | ".join(TYPES_OF_KIND[kind] for kind in TYPES_OF_KIND if kind in kinds)
    bits = sum(1 << COMPUTE_ORDER.index(name) for name in compute)
    bits |= _RARE if "u64" in dtypes.inputs else 0
    promote = _PROMOTE.get(dtypes.promote, "Default")
    out = _OUT_KIND.get(dtypes.promote, "Same")
    operands = kernel.operands if kernel else ()
    conditions = len(kernel.conditions) if kernel else 0
    exact = sum(1 << i for i, name in enumerate(operands) if name in dtypes.exact)
    return (
        f"{{{accepts}, {bits}, Promote::{promote}, OutKind::{out}, {conditions}, "
        f"{exact}}}"
    )


def fused_rule(kernel: PointwiseKernel) -> str:
    """The rule of a fused backward kernel: whatever dtype the gradient has.

    It compares with the numbers that the forward kernel compared with.
    """
    bits = sum(1 << COMPUTE_ORDER.index(name) for name in kernel.compute)
    conditions = len(kernel.conditions)
    exact = 0xFF & ~sum(
        1 << i for i, name in enumerate(kernel.operands) if name in kernel.rounded
    )
    rule = f"{bits}, Promote::First, OutKind::Same, {conditions}, {exact:#x}"
    return f"{{~DtypeSet{{0}}, {rule}}}"


def rule_of(op: Operator) -> str:
    """The rule of an operator of the pointwise or reduction family."""
    body = op.overload.body
    if isinstance(body, Pointwise):
        return dtype_rule(body.dtypes, body.dtypes.compute_types, op_kernels(op)[0])
    assert isinstance(body, Reduction)
    return dtype_rule(body.dtypes, body.dtypes.compute_types)


def kernel_rule(op: Operator, kernel: PointwiseKernel) -> str:
    """The rule of one of a pointwise operator's kernels."""
    dtypes = op.overload.body.dtypes.for_choice(kernel.when)
    return dtype_rule(dtypes, kernel.compute, kernel)


def info_tables(op: Operator) -> list[str]:
    """C++ definitions: `info_IDENT` and what it refers to."""
    record = f"record_{base_ident(op)}"
    values = [_value(part, text) for part, text in _parts(op)]
    name = f"values_{op.ident}"
    lines = _record_tables(op, record) if op.form == "functional" else []
    counts = f"{len(op.schema.arguments)}, {len(op.schema.returns)}"
    body = ", ".join(values)
    if values:
        lines.append(f"static constexpr ArgInfo {name}[] = {{{body}}};")
    element = element_of(op)
    called = f", &entries::{element.ident}" if element else ""
    lines.append(
        f"static constexpr OpInfo info_{op.ident} = {{&{record}, "
        f"{name if values else 'nullptr'}, {counts}, Form::{_FORMS[op.form]}, "
        f"{_tags(op)}u{called}}};"
    )
    return lines


def _tags(op: Operator) -> int:
    numbers = [TAGS[tag] for tag in op.overload.tags]
    if not _reduces(op):
        numbers.append(_family_tag(op))
    numbers.append(FORM_TAGS.get(op.form))
    return sum(1 << number for number in numbers if number is not None)


def _family_tag(op: Operator) -> int | None:
    """PyTorch has that of reductions where they have one tensor and a kernel."""
    composite = isinstance(op.overload.body, FoldedOfOthers)
    if composite or len(op.functional.tensor_args) > 1 and _is_fold(op):
        return None
    return FAMILY_TAGS.get(op.overload.family)


def _is_fold(op: Operator) -> bool:
    return isinstance(op.overload.body, Folded | FoldedOfOthers)


def _reduces(op: Operator) -> bool:
    return getattr(op.overload.body, "reduction", None) is not None


def _policies(autocast: Autocast) -> str:
    devices = (autocast.cpu, autocast.cuda)
    return ", ".join(f"Autocast::{AUTOCAST[policy]}" for policy in devices)


def _record_tables(op: Operator, name: str) -> list[str]:
    overload, body = op.overload, op.overload.body
    lines = []
    words = expression_words(op)
    pointer = "nullptr"
    if words:
        pointer = f"words_{op.ident}"
        inner = ", ".join(map(str, words))
        lines.append(f"static constexpr uint16_t {pointer}[] = {{{inner}}};")
    formula = isinstance(body, Pointwise | Reduction)
    rule = rule_of(op) if formula else _NO_RULE
    backward = overload.backward
    differentiable = backward is None or backward.differentiable
    means, numbers = means_name(op), numbers_name(op)
    axes = "nullptr"
    if isinstance(body, Kernel) and body.axes is not None:
        axes = f'"{body.axes}"'
    elif _reduces(op):
        operands = ", ".join("..." for _ in op.functional.tensor_args)
        axes = f'"{operands} -> ... /{body.reduction}"'
    family = "Scan" if overload.family == "scan" else _FAMILIES[type(body)]
    fields = (
        f"Family::{family}, {str(differentiable).lower()}, "
        f"{str(isinstance(body, Composite | Foreach)).lower()}, "
        f"{_policies(overload.autocast)}, {rule}, {pointer}, {axes}"
    )
    rule = symbolic_rule(op)
    kernels = op_kernels(op) if isinstance(body, Pointwise) else []
    loops = f"&{kernels[0].descriptor}" if len(kernels) == 1 else None
    pointers = [
        f"reinterpret_cast<void*>(&native::{means})" if means else None,
        f"&rule_{op.ident}" if rule else None,
        loops,
        f"reinterpret_cast<void*>(&native::{numbers})" if numbers else None,
    ]
    if rule is not None:
        lines += _symbolic_rule(op, *rule)
    while pointers and pointers[-1] is None:
        pointers.pop()
    fields += "".join(f", {pointer or 'nullptr'}" for pointer in pointers)
    constant = "const" if means or rule or numbers else "constexpr"
    lines.append(f"static {constant} RecordInfo {name} = {{{fields}}};")
    return lines


def _symbolic_rule(op: Operator, name: str, signature: str) -> list[str]:
    result, _, types = signature.partition("(")
    if result == "void":
        separator = ", " if types != ")" else ""
        types = f"{types.removesuffix(')')}{separator}Plan<SymInt>&)"
    function = f"static_cast<{result} (*)({types}>(&native::{name}<SymInt>)"
    return [
        f"static const SymbolicRule rule_{op.ident} = {{",
        f"    reinterpret_cast<void*>({function}),",
        f"    &SymbolicCaller<{signature}>::call}};",
    ]


# Expressions ------------------------------------------------------------------


def expression_words(op: Operator) -> list[int]:
    """The words of all expressions of an operator given by a formula."""
    variants = list(expression_variants(op))
    if not variants:
        return []
    names = [a.name for a in op.functional.arguments]
    return encode_variants(variants, names, number_names(op))


def number_names(op: Operator) -> list[str]:
    """Names in expressions that are no arguments of the schema."""
    body = op.overload.body
    if isinstance(body, Folded | FoldedOfOthers):
        return fold_formula.number_names(op.overload)
    if not isinstance(body, Pointwise):
        return []
    return [*body.numbers, *([SHARE] if body.reduction is not None else [])]


def expression_variants(
    op: Operator,
) -> Iterator[tuple[str, dict[tuple[str, str, int], Expr]]]:
    """The expressions of a formula for each choice: (role, kind, argument) to tree."""
    body = op.overload.body
    if isinstance(body, Pointwise):
        gradients = backward_of(op)
        for kernel in op_kernels(op):
            own = [part for part in gradients if part.when == kernel.when]
            text = ", ".join(map(str, kernel.when))
            yield text, dict(_pointwise_sections(op, kernel, own))
    elif isinstance(body, Reduction):
        for reduction in reduction_kernels(op.record, op.overload):
            yield (
                ", ".join(map(str, reduction.when)),
                {
                    (role, kind, 0): expr
                    for role in ("init", "map", "combine", "finish")
                    for kind, expr in getattr(reduction, role).items()
                },
            )
    elif isinstance(body, Map | MapOfOthers):
        yield "", {("element", "float", 0): formula_of(op.overload)}
    elif isinstance(body, Folded | FoldedOfOthers):
        yield from fold_formula.variants(op.overload)
    elif isinstance(body, PointwiseOfOthers):
        yield "", {("forward", "float", 0): fold_formula.expression_of(op.overload)}


def _pointwise_sections(
    op: Operator, kernel: PointwiseKernel, gradients: list[PointwiseBackward]
) -> Iterator[tuple[tuple[str, str, int], Expr]]:
    names = [a.name for a in op.functional.arguments]
    for kind, expr in kernel.exprs.items():
        yield ("forward", kind, 0), expr
    for part in gradients:
        index = names.index(part.argument)
        yield ("gradient", "float", index), part.real
        if part.complex != part.real:
            yield ("gradient", "complex", index), part.complex


# Arguments and results ----------------------------------------------------------


def _parts(op: Operator) -> Iterator[tuple[Argument | Return, tuple[int, str]]]:
    """Arguments and results, with the place of their text in the schema's."""
    text = str(op.schema)
    at = text.index("(") + 1
    for part in (*op.schema.arguments, *op.schema.returns):
        if isinstance(part, Return) and at < text.index(") -> "):
            at = text.index(") -> ") + 5
        printed = str(part)
        at = text.index(printed, at)
        yield part, (at, printed)
        at += len(printed)


def _value(part: Argument | Return, place: tuple[int, str]) -> str:
    at, _ = place
    kind = part.type
    name = part.name or ""
    name_at = at + len(str(kind)) + 1 if name else 0
    default_at = default_size = 0
    if isinstance(part, Argument) and part.has_default:
        default_at = name_at + len(name) + 1
        default_size = at + len(str(part)) - default_at
    flags = "|".join(_flags(part)) or "0"
    size = -1 if kind.list_size is None else kind.list_size
    cpp = _CPP_VALUE.get(kind.base, kind.base)
    return (
        f"{{{name_at}, {default_at}, {len(name)}, {default_size}, "
        f"ValueType::{cpp}, {flags}, {_alias_bits(kind)}, {size}}}"
    )


def _flags(part: Argument | Return) -> Iterator[str]:
    kind, alias = part.type, part.type.any_alias
    inner = kind.element if kind.is_optional else kind
    given = {
        "kOptional": kind.is_optional,
        "kList": kind.is_list,
        "kOptionalElement": kind.is_list and inner.element.is_optional,
        "kKeywordOnly": isinstance(part, Argument) and part.kwarg_only,
        "kHasDefault": isinstance(part, Argument) and part.has_default,
        "kWritten": alias is not None and alias.write,
    }
    return (f"ArgInfo::{name}" for name, holds in given.items() if holds)


def _alias_bits(kind: Type) -> int:
    alias = kind.any_alias
    if alias is None:
        return 0
    bits = 0
    for name in (*alias.before, *alias.after):
        bits |= 0x80 if name == "*" else 1 << min(ord(name) - ord("a"), 6)
    return bits
