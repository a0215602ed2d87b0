"""Objects to the pickle of a checkpoint, under PyTorch's names."""

from __future__ import annotations

import io
import pickle
import sys
import warnings
from _thread import allocate_lock
from collections import OrderedDict
from types import FunctionType

import taeda
from taeda._io import names
from taeda._io.location import location_tag
from taeda._io.skipping import skipping
from taeda._io.storages import STORAGE_DTYPES, identity, lazy_flags, storage_name
from taeda._own import is_own_module, without_library

_MARK = "taeda-writes:"
_quick_lock = allocate_lock()


class Name:
    """Is written as a global name, whether or not such a thing exists here."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name
        self.__module__ = _MARK + module  # for the quick way

    def __call__(self, *args):
        raise TypeError(f"{self.module}.{self.name} is a name only")


_names: dict[tuple[str, str], Name] = {}


def named(module: str, name: str) -> Name:
    """The one Name of its kind, so that the pickle refers back to it."""
    known = _names.get((module, name))
    return known or _names.setdefault((module, name), Name(module, name))


class _StorageId:
    """A storage on its way into the file: becomes a persistent id."""

    def __init__(self, storage, dtype, location: str | None = None) -> None:
        self.storage, self.dtype = storage, dtype
        self.location = location or location_tag(storage)


def pickler_class(pickle_module):
    """A pickler over `pickle_module` that writes tensors by reference."""
    # The C pickler insists on importable names; the Python one can be taught.
    base = pickle._Pickler if pickle_module is pickle else pickle_module.Pickler

    class Writer(base):
        dispatch = dict(getattr(base, "dispatch", {}))
        dispatch[Name] = lambda self, obj: _save_name(self, obj)
        dispatch[FunctionType] = lambda self, obj: self.save_global(obj)
        dispatch[taeda.dtype] = lambda self, obj: self.save(
            named("torch", str(obj).rpartition(".")[2])
        )

        def __init__(self, stream, protocol: int, keep) -> None:
            super().__init__(stream, protocol)
            self.keep = keep

        def persistent_id(self, obj):
            kind = type(obj)
            if kind is _StorageId:
                return self.keep(obj)
            if kind is taeda.UntypedStorage:
                return self.keep(_StorageId(obj, None))
            if kind.__name__ == "TypedStorage":
                return self.keep(_StorageId(obj._untyped_storage, obj.dtype))
            return None

        def reducer_override(self, obj):
            found = reduce_value(obj)
            return _reduce_program(obj) if found is NotImplemented else found

        def save_global(self, obj, name=None):
            module = getattr(obj, "__module__", None) or ""
            if not is_own_module(module):
                return super().save_global(obj, name)
            path = name or getattr(obj, "__qualname__", obj.__name__)
            self.save(named(_place(module, path), path))

    return Writer


def _place(module: str, path: str) -> str:
    """The module in which PyTorch has what a module of ours defines."""
    from taeda._torch_places import PLACES

    places = PLACES.get(without_library(module), {})
    public = places.get(path, places.get("", None))
    if public is None:
        return names.torch_name(module)
    return f"torch.{public}".rstrip(".")


def _save_name(pickler, obj: Name) -> None:
    if pickler.proto >= 4:
        pickler.save(obj.module)
        pickler.save(obj.name)
        pickler.write(pickle.STACK_GLOBAL)
    else:
        pickler.write(b"c" + f"{obj.module}\n{obj.name}\n".encode())
    pickler.memoize(obj)


def reduce_value(obj):
    """How a value of ours is written; NotImplemented for everything else."""
    kind = type(obj)
    if isinstance(obj, taeda.Tensor):
        if kind is not taeda.Tensor and _reduces_itself(kind):
            return NotImplemented
        return reduce_tensor(obj)
    if kind is taeda.Size:
        return named("torch", "Size"), (tuple(obj),)
    if kind is taeda.device:
        index = () if obj.index is None else (obj.index,)
        return named("torch", "device"), (obj.type, *index)
    if kind is taeda.layout:
        return _layout(obj)
    return NotImplemented


# What PyTorch's modules always have; ours have it from the first use on.
_HOOKS = (
    "_backward_hooks",
    "_backward_pre_hooks",
    "_forward_hooks",
    "_forward_hooks_always_called",
    "_forward_hooks_with_kwargs",
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_load_state_dict_post_hooks",
    "_load_state_dict_pre_hooks",
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
)


def _reduce_program(obj):
    """How modules are written, so that PyTorch can use them."""
    if isinstance(obj, taeda.nn.Module):
        reduced = obj.__reduce_ex__(2)
        state = reduced[2] if isinstance(reduced, tuple) and len(reduced) > 2 else None
        if not isinstance(state, dict) or "_modules" not in state:
            return reduced
        missing: dict = {n: OrderedDict() for n in _HOOKS if n not in state}
        missing["_is_full_backward_hook"] = None
        missing["_non_persistent_buffers_set"] = set()
        written = {**missing, **state}
        # With all tables there it is untrue, and PyTorch does not know it.
        written.pop("_hooked", None)
        return (*reduced[:2], written, *reduced[3:])
    return NotImplemented


def _reduces_itself(kind) -> bool:
    """Whether a class of tensors without memory says how it is written."""
    own = kind.__reduce_ex__ is not taeda.Tensor.__reduce_ex__
    return own and taeda._C._has_torch_dispatch(kind)


def _layout(layout):
    name = "torch." + str(layout).rpartition(".")[2]
    return named("torch.serialization", "_get_layout"), (name,)


def _attributes(tensor):
    """What the user has set on a tensor, or what its class says of it."""
    from taeda._tensor_copy import own_state

    state = own_state(tensor)
    if type(state) is dict:
        return {k: v for k, v in state.items() if k not in _UNWRITTEN}
    return state


# Attributes that belong to the program, not to the value.
_UNWRITTEN = ("_backward_hooks", "_post_accumulate_grad_hooks")


def _is_fake(tensor) -> bool:
    module = sys.modules.get("taeda._subclasses.fake_tensor")
    return module is not None and isinstance(tensor, module.FakeTensor)


def is_wrapper(tensor) -> bool:
    """Whether it has no memory because its class answers for it."""
    return (
        taeda._C._has_torch_dispatch(type(tensor))
        and not _is_fake(tensor)
        and tensor.data_ptr() == 0
    )


def wrapper_facts(tensor) -> tuple:
    """The arguments of `_rebuild_wrapper_subclass`."""
    return (
        *(type(tensor), tensor.dtype, tuple(tensor.size()), tuple(tensor.stride())),
        *(tensor.storage_offset(), tensor.layout, tensor.device, tensor.requires_grad),
    )


def reduce_tensor(tensor):
    """(name, arguments) that rebuild a tensor."""
    if skipping.materialize_fake_tensors and _is_fake(tensor):
        return _reduce_plain(tensor)
    kind, state = type(tensor), _attributes(tensor)
    if kind is taeda.nn.Parameter:
        args = tensor.data, tensor.requires_grad, OrderedDict()
        if state:
            rebuild = named("torch._utils", "_rebuild_parameter_with_state")
            return rebuild, (*args, state)
        return named("torch._utils", "_rebuild_parameter"), args
    rebuild, args = _reduce_plain(tensor)
    if kind is taeda.Tensor and not state:
        return rebuild, args
    rebuild_type = named("torch._tensor", "_rebuild_from_type_v2")
    return rebuild_type, (rebuild, kind, args, state)


def _reduce_plain(tensor):
    if type(tensor) is not taeda.Tensor and is_wrapper(tensor):
        rebuild = named("torch._utils", "_rebuild_wrapper_subclass")
        return rebuild, wrapper_facts(tensor)
    if str(tensor.layout).rpartition(".")[2] != "strided":
        data = sparse_data(tensor)
        return named("torch._utils", "_rebuild_sparse_tensor"), (tensor.layout, data)
    if getattr(tensor, "is_quantized", False):
        raise NotImplementedError("saving quantized tensors")
    size, stride = tuple(tensor.size()), tuple(tensor.stride())
    if tensor.device.type == "meta":
        if skipping.skip_data:
            warnings.warn(
                "Serializing tensors on the meta device under skip_data context "
                "manager is a no-op",
                stacklevel=2,
            )
        rebuild = named("torch._utils", "_rebuild_meta_tensor_no_storage")
        return rebuild, (tensor.dtype, size, stride, tensor.requires_grad)
    typed = storage_name(tensor.dtype)
    args = (
        _storage_id(tensor, tensor.dtype if typed else None),
        tensor.storage_offset(),
        size,
        stride,
        tensor.requires_grad,
        OrderedDict(),
    )
    metadata = dict.fromkeys(lazy_flags(tensor), True)
    tail = (metadata,) if metadata else ()
    if typed:
        return named("torch._utils", "_rebuild_tensor_v2"), (*args, *tail)
    return named("torch._utils", "_rebuild_tensor_v3"), (*args, tensor.dtype, *tail)


def _storage_id(tensor, dtype) -> _StorageId:
    if not _is_fake(tensor):
        return _StorageId(tensor.untyped_storage(), dtype)
    # Its memory is nowhere, its place in the file is that of the device's tensors.
    own, index = tensor.fake_device, tensor.fake_device.index
    location = own.type if own.type == "cpu" or index is None else str(own)
    return _StorageId(tensor._elem.untyped_storage(), dtype, location)


def sparse_data(tensor) -> tuple:
    """The parts that `_rebuild_sparse_tensor` makes a tensor of."""
    layout = str(tensor.layout).rpartition(".")[2]
    if layout == "sparse_coo":
        parts = tensor._indices(), tensor._values()
        return (*parts, tensor.size(), tensor.is_coalesced())
    if layout in ("sparse_csr", "sparse_bsr"):
        parts = tensor.crow_indices(), tensor.col_indices(), tensor._values()
    elif layout in ("sparse_csc", "sparse_bsc"):
        parts = tensor.ccol_indices(), tensor.row_indices(), tensor._values()
    else:
        raise NotImplementedError(f"saving tensors of layout {layout}")
    return *parts, tensor.size()


class Collector:
    """Numbers the storages that a pickle refers to."""

    def __init__(self, legacy: bool = False) -> None:
        self.storages: dict[str, object] = {}
        self.dtypes: dict[str, object] = {}  # None: untyped
        self.legacy = legacy
        self._keys: dict = {}
        self._dtypes: dict = {}

    def __call__(self, reference: _StorageId) -> tuple:
        storage, dtype = reference.storage, reference.dtype
        handle = identity(storage)
        known = self._dtypes.setdefault(handle, dtype) if storage.nbytes() else dtype
        if known != dtype:
            raise RuntimeError(
                "Cannot save multiple tensors or storages that view the same data as "
                f"different types ({known} and {dtype})"
            )
        key = self._keys.setdefault(handle, str(len(self._keys)))
        self.storages[key], self.dtypes[key] = storage, dtype
        if dtype is None:
            kind, count = named("torch.storage", "UntypedStorage"), storage.nbytes()
        else:
            kind = named("torch", storage_name(dtype))
            count = storage.nbytes() // dtype.itemsize
        fields = ("storage", kind, key, reference.location, count)
        return (*fields, None) if self.legacy else fields


class _TooHard(Exception):
    """The quick way cannot write this object."""


class _Quick(pickle.Pickler):
    """The C pickler, for data.

    It writes global names of things that can be imported only. So a Name pretends to
    come from a module "taeda-writes:torch._utils", which exists meanwhile, and the
    mark is taken out of the bytes afterwards.
    """

    def __init__(self, stream, keep) -> None:
        super().__init__(stream, 2)
        self.keep, self.used = keep, set()

    def persistent_id(self, obj):
        return self.keep(obj) if type(obj) is _StorageId else None

    def reducer_override(self, obj):
        if type(obj) is Name:
            self.used.add(obj)
            return obj.name
        if type(obj) is taeda.Tensor:
            return reduce_tensor(obj)
        if isinstance(obj, (taeda.dtype, taeda.UntypedStorage)) or hasattr(
            obj, "_untyped_storage"
        ):
            raise _TooHard
        module = getattr(obj, "__module__", None)
        if is_own_module(module):
            if isinstance(obj, type) or not isinstance(obj, taeda.Tensor):
                raise _TooHard
        return reduce_value(obj)


def _dump_quickly(obj, collector: Collector) -> bytes:
    from types import ModuleType

    stream = io.BytesIO()
    pickler = _Quick(stream, collector)
    with _quick_lock:
        made = set()
        try:
            for (module, attribute), name in list(_names.items()):
                marked = _MARK + module
                if marked not in made:
                    sys.modules.setdefault(marked, ModuleType(_MARK))
                    made.add(marked)
                setattr(sys.modules[marked], attribute, name)
            pickler.dump(obj)
        except (AttributeError, ImportError, pickle.PicklingError) as error:
            raise _TooHard from error
        finally:
            for name in made:
                sys.modules.pop(name, None)
    data, mark = stream.getvalue(), b"c" + _MARK.encode()
    if data.count(mark) != len(pickler.used):
        raise _TooHard  # a text in the object contains the mark
    return data.replace(mark, b"c")


def dump(obj, protocol: int, pickle_module, legacy: bool = False):
    """(the pickle of `obj`, a Collector that knows its storages)."""
    if pickle_module is pickle and protocol == 2:
        collector = Collector(legacy)
        try:
            return _dump_quickly(obj, collector), collector
        except _TooHard:
            pass
    collector, stream = Collector(legacy), io.BytesIO()
    pickler_class(pickle_module)(stream, protocol, collector).dump(obj)
    return stream.getvalue(), collector


def _known_names() -> None:
    """The names that nearly every file has."""
    for name in STORAGE_DTYPES:
        named("torch", name)
    for name in ("v2", "v3", "parameter"):
        prefix = "_rebuild_" if name == "parameter" else "_rebuild_tensor_"
        named("torch._utils", prefix + name)
    named("torch._utils", "_rebuild_parameter_with_state")
    named("torch._tensor", "_rebuild_from_type_v2")
    named("torch", "Size")
    named("torch", "device")


_known_names()
