"""Which global names a checkpoint may use, and what they stand for here."""

from __future__ import annotations

from _codecs import encode as _codecs_encode
from _pickle import UnpicklingError
from collections import Counter, OrderedDict

import taeda
from taeda._io import rebuild
from taeda._io.storages import STORAGE_DTYPES

_BLOCKED = ("sys", "os", "posix", "nt")
# What Python 2 called them; protocols up to 2 still write these names.
_OLD_MODULES = {"__builtin__": "builtins", "copy_reg": "copyreg"}


class StorageKind:
    """A storage class as a file names it."""

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def dtype(self):
        """The dtype of its elements; uint8 for UntypedStorage."""
        return getattr(taeda, STORAGE_DTYPES.get(self.name, "uint8"))

    @property
    def untyped(self) -> bool:
        """Does the dtype stand elsewhere?"""
        return self.name == "UntypedStorage"

    def __repr__(self) -> str:
        return f"StorageKind({self.name})"


def _latin1(text, encoding):
    """How protocol 2 writes bytes."""
    if type(text) is not str or encoding not in ("latin1", "latin-1"):
        raise UnpicklingError(f"_codecs.encode({text!r:.20}, {encoding!r:.20})")
    return _codecs_encode(text, "latin1")


def _bytearray(data=b""):
    # A number would allocate that many bytes.
    if type(data) not in (bytes, bytearray):
        raise UnpicklingError(f"bytearray({data!r:.40})")
    return bytearray(data)


def _device(kind="cpu", *index):
    return taeda.device(kind, *index)


def _size(entries=()):
    return taeda.Size(rebuild._ints(entries, "a Size"))


def _parameter(data=None, requires_grad=True):
    return rebuild.parameter(data, requires_grad, None)


def _fixed() -> dict:
    """(module, name) -> (value on the stack, what calling it does)."""
    table = {key: (function, function) for key, function in rebuild.FUNCTIONS.items()}
    calls = {
        ("collections", "OrderedDict"): (OrderedDict, OrderedDict),
        ("collections", "Counter"): (Counter, Counter),
        ("builtins", "set"): (set, set),
        ("builtins", "complex"): (complex, complex),
        ("builtins", "bytearray"): (bytearray, _bytearray),
        ("_codecs", "encode"): (_codecs_encode, _latin1),
        ("torch", "Size"): (taeda.Size, _size),
        ("torch", "device"): (taeda.device, _device),
        ("torch", "Tensor"): (taeda.Tensor, None),
        ("torch.nn.parameter", "Parameter"): (taeda.nn.Parameter, _parameter),
    }
    return {**table, **calls}


_FIXED: dict = {}
_user: dict = {}  # "module.name" -> what the user trusts


def torch_name(module: str) -> str:
    """A module's name in files: ours are written, and read, as torch's."""
    if module == "taeda" or module.startswith("taeda."):
        return "torch" + module[5:]
    return module


def resolve(module: str, name: str):
    """(value, call) of a global name; `call` is None for what is no function.

    Raises:
        UnpicklingError: the name is not trusted.
    """
    module = torch_name(_OLD_MODULES.get(module, module))
    full = f"{module}.{name}"
    if module.partition(".")[0] in _BLOCKED:
        raise UnpicklingError(
            f"Trying to load unsupported GLOBAL {full} whose module {module} is "
            "blocked."
        )
    if not _FIXED:
        _FIXED.update(_fixed())
    known = _FIXED.get((module, name))
    if known is not None:
        return known
    if full in _user:
        value = _user[full]
        return value, value
    if module in ("torch", "torch.storage", "torch.cuda"):
        if name in STORAGE_DTYPES or name == "UntypedStorage":
            return StorageKind(name), None
        value = getattr(taeda, name, None) if module == "torch" else None
        if isinstance(value, taeda.dtype):
            return value, None
    raise UnpicklingError(
        f"Unsupported global: GLOBAL {full} was not an allowed global by default. "
        "Please use `taeda.serialization.add_safe_globals` or "
        "`taeda.serialization.safe_globals` to allow it if you trust it, or "
        "weights_only=False if you trust the whole file (that runs code in it)."
    )


def trusted_class(value) -> bool:
    """Has the user trusted this class?"""
    return any(value is known for known in _user.values())


def add(entries) -> None:
    """Trust functions or classes, or (function, "module.name") pairs."""
    for entry in entries:
        if not isinstance(entry, tuple):
            _user[f"{torch_name(entry.__module__)}.{entry.__qualname__}"] = entry
            continue
        if len(entry) != 2:
            raise ValueError(f"Expected a pair (global, name), got {len(entry)} items")
        if type(entry[1]) is not str:
            raise TypeError(f"Expected a name as second item, got {type(entry[1])}")
        _user[torch_name(entry[1])] = entry[0]


def current() -> dict:
    """What the user trusts."""
    return dict(_user)


def replace(entries: dict) -> None:
    """Trust exactly what `current()` returned."""
    _user.clear()
    _user.update(entries)
