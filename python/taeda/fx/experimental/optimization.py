"""Rewrites of modules for inference."""

from __future__ import annotations

import copy

from taeda import fx, nn
from taeda.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

__all__ = ["fuse", "matches_module_pattern", "remove_dropout", "replace_node_module"]

_NORMS = {
    nn.Conv1d: nn.BatchNorm1d,
    nn.Conv2d: nn.BatchNorm2d,
    nn.Conv3d: nn.BatchNorm3d,
    nn.Linear: nn.BatchNorm1d,
}


def matches_module_pattern(pattern, node, modules: dict) -> bool:
    """Whether a node and its first argument call modules of two given classes.

    Args:
        pattern: the class called first, the class called by `node`.
        node: the later call.
        modules: path -> module.
    """
    calls = (node.args[0] if node.args else None, node)
    return all(
        isinstance(call, fx.Node)
        and call.op == "call_module"
        and type(modules.get(call.target)) is kind
        for kind, call in zip(pattern, calls, strict=True)
    )


def replace_node_module(node, modules: dict, new_module) -> None:
    """Puts another module where a node calls one."""
    parent, _, name = node.target.rpartition(".")
    modules[node.target] = new_module
    setattr(modules[parent], name, new_module)


def fuse(model, inplace: bool = False, no_trace: bool = False):
    """Takes batch norms behind convolutions and linear layers into their weights.

    Args:
        model: a module in eval mode.
        inplace: change its submodules, not those of a copy.
        no_trace: it is a GraphModule already.

    Returns:
        A GraphModule.
    """
    model = model if inplace else copy.deepcopy(model)
    traced = isinstance(model, fx.GraphModule) and no_trace
    module = model if traced else fx.symbolic_trace(model)
    modules, graph = dict(module.named_modules()), copy.deepcopy(module.graph)
    for first, norm in _NORMS.items():
        for node in graph.find_nodes(op="call_module"):
            if not matches_module_pattern((first, norm), node, modules):
                continue
            before, bn = node.args[0], modules[node.target]
            if len(before.users) > 1 or not bn.track_running_stats:
                continue
            join = fuse_linear_bn_eval if first is nn.Linear else fuse_conv_bn_eval
            replace_node_module(before, modules, join(modules[before.target], bn))
            node.replace_all_uses_with(before)
            graph.erase_node(node)
    return fx.GraphModule(module, graph)


class _WithoutDropout(fx.Transformer):
    def call_module(self, target, args, kwargs):
        if isinstance(self.submodules[target], nn.Dropout):
            return args[0]
        return super().call_module(target, args, kwargs)


def remove_dropout(model):
    """A GraphModule of the model without its dropout layers."""
    return _WithoutDropout(fx.symbolic_trace(model)).transform()
