"""Which global names a checkpoint may use, and what they stand for here."""

from __future__ import annotations

from _codecs import encode as _codecs_encode
from _pickle import UnpicklingError
from _thread import allocate_lock
from collections import Counter, OrderedDict

import taeda
from taeda._io import copies, rebuild
from taeda._io.storages import STORAGE_DTYPES

_Method, _BuiltinMethod = type(OrderedDict.fromkeys), type(dict.fromkeys)
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


def _device(kind="cpu", *index):
    return taeda.device(kind, *index)


def _parameter(data=None, requires_grad=True):
    return rebuild.parameter(data, requires_grad, None)


def _fixed() -> dict:
    """(module, name) -> (value on the stack, what calling it does)."""
    table = {key: (function, function) for key, function in rebuild.FUNCTIONS.items()}
    calls = {
        ("collections", "OrderedDict"): (OrderedDict, OrderedDict),
        ("collections", "Counter"): (Counter, Counter),
        ("builtins", "set"): (set, set),
        ("builtins", "complex"): (complex, copies.number),
        ("builtins", "bytearray"): (bytearray, copies.mutable_bytes),
        ("_codecs", "encode"): (_codecs_encode, copies.latin1),
        ("torch", "Size"): (taeda.Size, copies.size),
        ("torch", "device"): (taeda.device, _device),
        ("torch", "Tensor"): (taeda.Tensor, None),
        ("torch.nn.parameter", "Parameter"): (taeda.nn.Parameter, _parameter),
    }
    kinds = {name: StorageKind(name) for name in (*STORAGE_DTYPES, "UntypedStorage")}
    for module in ("torch", "torch.storage", "torch.cuda"):
        table |= {(module, name): (kind, None) for name, kind in kinds.items()}
    for name, value in vars(taeda).items():
        if isinstance(value, taeda.dtype):
            table["torch", name] = value, None
    return {**table, **calls}


# Filled once by one assignment of complete contents, so that any thread may do it.
_FIXED: dict = {}

_lock = allocate_lock()
# What the user trusts, under _lock: for good, and while a `safe_globals` block runs.
_always: dict = {}
_blocks: list[dict] = []
# Both together: "module.name" -> (value, the entry as the user gave it). Never changed
# but replaced, so that readers in other threads need no lock.
_trusted: dict[str, tuple] = {}
# The same of the library's own classes, entered by the package that has them when it is
# imported, under _lock; likewise replaced.
_ours: dict[str, tuple] = {}


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
    if module.partition(".")[0] in _BLOCKED:
        raise UnpicklingError(
            f"Trying to load unsupported GLOBAL {_plain(module, name)} whose module "
            f"{_plain(module)} is blocked."
        )
    if not _FIXED:
        _FIXED.update(_fixed())
    known = _FIXED.get((module, name))
    if known is not None:
        return known
    full = f"{module}.{name}"
    trusted = _trusted.get(full) or _ours.get(full)
    if trusted is not None:
        return trusted[0], trusted[0]
    shown = _plain(module, name).removeprefix("builtins.")
    adds = f"{taeda.__name__}.serialization"
    named = shown if len(shown) < 100 else "..."
    raise UnpicklingError(
        f"Unsupported global: GLOBAL {shown} was not an allowed global by default. "
        f"Please use `{adds}.add_safe_globals([{named}])` or the "
        f"`{adds}.safe_globals([{named}])` context manager to allowlist it if you "
        "trust it, or weights_only=False if you trust the whole file (that runs code "
        "in it)."
    )


def _plain(*parts: str) -> str:
    """A name out of a file, short and in characters that can be printed."""
    return ascii(".".join(part[:200] for part in parts))[1:-1]


def trusted_call(value):
    """A class or method that the user trusts, wherever it came from; else None.

    A file may name it as the attribute of another one (`getattr`).
    """
    if isinstance(value, type):
        return value if trusted_class(value) else None
    if isinstance(value, (_BuiltinMethod, _Method)):  # made anew by each access
        return next((one for one, _ in _trusted.values() if one == value), None)
    return None


def trusted_class(value) -> bool:
    """Has the user trusted this class, or is it one of the library's own?"""
    known = (*_trusted.values(), *_ours.values())
    return any(value is one for one, _ in known)


def trust_ours(entries: list) -> None:
    """Enters functions and classes of the library, beside what the user trusts."""
    global _ours
    with _lock:
        _ours = {**_ours, **_named(entries)}


def _named(entries) -> dict:
    """Functions or classes, or (function, "module.name") pairs, by name."""
    found = {}
    for entry in entries:
        if not isinstance(entry, tuple):
            full = f"{torch_name(str(entry.__module__))}.{entry.__qualname__}"
            found[full] = entry, entry
            continue
        if len(entry) != 2:
            raise ValueError(f"Expected a pair (global, name), got {len(entry)} items")
        if type(entry[1]) is not str:
            raise TypeError(f"Expected a name as second item, got {type(entry[1])}")
        found[torch_name(entry[1])] = entry[0], entry
    return found


def _join() -> None:
    global _trusted
    _trusted = {k: v for part in (_always, *_blocks) for k, v in part.items()}


def add(entries) -> None:
    """Trust these for good."""
    named = _named(entries)
    with _lock:
        _always.update(named)
        _join()


def enter(entries) -> dict:
    """Trust these until `leave` is given the result."""
    block = _named(entries)
    with _lock:
        _blocks.append(block)
        _join()
    return block


def leave(block: dict) -> None:
    """End what `enter` began; other blocks, in other threads too, go on."""
    with _lock:
        _blocks[:] = [other for other in _blocks if other is not block]
        _join()


def clear() -> None:
    """Trust nothing that a user has added."""
    with _lock:
        _always.clear()
        _blocks.clear()
        _join()


def current() -> list:
    """What the user trusts, as it was given."""
    return [entry for _, entry in _trusted.values()]
