"""Graphs as plain data: how they are pickled."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["reduce_graph"]


@dataclass(frozen=True)
class _Place:
    """Stands for a node among pickled arguments: its place in the list."""

    index: int


def reduce_graph(graph) -> tuple:
    """What pickle keeps of a graph: a row for each node; of `meta` the stack trace."""
    from .node import map_arg

    places = {node: _Place(i) for i, node in enumerate(graph.nodes)}
    rows = []
    for node in graph.nodes:
        args, kwargs = (
            map_arg(a, places.__getitem__) for a in (node.args, node.kwargs)
        )
        kept = {
            k: v for k, v in node.meta.items() if k in ("stack_trace", "is_wrapped")
        }
        rows.append((node.op, node.target, args, kwargs, node.name, node.type, kept))
    tracer = graph._tracer_cls
    if tracer is not None and "<locals>" in tracer.__qualname__:
        tracer = None
    return _graph_of, (rows, graph._codegen, tracer, graph._tracer_extras)


def _graph_of(rows, codegen, tracer, extras):
    from ._visit import rebuild
    from .graph import Graph

    graph = Graph(tracer_cls=tracer, tracer_extras=extras)
    made: list = []

    def node_at(a):
        return made[a.index] if isinstance(a, _Place) else a

    for op, target, args, kwargs, name, kind, meta in rows:
        args, kwargs = rebuild(args, node_at), rebuild(kwargs, node_at)
        made.append(graph.create_node(op, target, args, kwargs, name, kind))
        made[-1].meta.update(meta)
    graph.set_codegen(codegen)
    return graph
