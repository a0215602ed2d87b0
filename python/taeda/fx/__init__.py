"""Programs as graphs: `symbolic_trace` makes them, `GraphModule` runs them."""

from __future__ import annotations

from taeda._lazy import attributes

_WHERE = {
    name: module
    for module, names in {
        "_symbolic_trace": "PH ProxyableClassMeta Tracer symbolic_trace wrap",
        "graph": "CodeGen Graph",
        "graph_module": "GraphModule",
        "interpreter": "Interpreter Transformer",
        "node": "Node has_side_effect map_arg",
        "proxy": "Proxy",
        "subgraph_rewriter": "replace_pattern",
    }.items()
    for name in names.split()
}
__all__ = [
    *("CodeGen", "Graph", "GraphModule", "Interpreter", "Node", "PH", "Proxy"),
    *("ProxyableClassMeta", "Tracer", "Transformer", "has_side_effect", "map_arg"),
    *("replace_pattern", "symbolic_trace", "wrap"),
]
__getattr__ = attributes(
    __name__,
    _WHERE,
    "_compatibility _pytree _symbolic_trace annotate experimental graph graph_module"
    " immutable_collections interpreter node operator_schemas passes proxy"
    " subgraph_rewriter tensor_type traceback".split(),
)
