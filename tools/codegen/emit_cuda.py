"""Prints the CUDA text of every pointwise and reduction record.

The scalar text is that of the CPU kernels: a functor for each kind of compute type.
`cuda/texts.inc` holds them for libtaeda_cuda, which puts a functor into a loop over the
types of a call and has NVRTC compile that; `cuda/formulas.inc` has the formulas of
index maps, reductions and scans beside a kernel (formula_cuda.py). `cuda/NAME.cu`, one
file per record, has the functors in loops over compute types, over
aten/native/cuda/prelude.cuh; the tests compile those for sm_90 and run them on the
host.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from .emit_kernels import (
    COMPUTE_ORDER,
    CPP_TYPE,
    RESULT,
    all_kernels,
    any_argument,
    policies,
    print_expr,
    wanted_kind,
)
from .formula_cuda import has_formula, row
from .model import Operator
from .pointwise import KIND_OF_COMPUTE, PointwiseKernel
from .record_types import Pointwise, Reduction
from .reduction import ReductionKernel, reduction_kernels
from .writer import Output

_DEVICE_TYPE = {**CPP_TYPE, "i64": "Long"}
ROOT = Path(__file__).resolve().parents[2]
# What device text includes; NVRTC gets it from memory.
HEADERS = (
    "aten/math/*.h",
    "aten/native/cuda/*.cuh",
    "c10/core/philox.h",
    *(f"c10/util/{name}.h" for name in ("complex", "small_float", "half")),
    *(f"c10/util/{name}.h" for name in ("bfloat16", "float8")),
)


def emit(operators: Iterable[Operator], out: Output) -> None:
    """One file per record that has a device kernel, and all texts as tables."""
    operators = list(operators)
    files: dict[str, list[str]] = {}
    texts: dict[str, list[str]] = {}
    for op in operators:
        body = op.overload.body
        kernels: Iterable[PointwiseKernel | ReductionKernel] = ()
        if isinstance(body, Pointwise):
            kernels = all_kernels(op)
        elif isinstance(body, Reduction):
            kernels = reduction_kernels(op.record, op.overload)
        for kernel in kernels:
            if kernel.name in texts:
                continue
            if isinstance(kernel, PointwiseKernel):
                texts[kernel.name] = _functors(kernel)
                loops = _pointwise(kernel)
            else:
                texts[kernel.name] = policies(kernel, slots=False)
                loops = _reduction(kernel)
            lines = files.setdefault(op.record.name, [])
            lines += [*texts[kernel.name], *loops]
    for name, lines in files.items():
        head = ["#include <taeda/aten/native/cuda/prelude.cuh>", ""]
        head += ["namespace taeda {"]
        tail = ["}  // namespace taeda", ""]
        out.write(f"cuda/{name}.cu", "\n".join([*head, *lines, *tail]))
    out.write("cuda/texts.inc", _table({n: "\n".join(t) for n, t in texts.items()}))
    rows = sorted(row(op) for op in operators if has_formula(op))
    out.write("cuda/formulas.inc", "\n".join([*rows, ""]))
    headers = {
        f"taeda/{path.relative_to(ROOT).as_posix()}": path.read_text(encoding="utf-8")
        for pattern in HEADERS
        for path in sorted(ROOT.glob(pattern))
    }
    out.write("cuda/headers.inc", _table(headers))


def _table(texts: dict[str, str]) -> str:
    """Rows of a C++ array of names and texts, by name."""
    rows = [f'{{"{name}", R"~~({text})~~"}},' for name, text in sorted(texts.items())]
    return "\n".join([*rows, ""])


def _functors(kernel: PointwiseKernel) -> list[str]:
    """A struct for each kind of compute type, whose function is the formula."""
    lines: list[str] = []
    result = {"Same": "T", "Bool": "bool", "Real": "R"}[kernel.out_kind]
    named = (*kernel.operands, *kernel.scalars)
    for kind, expr in kernel.exprs.items():
        kinds = {name: "bool" if name in kernel.conditions else kind for name in named}
        statements, value = print_expr(
            expr, kind, kinds, wanted_kind(kind, kernel.out_kind)
        )
        body = [*statements, f"return static_cast<{result}>({value});"]
        if kind == "float":
            # A device thread looks at its own argument, not at a block of them.
            body = list(map(any_argument, body))
        parameters = [f"{'bool' if kinds[n] == 'bool' else 'T'} {n}" for n in named]
        lines += [
            "template <class T>",
            f"struct {kernel.name}_{kind}_of {{",
            "  using R = RealOf<T>;",
            f"  using Result = {result};",
            f"  static __device__ inline Result call({', '.join(parameters)}) {{",
            *(f"    {line}" for line in body),
            "  }",
            "};",
        ]
    return lines


def _pointwise(kernel: PointwiseKernel) -> list[str]:
    lines: list[str] = []
    for compute in COMPUTE_ORDER:
        if compute in kernel.compute:
            lines += _pointwise_kernel(kernel, compute)
    return lines


def _pointwise_kernel(kernel: PointwiseKernel, compute: str) -> list[str]:
    element = _DEVICE_TYPE[compute]
    functor = f"{kernel.name}_{KIND_OF_COMPUTE[compute]}_of<{element}>"
    parameters = [f"{functor}::Result* out_", "DeviceGeometry g0_"]
    values = []
    for i, name in enumerate(kernel.operands, start=1):
        operand = "bool" if name in kernel.conditions else element
        parameters += [f"const {operand}* in{i}_", f"DeviceGeometry g{i}_"]
        values.append(f"element(in{i}_, offset_of(g{i}_, i_))")
    parameters += [f"{element} {name}" for name in kernel.scalars]
    call = f"{functor}::call({', '.join([*values, *kernel.scalars])})"
    return [
        f'extern "C" __global__ void {kernel.name}_{compute}(',
        f"    {', '.join(parameters)}, Long n_) {{",
        "  Long step_ = static_cast<Long>(gridDim.x) * blockDim.x;",
        "  Long i_ = static_cast<Long>(blockIdx.x) * blockDim.x + threadIdx.x;",
        f"  for (; i_ < n_; i_ += step_) out_[offset_of(g0_, i_)] = {call};",
        "}",
    ]


def _reduction(kernel: ReductionKernel) -> list[str]:
    lines: list[str] = []
    for compute in COMPUTE_ORDER:
        if compute not in kernel.compute:
            continue
        kind, element = KIND_OF_COMPUTE[compute], _DEVICE_TYPE[compute]
        result = RESULT[kernel.out_kind].replace("T", element)
        policy = f"{kernel.name}_{kind}_fold<{element}>"
        lines += [
            f'extern "C" __global__ void {kernel.name}_{compute}(',
            f"    const {element}* in, {result}* out, DeviceGeometry kept,",
            "    DeviceGeometry reduced, Long count,",
            f"    const {element}* scalars) {{",
            f"  reduce_one<{policy}>(in, out, kept, reduced, count, scalars);",
            "}",
        ]
    return lines
