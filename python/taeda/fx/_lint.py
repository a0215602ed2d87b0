"""What `Graph.lint` checks."""

from __future__ import annotations

import taeda

__all__ = ["lint"]

_KINDS = frozenset(
    "call_function call_method call_module get_attr placeholder output".split()
)


def lint(graph) -> None:
    """Raises for the first fault of a graph; see `Graph.lint`."""
    names: set[str] = set()
    defined: set = set()
    for node in graph.nodes:
        if node.op not in _KINDS:
            raise RuntimeError(f"Node {node} had unknown opcode {node.op}!")
        if node.graph is not graph:
            raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
        for used in node.all_input_nodes:
            fault = _fault_of_use(graph, used, defined)
            if fault:
                raise RuntimeError(
                    f"Argument '{used}' of Node '{node}' {fault}\n{graph}"
                )
        if node.name in names:
            raise RuntimeError(f"Node redefined name {node.name}!")
        defined.add(node)
        names.add(node.name)
    if graph.owning_module is not None:
        for node in graph.nodes:
            _check_target(node, graph.owning_module)


def _fault_of_use(graph, used, defined) -> str:
    if used.graph is not graph:
        return (
            "does not belong to this Graph, but was used as an argument! Nodes copied "
            "from another graph need an ``arg_transform`` on node_copy()"
        )
    if used not in defined:
        return (
            "was used before it has been defined! Please check that Nodes in the graph "
            "are topologically ordered"
        )
    return ""


def _check_target(node, owner) -> None:
    target = node.target
    calls = node.op == "call_function"
    if not (callable(target) if calls else isinstance(target, str)):
        raise ValueError(
            f"Node {node} target {target} has type {taeda.typename(target)} but a "
            f"{'Callable' if calls else 'str'} is expected"
        )
    if node.op not in ("get_attr", "call_module"):
        return
    passed: list[str] = []
    for part in target.split("."):
        owner = getattr(owner, part, None)
        where = f"Node {node} target {target}"
        if owner is None:
            raise RuntimeError(
                f"{where} references nonexistent attribute {part} of {'.'.join(passed)}"
            )
        if node.op == "call_module" and not isinstance(owner, taeda.nn.Module):
            raise RuntimeError(
                f"{where} {part} of {'.'.join(passed)} does not reference an nn.Module"
            )
        passed.append(part)
