"""Prints the CUDA source of every pointwise and reduction record.

One file per record, `cuda/NAME.cu`, over aten/native/cuda/prelude.cuh. The scalar text
is that of the CPU kernels; NVRTC compiles it at run time on a machine with a GPU, and
the tests compile it for sm_90 and run it as host C++ without one.
"""

from __future__ import annotations

from collections.abc import Iterable

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
from .model import Operator
from .pointwise import KIND_OF_COMPUTE, PointwiseKernel
from .record_types import Pointwise, Reduction
from .reduction import ReductionKernel, reduction_kernels
from .writer import Output

_DEVICE_TYPE = {**CPP_TYPE, "i64": "Long"}


def emit(operators: Iterable[Operator], out: Output) -> None:
    """One file per record that has a device kernel."""
    texts: dict[str, dict[str, list[str]]] = {}
    for op in operators:
        found = texts.setdefault(op.record.name, {})
        if isinstance(op.overload.body, Pointwise):
            for kernel in all_kernels(op):
                found[kernel.name] = _pointwise(kernel)
        elif isinstance(op.overload.body, Reduction):
            for reduction in reduction_kernels(op.record, op.overload):
                found[reduction.name] = _reduction(reduction)
    for name, kernels in texts.items():
        if not kernels:
            continue
        lines = ["#include <taeda/aten/native/cuda/prelude.cuh>", ""]
        lines += ["namespace taeda {"]
        for text in kernels.values():
            lines += text
        out.write(f"cuda/{name}.cu", "\n".join([*lines, "}  // namespace taeda", ""]))


def _pointwise(kernel: PointwiseKernel) -> list[str]:
    lines: list[str] = []
    for compute in COMPUTE_ORDER:
        if compute in kernel.compute:
            lines += _pointwise_kernel(kernel, compute)
    return lines


def _pointwise_kernel(kernel: PointwiseKernel, compute: str) -> list[str]:
    kind, element = KIND_OF_COMPUTE[compute], _DEVICE_TYPE[compute]
    kinds = {
        name: "bool" if name in kernel.conditions else kind
        for name in (*kernel.operands, *kernel.scalars)
    }
    result = {"Same": "T", "Bool": "bool", "Real": "R"}[kernel.out_kind]
    real = f"RealOf<{element}>"
    parameters = [f"{_substitute(result, element, real)}* out_", "DeviceGeometry g0_"]
    loads = []
    for i, name in enumerate(kernel.operands, start=1):
        operand = "bool" if name in kernel.conditions else element
        parameters += [f"const {operand}* in{i}_", f"DeviceGeometry g{i}_"]
        loads.append(
            f"    const {operand} {name} = element(in{i}_, offset_of(g{i}_, i_));"
        )
    parameters += [f"{element} {name}" for name in kernel.scalars]
    statements, value = print_expr(
        kernel.exprs[kind], kind, kinds, wanted_kind(kind, kernel.out_kind)
    )
    body = [*statements, f"out_[offset_of(g0_, i_)] = static_cast<{result}>({value});"]
    if kind == "float":
        # A device thread looks at its own argument, not at a block of them.
        body = list(map(any_argument, body))
    return [
        f'extern "C" __global__ void {kernel.name}_{compute}(',
        f"    {', '.join(parameters)}, Long n_) {{",
        f"  using T [[maybe_unused]] = {element};",
        f"  using R [[maybe_unused]] = {real};",
        "  Long step_ = static_cast<Long>(gridDim.x) * blockDim.x;",
        "  Long i_ = static_cast<Long>(blockIdx.x) * blockDim.x + threadIdx.x;",
        "  for (; i_ < n_; i_ += step_) {",
        *loads,
        *(f"    {statement}" for statement in body),
        "  }",
        "}",
    ]


def _substitute(result: str, element: str, real: str) -> str:
    return {"T": element, "R": real}.get(result, result)


def _reduction(kernel: ReductionKernel) -> list[str]:
    lines = policies(kernel, slots=False)
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
