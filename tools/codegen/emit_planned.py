"""Prints how kernels with a shape rule are called (the contract of `Kernel`).

The functional form plans, allocates and computes; `out=` and in-place forms compute
into the caller's tensors where they fit what is planned; on meta nothing is computed.
"""

from __future__ import annotations

from .emit_info import TYPES_OF_KIND
from .model import Operator, shape_rule, shape_type
from .record_types import REPEATS, Kernel, Pointwise
from .schema import Schema


def output_names(schema: Schema) -> list[str]:
    """C++ names of the results of a functional schema."""
    if len(schema.returns) == 1:
        return ["out"]
    return [r.name or f"out{i}" for i, r in enumerate(schema.returns)]


def dtype_checked_rule(op: Operator) -> list[str]:
    """The shape rule followed by the check of the record's dtypes.

    A template over the integer type, so that symbols are refused the same.
    """
    body = op.overload.body
    if op.form != "functional" or not isinstance(body, Kernel) or body.shape is None:
        return []
    refused = [TYPES_OF_KIND[kind] for kind in body.takes.refused_kinds]
    if not refused:
        return []
    schema = op.schema
    first = schema.tensor_args[0].name
    called = body.takes.refused_as or op.record.name
    parameters = [f"{shape_type(a.type)} {a.name}" for a in schema.arguments]
    given = ", ".join([*(a.name for a in schema.arguments), "plan"])
    unless_empty = f" && {first}.numel() != 0" if body.takes.empty else ""
    return [
        "template <class I>",
        f"void {shape_rule(op)}({', '.join(parameters)}, Plan<I>& plan) {{",
        f"  {body.shape}<I>({given});",
        f"  constexpr DtypeSet kRefused = {' | '.join(refused)};",
        f"  if ((kRefused & dtype_bit({first}.dtype())) != 0{unless_empty}) {{",
        f'    not_implemented_for("{called}", {first}.dtype());',
        "  }",
        "}",
    ]


def _plan(op: Operator) -> list[str]:
    values = functional_arguments(op)
    kinds = [a.type for a in op.functional.arguments]
    specs = ", ".join(
        f"derived::specs_of({value})"
        if kind.base == "Tensor" and kind.is_list
        else value
        for value, kind in zip(values, kinds, strict=True)
    )
    return [
        f'Plan<int64_t> plan("{op.record.name}");',
        f"native::{shape_rule(op)}<int64_t>({specs}{', ' if specs else ''}plan);",
    ]


def _checked_plan(op: Operator, body: Kernel) -> list[str]:
    """The plan of a form that writes into the caller's tensors."""
    if op.form == "inplace" or body.casts_out:
        return _plan(op)
    return [*_plan(op), "derived::refuse_other_dtypes(plan);"]


def planned_functional(op: Operator, body: Kernel) -> list[str]:
    outs = output_names(op.schema)
    lines = _plan(op)
    lines.append(f"Device device_ = {_device(op)};")
    if op.schema.returns[0].type.is_list:
        lines.append("std::vector<Tensor> out = derived::allocate_all(plan, device_);")
    else:
        lines += [
            f"Tensor {name} = allocate(plan, {i}, device_);"
            for i, name in enumerate(outs)
        ]
    call = ", ".join([*(a.name for a in op.schema.arguments), *outs])
    if body.cpu or body.any:
        lines.append("if (!device_.is_meta()) {")
        if body.updates:
            lines.append(f"  copy_into({outs[0]}, {body.updates});")
        lines += [f"  native::{body.cpu or body.any}({call});", "}"]
    result = outs[0] if len(outs) == 1 else "{" + ", ".join(outs) + "}"
    return [*lines, f"return {result};"]


def planned_writing(op: Operator, body: Kernel) -> list[str]:
    """For schemas that only write into given tensors.

    The rule checks the arguments; what it plans is what an out= tensor becomes.
    """
    outs = op.schema.out_args
    read = ", ".join(a.name for a in op.schema.tensor_args)
    inputs = f"derived::tensors_of({read})"
    targets = {a.name: f"target{i}.tensor()" for i, a in enumerate(outs)}
    lines = _checked_plan(op, body)
    for i, a in enumerate(outs):
        make = f"OutputTarget::for_out(plan, {i}, {a.name}, {inputs})"
        lines.append(f"OutputTarget target{i} = {make};")
    call = ", ".join(targets.get(a.name, a.name) for a in op.schema.arguments)
    name = body.cpu or body.any
    lines.append(f"if (!{on_meta(op)}) native::{name}({call});")
    return lines + [f"target{i}.finish();" for i in range(len(outs))]


def on_meta(op: Operator) -> str:
    """A test whether what is written, all of it, has no memory."""
    first, *others = op.schema.mutable_args
    lists = [a.name for a in others if first.type.is_list and a.type.is_list]
    return f"derived::on_meta({', '.join([first.name, *lists])})"


def _device(op: Operator) -> str:
    """Where the results lie: the device that is asked for, or of the tensors."""
    found = op.functional.tensor_args
    otherwise = f"derived::device_of({', '.join(a.name for a in found)})"
    if not found:
        otherwise = "default_device()"
    elif len(found) == 1 and not found[0].type.is_list | found[0].type.is_optional:
        otherwise = f"{found[0].name}.device()"
    if any(a.name == "device" for a in op.schema.arguments):
        return f"device ? *device : {otherwise}"
    return otherwise


def planned_derived(op: Operator, body: Kernel) -> list[str]:
    lines = _checked_plan(op, body)
    outs = output_names(op.functional)
    given = [a.name for a in op.schema.mutable_args]
    inputs = ", ".join(a.name for a in op.functional.tensor_args)
    tensors = f"derived::tensors_of({inputs})"
    kernel = f"native::{body.cpu or body.any}"
    if op.form == "inplace" and body.repeats != "refused":
        direct = ", ".join([*functional_arguments(op), *given])
        asked = f'"{op.record.name}", {given[0]}, {repeats_of(body)}'
        lines += [
            f"if (takes_repeats({asked})) {{",
            f"  if (!{given[0]}.is_meta()) {kernel}({direct});",
            "  return;",
            "}",
        ]
    for i, (_, target) in enumerate(zip(outs, given, strict=True)):
        if op.form == "inplace":
            make = _inplace_target(op, body, target)
        else:
            make = f"OutputTarget::for_out(plan, {i}, {target}, {tensors})"
        lines.append(f"OutputTarget target{i} = {make};")
    call = functional_arguments(op) + [f"target{i}.tensor()" for i in range(len(outs))]
    lines.append(f"if (!{given[0]}.is_meta()) {{")
    if body.updates:
        lines.append(f"  target0.begin_with({body.updates});")
    lines += [f"  {kernel}({', '.join(call)});", "}"]
    return lines + [f"target{i}.finish();" for i in range(len(outs))]


def repeats_of(body: Pointwise | Kernel) -> str:
    """What the in-place form does where elements lie at one address, as C++ text."""
    return f"Repeats::{REPEATS[body.repeats]}"


def _inplace_target(op: Operator, body: Kernel, target: str) -> str:
    """What the kernel of an in-place form writes to."""
    copy = f"OutputTarget::for_inplace(plan, {target})"
    if not body.updates:
        return copy
    others = [a.name for a in op.functional.tensor_args if a.name != body.updates]
    given = f"derived::tensors_of({', '.join(others)})"
    same = f"OutputTarget::for_inplace(plan, {target}, {given})"
    if not body.overlaps:
        return same
    tests = [f"overlap_of({target}, {name}) != Overlap::None" for name in others]
    return f"{' || '.join(tests)} ? {copy} : {same}"


def functional_arguments(op: Operator) -> list[str]:
    """Arguments of the functional form; factory options come from the out tensor."""
    present = {a.name for a in op.schema.arguments}
    fill = {
        "dtype": "out.dtype()",
        "layout": "out.layout()",
        "device": "out.device()",
        "pin_memory": "std::nullopt",
    }
    return [
        a.name if a.name in present else fill[a.name] for a in op.functional.arguments
    ]
