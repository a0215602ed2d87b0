"""Functional collectives as operators: `taeda.ops.c10d_functional`.

They are declared when this module is imported, which what counts or traces collectives
does.
"""

from __future__ import annotations

from taeda.library import Library

from . import _functional_collectives as functional

_GROUP = "str tag, int[] ranks, int group_size"
_SCHEMAS = {
    "all_reduce": "(Tensor self, str reduceOp, {}) -> Tensor",
    "all_gather_into_tensor": "(Tensor shard, {}) -> Tensor",
    "reduce_scatter_tensor": "(Tensor input, str reduceOp, {}) -> Tensor",
    "all_to_all_single": "(Tensor input, SymInt[]? output_split_sizes, "
    "SymInt[]? input_split_sizes, {}) -> Tensor",
    "broadcast": "(Tensor self, int src, {}) -> Tensor",
    "wait_tensor": "(Tensor self) -> Tensor",
}


# As operators they end before they return: nothing but tensors goes through a graph.


def _all_reduce(tensor, operation, tag, ranks, size):
    return functional.wait_tensor(functional.all_reduce(tensor, operation, ranks, tag))


def _all_gather(tensor, tag, ranks, size):
    return functional.wait_tensor(functional.all_gather_tensor(tensor, 0, ranks, tag))


def _reduce_scatter(tensor, operation, tag, ranks, size):
    return functional.wait_tensor(
        functional.reduce_scatter_tensor(tensor, operation, 0, ranks, tag)
    )


def _all_to_all(tensor, outputs, inputs, tag, ranks, size):
    return functional.wait_tensor(
        functional.all_to_all_single(tensor, outputs, inputs, ranks, tag)
    )


def _broadcast(tensor, source, tag, ranks, size):
    return functional.wait_tensor(functional.broadcast(tensor, source, ranks, tag))


def _wait(tensor):
    return tensor.clone()


_KERNELS = {
    "all_reduce": _all_reduce,
    "all_gather_into_tensor": _all_gather,
    "reduce_scatter_tensor": _reduce_scatter,
    "all_to_all_single": _all_to_all,
    "broadcast": _broadcast,
    "wait_tensor": _wait,
}

# Held for as long as the process runs, since a library takes its operators with it.
_library = Library("c10d_functional", "DEF")
for _name, _schema in _SCHEMAS.items():
    _library.define(_name + _schema.format(_GROUP))
    _library.impl(_name, _KERNELS[_name], "CompositeExplicitAutograd")
