"""Small tools of distributed modules, which wrappers outside of Taeda use as well."""

from __future__ import annotations

import traceback
from collections import OrderedDict
from collections.abc import Callable, Container
from typing import Any, TypeVar

import taeda
from taeda.nn.utils.rnn import PackedSequence

from . import _collectives as collectives

__all__: list[str] = []

# What a function makes of a tensor, and the kinds of containers; for annotations.
Q = TypeVar("Q")
R = TypeVar("R", dict, list, tuple, set, OrderedDict, PackedSequence, Any)
S = TypeVar("S", dict, list, tuple)
T = TypeVar("T", taeda.Tensor, PackedSequence)


def _pack_kwargs(*args: Any, **kwargs: Any) -> tuple[tuple, tuple[str, ...]]:
    """Named arguments behind the others, and their names: for what takes no names.

    Example:
        >>> _pack_kwargs(1, a=2)
        ((1, 2), ('a',))
    """
    return (*args, *kwargs.values()), tuple(kwargs)


def _unpack_kwargs(flat_args: tuple, kwarg_keys: tuple[str, ...]) -> tuple[tuple, dict]:
    """What `_pack_kwargs` was given.

    Raises:
        AssertionError: fewer values than names.
    """
    if len(kwarg_keys) > len(flat_args):
        raise AssertionError(f"{len(flat_args)} values for {len(kwarg_keys)} names")
    count = len(flat_args) - len(kwarg_keys)
    return flat_args[:count], dict(zip(kwarg_keys, flat_args[count:], strict=True))


def _cast_forward_inputs(dtype, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
    """Arguments whose floating-point tensors have a dtype; None leaves them."""
    if dtype is None:
        return args, kwargs

    def cast(tensor):
        if not tensor.is_floating_point() or tensor.dtype == dtype:
            return tensor
        return tensor.to(dtype)

    return _apply_to_tensors(cast, args), _apply_to_tensors(cast, kwargs)


def _recursive_to(inputs, target_device, use_side_stream_for_tensor_copies: bool):
    """A list of one: the containers with their tensors on a device.

    Args:
        use_side_stream_for_tensor_copies: of accelerators; copies here are made in the
            current stream.
    """
    return [_apply_to_tensors(lambda t: t.to(target_device), inputs)]


def _to_kwargs(
    inputs: tuple,
    kwargs: dict[str, Any] | None,
    target_device,
    use_side_stream_for_tensor_copies: bool,
) -> tuple[tuple, tuple]:
    """Arguments on a device, each in a tuple of one."""
    copy = use_side_stream_for_tensor_copies
    moved = _recursive_to(inputs, target_device, copy) if inputs else [()]
    named = _recursive_to(kwargs, target_device, copy) if kwargs else [{}]
    return tuple(moved), tuple(named)


def _apply_to_tensors(fn: Callable, container):
    """A copy of nested containers with `fn` of each tensor.

    Args:
        fn: of a tensor.
        container: dicts, lists, tuples, named tuples, sets and dataclasses of tensors
            and others, which stay as they are.
    """
    if isinstance(container, taeda.Tensor):
        return fn(container)
    if isinstance(container, PackedSequence):
        return container._replace(data=fn(container.data))
    if hasattr(container, "__dataclass_fields__") and not isinstance(container, type):
        import dataclasses

        names = [field.name for field in dataclasses.fields(container) if field.init]
        new = {n: _apply_to_tensors(fn, getattr(container, n)) for n in names}
        return dataclasses.replace(container, **new)
    if isinstance(container, dict):
        pairs = [(key, _apply_to_tensors(fn, v)) for key, v in container.items()]
        ordered = isinstance(container, OrderedDict)
        return type(container)(pairs) if ordered else dict(pairs)
    if isinstance(container, (list, tuple, set)):
        parts = [_apply_to_tensors(fn, part) for part in container]
        named = hasattr(container, "_fields")
        return type(container)(*parts) if named else type(container)(parts)
    return container


def _p_assert(cond: Any, s: str, raise_assertion_error: bool = True) -> None:
    """An assertion that is also printed: those of backward hooks may be lost.

    Raises:
        AssertionError: `cond` is false.
    """
    if cond:
        return
    print(s)
    traceback.print_stack()
    if raise_assertion_error:
        raise AssertionError(s)


def _alloc_storage(tensor, size) -> None:
    """Gives a tensor without memory as much as a shape needs.

    Raises:
        AssertionError: it has memory of another size.
    """
    storage = tensor.untyped_storage()
    wanted = taeda.Size(size).numel() * tensor.element_size()
    if storage.nbytes() == wanted:
        return
    has = storage.nbytes()
    _p_assert(has == 0, f"_alloc_storage: {has} bytes are there, {wanted} are wanted")
    storage.resize_(wanted)


def _free_storage(tensor) -> None:
    """Frees the memory of a tensor, which keeps its shape.

    Raises:
        AssertionError: the tensor begins in the middle of it.
    """
    storage = tensor.untyped_storage()
    if storage.nbytes() == 0:
        return
    offset = tensor.storage_offset()
    _p_assert(
        offset == 0,
        f"_free_storage: a tensor of shape {tuple(tensor.shape)} begins at {offset} of "
        f"{storage.nbytes()} bytes, so others may use them",
    )
    storage.resize_(0)


def _data_ptr_allocated(tensor) -> bool:
    """Whether a tensor has memory."""
    return tensor.untyped_storage().data_ptr() > 0


def _sync_module_states(
    module,
    process_group,
    broadcast_bucket_size: int,
    src: int,
    params_and_buffers_to_ignore: Container[str],
    broadcast_buffers: bool = True,
) -> None:
    """Gives all ranks one rank's parameters and buffers.

    Args:
        module: of the same shapes at all ranks.
        process_group: of the ranks.
        broadcast_bucket_size: most bytes that travel together.
        src: the rank in the group.
        params_and_buffers_to_ignore: names of those that stay.
        broadcast_buffers: whether buffers are sent.
    """
    named = list(module.named_parameters())
    if broadcast_buffers:
        named += module.named_buffers()
    left_out = params_and_buffers_to_ignore
    states = [value.detach() for name, value in named if name not in left_out]
    _sync_params_and_buffers(process_group, states, broadcast_bucket_size, src)


def _sync_params_and_buffers(
    process_group, module_states: list, broadcast_bucket_size: int, src: int
) -> None:
    """Gives all ranks one rank's tensors, packed by dtype into messages."""
    open_packs: dict = {}
    packs = []
    for state in module_states:
        pack = open_packs.get(state.dtype)
        size = state.numel() * state.element_size()
        if pack is None or pack[0] + size > broadcast_bucket_size:
            pack = open_packs[state.dtype] = [0, []]
            packs.append(pack[1])
        pack[0] += size
        pack[1].append(state)
    with taeda.no_grad():
        for states in packs:
            flat = taeda.cat([state.reshape(-1) for state in states])
            collectives.broadcast(flat, group=process_group, group_src=src)
            parts = flat.split([state.numel() for state in states])
            for state, part in zip(states, parts, strict=True):
                state.copy_(part.view(state.shape))


def _replace_by_prefix(
    state_dict: dict[str, Any], old_prefix: str, new_prefix: str
) -> None:
    """Renames the keys of a prefix, in place.

    Raises:
        ValueError: the prefixes are the same.
    """
    if old_prefix == new_prefix:
        raise ValueError("old_prefix and new_prefix must be distinct")
    for key in [key for key in state_dict if key.startswith(old_prefix)]:
        state_dict[new_prefix + key.removeprefix(old_prefix)] = state_dict.pop(key)


def _get_root_modules(modules: list) -> list:
    """Those modules that are in no other of the list, in its order."""
    inside = {
        id(part)
        for module in modules
        for part in module.modules()
        if part is not module
    }
    return [module for module in modules if id(module) not in inside]
