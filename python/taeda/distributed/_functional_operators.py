"""Functional collectives as operators: `taeda.ops._c10d_functional`.

Those of `c10d_functional` name a group by its ranks, as older programs do. All end
before they return: nothing but tensors goes through a graph.
"""

from __future__ import annotations

from taeda.library import Library, register_fake

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


# Of groups with names. A fake says the result's shape, for who traces.


def _empty_like(tensor, *_):
    return tensor.new_empty(tensor.shape)


def _named_all_reduce(tensor, operation, group):
    return functional.wait_tensor(functional.all_reduce(tensor, operation, group))


def _named_all_gather(tensor, size, group):
    return functional.wait_tensor(functional.all_gather_tensor(tensor, 0, group))


def _fake_all_gather(tensor, size, group):
    return tensor.new_empty((tensor.shape[0] * size, *tensor.shape[1:]))


def _named_reduce_scatter(tensor, operation, size, group):
    return functional.wait_tensor(
        functional.reduce_scatter_tensor(tensor, operation, 0, group)
    )


def _fake_reduce_scatter(tensor, operation, size, group):
    return tensor.new_empty((tensor.shape[0] // size, *tensor.shape[1:]))


def _named_all_to_all(tensor, outputs, inputs, group):
    return functional.wait_tensor(
        functional.all_to_all_single(tensor, outputs, inputs, group)
    )


def _fake_all_to_all(tensor, outputs, inputs, group):
    return tensor.new_empty((sum(outputs), *tensor.shape[1:]))


def _named_broadcast(tensor, source, group):
    return functional.wait_tensor(functional.broadcast(tensor, source, group))


_NAMED = {
    "all_reduce(Tensor input, str reduce_op, {})": (_named_all_reduce, _empty_like),
    "all_gather_into_tensor(Tensor input, int group_size, {})": (
        _named_all_gather,
        _fake_all_gather,
    ),
    "reduce_scatter_tensor(Tensor input, str reduce_op, int group_size, {})": (
        _named_reduce_scatter,
        _fake_reduce_scatter,
    ),
    "all_to_all_single(Tensor input, SymInt[] output_split_sizes, SymInt[] "
    "input_split_sizes, {})": (_named_all_to_all, _fake_all_to_all),
    "broadcast(Tensor input, int src, {})": (_named_broadcast, _empty_like),
    "wait_tensor(Tensor tensor)": (_wait, _empty_like),
}

_named_library = Library("_c10d_functional", "DEF")
for _schema, (_kernel, _fake) in _NAMED.items():
    _name = _schema.partition("(")[0]
    _named_library.define(_schema.format("str group_name") + " -> Tensor")
    _named_library.impl(_name, _kernel, "CompositeExplicitAutograd")
    register_fake(f"_c10d_functional::{_name}", _fake, lib=_named_library)
