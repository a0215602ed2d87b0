"""Checks of an exported program."""

from __future__ import annotations

import operator

import taeda
from taeda._ops import OpOverload

from . import graph_signature as sig

__all__ = ["verify"]

_NUMBERS = frozenset(
    "add and_ eq floordiv ge getitem gt invert le lt mod mul ne neg not_ or_ pow sub"
    " truediv".split()
)


def verify(program) -> None:
    """Holds graph, signature and state to each other.

    Raises:
        SpecViolationError: they do not fit.
    """
    from .exported_program import SpecViolationError

    for node in program.graph.nodes:
        if node.op == "call_method":
            raise SpecViolationError(
                f"call_method can't be found in ATen dialect: {node}"
            )
        if node.op == "call_function" and not _is_allowed(node.target):
            raise SpecViolationError(
                f"Operator '{node.target}' is not an allowed operator type"
            )
    problem = _inputs(program) or _outputs(program)
    if problem:
        raise SpecViolationError(problem)


def _is_allowed(target) -> bool:
    if isinstance(target, OpOverload):
        return True
    name = getattr(target, "__name__", "")
    if getattr(operator, name, None) is target:
        return name in _NUMBERS
    packet = getattr(target, "overloadpacket", None)
    sizes = packet is not None and getattr(packet, "__name__", "").startswith("sym_")
    known = (taeda.sym_max, taeda.sym_min, taeda.sym_float, taeda.sym_int)
    known += (taeda.sym_not, taeda.sym_sqrt, taeda._C._set_grad_enabled)
    return sizes or target in known or _is_higher_order(target)


def _is_higher_order(target) -> bool:
    return getattr(target, "namespace", None) == "higher_order"


def _inputs(program) -> str | None:
    names = [n.name for n in program.graph.nodes if n.op == "placeholder"]
    specs = program.graph_signature.input_specs
    if len(names) != len(specs):
        return (
            f"Number of graph inputs ({len(names)}) does not match number of inputs in "
            f"the graph signature ({len(specs)})"
        )
    for name, spec in zip(names, specs, strict=True):
        if spec.arg.name != name:
            return f"Input spec {spec} does not match the input {name} of the graph"
        if (
            spec.kind is sig.InputKind.PARAMETER
            and spec.target not in program.state_dict
        ):
            return f"Parameter {spec.target} is not in the state dict."
        held = (*program.state_dict, *program.constants)
        kinds = (sig.InputKind.BUFFER, sig.InputKind.CONSTANT_TENSOR)
        if spec.kind in kinds and spec.target not in held:
            return f"{spec.kind.name} {spec.target} is not in the program's state."
    return None


def _outputs(program) -> str | None:
    values = program.graph.output_node().args[0]
    specs = program.graph_signature.output_specs
    if len(values) != len(specs):
        return (
            f"Number of output nodes {len(values)} is different Than the number of "
            f"outputs specified by the graph signature: {len(specs)}"
        )
    for value, spec in zip(values, specs, strict=True):
        name = getattr(value, "name", "")
        if spec.arg.name != name:
            return f"Output spec {spec} does not match the output {value} of the graph"
    return None
