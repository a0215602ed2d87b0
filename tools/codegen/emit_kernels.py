"""Prints the pointwise and reduction kernels, compiled once per ISA level."""

from __future__ import annotations

import re
from collections.abc import Iterable

from .expr import Binary, Call, Expr, Literal, Name, cpp_block, walk
from .model import Operator, shard_of
from .pointwise import KIND_OF_COMPUTE, PointwiseKernel, backward_of, kernels_of
from .record_types import Pointwise, Reduction
from .reduction import ReductionKernel, reduction_kernels
from .writer import Output

KERNEL_SHARDS = 12
# The types that kernels compute in; `Compute` is printed from this list.
COMPUTE_ORDER = (
    *("bool", "u8", "i8", "i16", "i32", "i64"),
    *("f32", "f64", "c64", "c128"),
)
CPP_TYPE = {
    "bool": "bool",
    "u8": "unsigned char",
    "i8": "signed char",
    "i16": "short",
    "i32": "int",
    "i64": "int64_t",
    "f32": "float",
    "f64": "double",
    "c64": "complex<float>",
    "c128": "complex<double>",
}
RESULT = {"Same": "T", "Bool": "bool", "Real": "RealOf<T>"}


def emit(operators: Iterable[Operator], out: Output) -> None:
    """One file per shard, with the tables of the shard's records."""
    shards: list[dict[str, list[str]]] = [{} for _ in range(KERNEL_SHARDS)]
    for op in operators:
        shard = shards[shard_of(op.record.name, KERNEL_SHARDS)]
        if isinstance(op.overload.body, Pointwise):
            for kernel in all_kernels(op):
                shard[kernel.name] = kernel_functions(kernel) + [_table(kernel)]
        elif isinstance(op.overload.body, Reduction):
            for reduction in reduction_kernels(op.record, op.overload):
                shard[reduction.name] = _reduction(reduction)
    for i, kernels in enumerate(shards):
        out.write(f"kernels/kernels_{i}.cpp", _file(kernels))
    out.write("include/compute.h", _compute_header())


def _compute_header() -> str:
    names = ", ".join(name.title() for name in COMPUTE_ORDER)
    return f"""// The types that kernels compute in; every dtype maps to one of them.
#pragma once

#include <cstdint>

namespace taeda {{
enum class Compute : uint8_t {{ {names} }};
inline constexpr int kNumCompute = {len(COMPUTE_ORDER)};
}}  // namespace taeda
"""


def all_kernels(op: Operator) -> list[PointwiseKernel]:
    """Forward and fused backward kernels that an operator may run."""
    backward = [b.kernel for b in backward_of(op) if b.kernel is not None]
    return kernels_of(op.record) + backward


def _file(kernels: dict[str, list[str]]) -> str:
    lines = ["#include <taeda/aten/native/cpu/kernels/pointwise.h>"]
    lines += ["#include <taeda/aten/native/cpu/kernels/reduce.h>", ""]
    lines.append("TAEDA_ISA_BEGIN")
    for text in kernels.values():
        lines += ["namespace {", *text[:-1], "}  // namespace", text[-1]]
    return "\n".join([*lines, "TAEDA_ISA_END", ""])


def kernel_functions(kernel: PointwiseKernel) -> list[str]:
    """A loop template for each kind of compute type, and those for single values."""
    lines: list[str] = []
    for kind in kernel.exprs:
        lines += _kernel_function(kernel, kind)
    for name in kernel.operands if may_be_single(kernel) else ():
        lines += _kernel_function(kernel, "float", name)
    return lines


def may_be_single(kernel: PointwiseKernel) -> bool:
    """Whether the loop is so short that filling a row with one value would show."""
    expr = kernel.exprs.get("float")
    if expr is None or len(kernel.operands) != 2 or kernel.conditions:
        return False
    parts = [e for e in walk(expr) if not isinstance(e, (Name, Literal))]
    return len(parts) <= 2 and all(isinstance(e, Binary) for e in parts)


def _kernel_function(
    kernel: PointwiseKernel, kind: str, single: str | None = None
) -> list[str]:
    """One loop template; the operand `single` is one value for all elements."""
    suffix = "" if single is None else f"_single_{single}"
    lines = [
        "template <class T>",
        f"void {kernel.name}_{kind}{suffix}("
        "void* const* p_, const void* s_, int64_t n_) {",
        "  using R [[maybe_unused]] = RealOf<T>;",
    ]
    result = RESULT[kernel.out_kind]
    lines.append(f"  {result}* out_ = static_cast<{result}*>(p_[0]);")
    kinds = {
        name: "bool" if name in kernel.conditions else kind
        for name in (*kernel.operands, *kernel.scalars)
    }
    want = wanted_kind(kind, kernel.out_kind)
    expr = kernel.exprs[kind]
    statements, value = print_expr(expr, kind, kinds, want)
    # What is printed may do without an operand that the expression names.
    used = _words([*statements, value])
    loads = {}
    for i, name in enumerate(kernel.operands, start=1):
        if name not in used:
            continue
        stored = "bool" if name in kernel.conditions else "T"
        if name == single:
            lines.append(f"  const T {name} = *static_cast<const T*>(p_[{i}]);")
            continue
        lines.append(
            f"  const {stored}* in{i}_ = static_cast<const {stored}*>(p_[{i}]);"
        )
        loads[name] = f"    const {stored} {name} = element(in{i}_, i_);"
    for i, name in enumerate(kernel.scalars):
        if name in used:
            lines.append(f"  const T {name} = scalar<T>(s_, {i});")
    store = f"out_[i_] = static_cast<{result}>({value});"
    body = [*loads.values(), *(f"    {s}" for s in [*statements, store])]
    return [*lines, *_loops(expr, kind, kinds, loads, body), "}"]


def _words(lines: Iterable[str]) -> set[str]:
    return set(re.findall(r"\w+", " ".join(lines)))


# Functions with a quick form for limited arguments, which a loop asks a block of
# them for: Note [Huge arguments of sin] in aten/math/trig.h, and Note [Quotients of
# near integers] in aten/math/integer.h.
_LIMITED = {
    "float": ("sin", "cos", "tan"),
    "int": ("div_trunc", "floor_divide", "fmod", "remainder"),
}
_LIMITED_CALL = {
    kind: re.compile(rf"\bmath::({'|'.join(names)})\(")
    for kind, names in _LIMITED.items()
}


def any_argument(line: str) -> str:
    """The line with the forms of sin, cos and tan that take huge arguments."""
    return _LIMITED_CALL["float"].sub(r"math::\1_any(", line)


def _near_argument(line: str) -> str:
    return _LIMITED_CALL["int"].sub(r"math::\1_near(", line)


def _loops(
    expr: Expr,
    kind: str,
    kinds: dict[str, str],
    loads: dict[str, str],
    body: list[str],
) -> list[str]:
    """The loop over the elements; two loops by blocks where arguments may be huge."""
    limited = _LIMITED.get(kind, ())
    calls = [e for e in walk(expr) if isinstance(e, Call) and e.function in limited]
    if not calls:
        return [
            "TAEDA_INDEPENDENT",
            "  for (int64_t i_ = 0; i_ < n_; ++i_) {",
            *body,
            "  }",
        ]
    test = []
    for arguments_of in dict.fromkeys(call.args for call in calls):
        arguments = [print_expr(a, kind, kinds, kind) for a in arguments_of]
        statements = [line for lines, _ in arguments for line in lines]
        values = ", ".join(value for _, value in arguments)
        test += ["    {", *statements, f"    far_ |= math::is_far({values});", "    }"]
    tested = _words(test)
    if kind == "float":
        bits, near, far = "typename math::FloatTraits<T>::Bits", str, any_argument
    else:
        bits, near, far = "math::BitsOf<double>", _near_argument, str
    loop = "  for (int64_t i_ = b_; i_ < e_; ++i_) {"
    return [
        "  for (int64_t b_ = 0, e_; b_ < n_; b_ = e_) {",
        "  e_ = n_ - b_ < 1024 ? n_ : b_ + 1024;",
        f"  {bits} far_ = 0;",
        loop,
        *(load for name, load in loads.items() if name in tested),
        *test,
        "  }",
        "  if (far_ == 0) {",
        "TAEDA_INDEPENDENT",
        loop,
        *map(near, body),
        "  }",
        "  } else {",
        loop,
        *map(far, body),
        "  }",
        "  }",
        "  }",
    ]


def print_expr(
    expr: Expr, kind: str, kinds: dict[str, str], want: str
) -> tuple[list[str], str]:
    return cpp_block(expr, kind, kinds, want)


def wanted_kind(kind: str, out_kind: str) -> str:
    if out_kind == "Bool":
        return "bool"
    return "float" if out_kind == "Real" and kind == "complex" else kind


def _table(kernel: PointwiseKernel) -> str:
    entries = []
    for name in COMPUTE_ORDER:
        if name in kernel.compute:
            kind = KIND_OF_COMPUTE[name]
            entries.append(f"&{kernel.name}_{kind}<{CPP_TYPE[name]}>")
        else:
            entries.append("nullptr")
    each = ", ".join(entries)
    single = ", {}"
    if may_be_single(kernel):
        single = ", {" + ", ".join(_singles(kernel, n) for n in kernel.operands) + "}"
    return f"extern const ChunkTable {kernel.name} = {{{{{each}}}{single}}};"


def _singles(kernel: PointwiseKernel, operand: str) -> str:
    """The table's loops for one value of an operand, in float and double."""
    loops = (
        f"&{kernel.name}_float_single_{operand}<{CPP_TYPE[name]}>"
        if name in kernel.compute
        else "nullptr"
        for name in ("f32", "f64")
    )
    return "{" + ", ".join(loops) + "}"


def _reduction(kernel: ReductionKernel) -> list[str]:
    """A policy struct per kind, and the table of the loops over it."""
    entries = []
    for name in COMPUTE_ORDER:
        if name in kernel.compute:
            # g++ 12 has no vectors of bool. A result that is only tested is the
            # same for bytes.
            bytewise = name == "bool" and kernel.out_kind == "Bool"
            kind = "int" if bytewise else KIND_OF_COMPUTE[name]
            element = CPP_TYPE["u8" if bytewise else name]
            policy = f"{kernel.name}_{kind}<{element}>"
            entries.append(f"TAEDA_REDUCE_LOOPS({policy})")
        else:
            entries.append("{}")
    table = f"extern const ReduceTable {kernel.name} = {{{', '.join(entries)}}};"
    return [*policies(kernel), table]


def policies(kernel: ReductionKernel, slots: bool = True) -> list[str]:
    """The struct of scalar functions that the loops are templates over.

    On the CPU scalars lie in untyped slots, on the device in an array of the element.
    """
    lines: list[str] = []
    result = RESULT[kernel.out_kind]
    pointer = "const void* s" if slots else "const T* s"
    for kind in kernel.init:
        named = [f"T {name}" for name in kernel.scalars]
        loads = [
            f"scalar<T>(s, {i})" if slots else f"s[{i}]"
            for i in range(len(kernel.scalars))
        ]
        # Device kernels are named by compute type, of which bool is also a kind.
        name = f"{kernel.name}_{kind}" + ("" if slots else "_fold")
        lines += ["template <class T>", f"struct {name} {{"]
        lines += ["  using Element = T;", "  using R = RealOf<T>;"]
        lines.append(f"  using Result = {result};")
        for name, expr, extra, out in (
            ("init", kernel.init[kind], [], "T"),
            ("map", kernel.map[kind], ["T self", *named], "T"),
            ("combine", kernel.combine[kind], ["T a", "T b"], "T"),
            ("finish", kernel.finish[kind], ["T acc", "T count", *named], result),
        ):
            want = wanted_kind(kind, kernel.out_kind if name == "finish" else "Same")
            lines += _policy_function(name, expr, kind, extra, out, want)
        lines.append(f"  static TAEDA_FN T map_slots(T self, {pointer}) {{")
        lines.append(f"    return map({', '.join(['self', *loads])});")
        lines.append("  }")
        lines.append(
            f"  static TAEDA_FN {result} finish_slots(T acc, T count, {pointer}) {{"
        )
        lines.append(f"    return finish({', '.join(['acc', 'count', *loads])});")
        lines += ["  }", "};"]
    return lines


def _policy_function(
    name: str, expr: Expr, kind: str, parameters: list[str], result: str, want: str
) -> list[str]:
    kinds = {p.split()[-1]: kind for p in parameters}
    statements, value = print_expr(expr, kind, kinds, want)
    head = f"  static TAEDA_FN {result} {name}({', '.join(parameters)}) {{"
    body = [f"    {s}" for s in statements]
    return [head, *body, f"    return static_cast<{result}>({value});", "  }"]
