"""`explain`: the graphs of one call, and why there is more than one."""

from __future__ import annotations

import dataclasses
import traceback

__all__ = ["ExplainOutput", "GraphCompileReason", "explain"]


@dataclasses.dataclass
class GraphCompileReason:
    """Why a graph ended."""

    reason: str
    user_stack: list[traceback.FrameSummary]
    graph_break: bool = True


@dataclasses.dataclass
class ExplainOutput:
    """What one call of a compiled function made."""

    graphs: list
    graph_count: int
    graph_break_count: int
    break_reasons: list[GraphCompileReason]
    op_count: int
    ops_per_graph: list[list]
    out_guards: list[str]
    compile_times: str | None = None

    def __str__(self) -> str:
        lines = [
            f"Graph Count: {self.graph_count}",
            f"Graph Break Count: {self.graph_break_count}",
            f"Op Count: {self.op_count}",
            "Break Reasons:",
        ]
        for number, each in enumerate(self.break_reasons, 1):
            lines.append(f"  Break Reason {number}:")
            lines.append(f"    Reason: {each.reason}")
            lines.append("    User Stack:")
            lines += [f"      {frame}" for frame in each.user_stack]
        lines.append("Ops per Graph:")
        for number, ops in enumerate(self.ops_per_graph, 1):
            lines.append(f"  Ops {number}:")
            lines += [f"    {op}" for op in ops]
        lines.append("Out Guards:")
        lines += [f"  {guard}" for guard in self.out_guards]
        return "\n".join(lines)


def explain(f, *extra_args, **extra_kwargs):
    """What graphs a call makes, and where and why they end.

    Args:
        f: a function or module.

    Returns:
        A function of the arguments of `f`, which returns an ExplainOutput. With further
        arguments to `explain` itself, its result for them.

    Example:
        >>> found = taeda._dynamo.explain(lambda x: x * 2 + 1)(taeda.ones(2))
        >>> found.graph_count, found.op_count, found.break_reasons
        (1, 2, [])
    """

    def called(*args, **kwargs):
        from . import _entry, _marks

        graphs: list = []

        def keep(gm, inputs):
            graphs.append(gm)
            return gm.forward

        compiled = _entry.call_of(_marks.original(f), backend=keep)
        compiled(*args, **kwargs)
        return _report(graphs, compiled.explain())

    return called(*extra_args, **extra_kwargs) if extra_args or extra_kwargs else called


def _report(graphs: list, found: dict) -> ExplainOutput:
    kinds = ("call_function", "call_method", "call_module")
    ops = [[n.target for n in gm.graph.nodes if n.op in kinds] for gm in graphs]
    reasons = [
        GraphCompileReason(
            reason,
            [traceback.FrameSummary(file, line, name) for file, line, name in stack],
        )
        for reason, stack in found["reasons"]
    ]
    return ExplainOutput(
        graphs=graphs,
        graph_count=len(graphs),
        graph_break_count=max(len(graphs) - 1, 0),
        break_reasons=reasons,
        op_count=sum(map(len, ops)),
        ops_per_graph=ops,
        out_guards=found["guards"],
    )
