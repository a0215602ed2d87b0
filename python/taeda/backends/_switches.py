"""Module attributes that read and write a switch, and the precision of float32."""

from __future__ import annotations

import sys
from contextlib import ContextDecorator
from types import ModuleType

__all__ = ["Kept", "Precision", "Scope", "flag_functions", "own_precision"]


class Kept:
    """A value that is kept as it is set, of one type.

    Thread rule: one attribute, written and read whole under the interpreter's lock.

    Args:
        name: of the switch, for the error.
        value: its first value, whose type all others have.
    """

    def __init__(self, name: str, value) -> None:
        self.name, self.value = name, value

    def read(self):
        """The value that was set last."""
        return self.value

    def write(self, value) -> None:
        """Set it.

        Raises:
            RuntimeError: a value of another type.
        """
        if type(value) is not type(self.value):
            raise RuntimeError(
                f"{self.name} expects a {type(self.value).__name__}, but got "
                f"{type(value).__name__}"
            )
        self.value = value


# Whether switches are set in `flags()` blocks only, once a program has asked for it.
frozen = Kept("backends.flags_frozen", False)


def _assign(module: str, switch, value) -> None:
    if frozen.read() and getattr(switch, "freezes", True):
        raise RuntimeError(
            f"not allowed to set {module} flags after disable_global_flags; please use "
            "flags() context manager instead"
        )
    switch.write(value)


def properties(module: str, **switches) -> None:
    """Let attributes of a module be switches.

    Args:
        module: its full name.
        switches: objects with `read` and `write`. One whose `freezes` is False may be
            assigned after `disable_global_flags` as well.
    """
    space = {
        name: property(
            lambda _, switch=switch: switch.read(),
            lambda _, value, switch=switch: _assign(module, switch, value),
        )
        for name, switch in switches.items()
    }
    sys.modules[module].__class__ = type("switches", (ModuleType,), space)


class Scope(ContextDecorator):
    """Flags that hold within a `with` block, or in the calls of a function.

    `set_flags` gives the old ones back.
    """

    def __init__(self, set_flags, values: tuple) -> None:
        self.set_flags, self.values = set_flags, values

    def _recreate_cm(self) -> Scope:
        return Scope(self.set_flags, self.values)

    def __enter__(self) -> None:
        self.before = self.set_flags(*self.values)

    def __exit__(self, *error) -> None:
        self.set_flags(*self.before)


def flag_functions(switches: dict, inside: dict):
    """The functions `set_flags` and `flags` of a backend.

    Args:
        switches: name -> switch, in the order of the arguments.
        inside: name -> the value in a `flags()` block that does not say another.
    """

    def set_flags(*values, **named) -> tuple:
        """Set switches, in their order or as `_name`; returns their old values."""
        known = {f"_{name}": switch for name, switch in switches.items()}
        before = tuple(switch.read() for switch in switches.values())
        given = dict(zip(known, values, strict=False)) | named
        if unknown := given.keys() - known.keys():
            raise TypeError(f"set_flags() got unexpected arguments {sorted(unknown)}")
        for name, value in given.items():
            if value is not None:
                known[name].write(value)
        return before

    def flags(*values, **named) -> Scope:
        """Switches for the length of a `with` block, the others at their defaults."""
        given = dict(zip(inside, values, strict=False)) | named
        if unknown := given.keys() - inside.keys():
            raise TypeError(f"flags() got unexpected arguments {sorted(unknown)}")
        return Scope(set_flags, tuple({**inside, **given}.values()))

    return set_flags, flags


# Precision of float32 ---------------------------------------------------------

# What each backend may lower float32 to; "none" leaves it to the level above.
_ALLOWED = {
    "generic": ("ieee", "tf32", "bf16", "none"),
    "cuda": ("ieee", "tf32", "none"),
    "mkldnn": ("ieee", "tf32", "bf16", "none"),
}
# backend, or backend.operation -> what was set. cuDNN's operations start with TF32,
# as in PyTorch. One dictionary item is written at a time, under the interpreter's lock.
_set = {"cuda.conv": "tf32", "cuda.rnn": "tf32"}


class Precision:
    """The precision of float32 computations of a backend, or of one of its operations.

    It is a permission. The CPU kernels compute float32 in float32 whatever it says;
    matrix products on a GPU follow it.

    Args:
        backend: "generic", "cuda" or "mkldnn".
        operation: "matmul", "conv", "rnn"; None stands for all.
    """

    def __init__(self, backend: str, operation: str | None = None) -> None:
        self.backend = backend
        self.keys = [backend, "generic"]
        if operation is not None:
            self.keys.insert(0, f"{backend}.{operation}")

    def read(self) -> str:
        """What was set here, or else above; "none" where nothing was."""
        found = (_set.get(key, "none") for key in self.keys)
        return next((value for value in found if value != "none"), "none")

    def write(self, value: str) -> None:
        """Set it.

        Raises:
            RuntimeError: no precision, or none that this backend has.
        """
        if value not in _ALLOWED["generic"]:
            raise RuntimeError(f"Unknown precision: {value}")
        if value not in _ALLOWED[self.backend]:
            raise RuntimeError(
                f"backend {self.backend!r} does not support precision {value!r}"
            )
        _set[self.keys[0]] = value
        tell()


# What products on a GPU may do with sums of small dtypes: dtype -> whether parts of a
# sum may be added up in it. One item is written at a time, under the interpreter's
# lock.
narrow_sums = {"fp16": True, "bf16": True}


class NarrowSums:
    """`allow_fp16_reduced_precision_reduction` and its sibling.

    Args:
        dtype: "fp16" or "bf16".
    """

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype

    def read(self) -> bool:
        """Whether parts of a sum may be added up in the dtype."""
        return narrow_sums[self.dtype]

    def write(self, value: bool) -> None:
        """Set it.

        Raises:
            RuntimeError: no bool.
        """
        if type(value) is not bool:
            name = f"allow_{self.dtype}_reduced_precision_reduction"
            raise RuntimeError(
                f"backends.cuda.matmul.{name} expects a bool, but got "
                f"{type(value).__name__}"
            )
        narrow_sums[self.dtype] = value
        tell()


def tell_products() -> None:
    """Tell the kernels of matrix products on a GPU what they may give up."""
    from taeda import _cuda

    tf32 = Precision("cuda", "matmul").read() == "tf32"
    _cuda.set_product_precision(tf32, narrow_sums["fp16"], narrow_sums["bf16"])


# Who tells kernels what was set; appended to when a backend is imported.
listeners = [tell_products]


def tell() -> None:
    """Tell all kernels that read precisions and switches."""
    for listener in listeners:
        listener()


def own_precision(backend: str, operation: str | None = None) -> Precision:
    """The precision of a backend or of one of its operations."""
    return Precision(backend, operation)


class Operation:
    """An operation of a backend: `backends.mkldnn.matmul`.

    Its `fp32_precision` is what float32 may be lowered to.
    """

    __slots__ = ("_precision",)

    def __init__(self, backend: str, operation: str) -> None:
        self._precision = Precision(backend, operation)

    @property
    def fp32_precision(self) -> str:
        return self._precision.read()

    @fp32_precision.setter
    def fp32_precision(self, value: str) -> None:
        self._precision.write(value)
