"""Members of native classes that need nothing native; found when first asked for."""

from __future__ import annotations

import math

import taeda
from taeda import _C

__all__ = ["MEMBERS"]

# Letters of kinds of numbers in short names: `f32`.
_LETTERS = {"float": "f", "bfloat": "bf", "complex": "c", "uint": "u", "int": "i"}


@property
def abbr(self) -> str:
    """A short name: f32, bf16, i64, u8, c64, b8 for bool."""
    name = repr(self).rpartition(".")[2]
    if name == "bool":
        return "b8"
    kind = name.rstrip("0123456789")
    if kind in _LETTERS:
        return _LETTERS[kind] + name[len(kind) :]
    return name.replace("float8_", "f8")


def to_real(self):
    """The dtype of the real part."""
    return _C._real_type(self)


def to_complex(self):
    """The complex dtype of that width; RuntimeError where there is none."""
    return _C._complex_type(self)


def __copy__(self):
    return self


def __deepcopy__(self, memo):
    return self


# `with taeda.device(...)`: new tensors are made there. The devices to return to form a
# stack, for one device object may be entered twice.
_left: list = []


def __enter__(self):
    _left.append(_C._get_default_device())
    _C._set_default_device(self)
    return self


def __exit__(self, *error) -> None:
    _C._set_default_device(_left.pop())


def __call__(self, function):
    """As a decorator: calls of the function make new tensors there."""
    from taeda.utils._contextlib import context_decorator

    return context_decorator(self, function)


def _reduce_device(self):
    return _C.device, (self.type,) if self.index is None else (self.type, self.index)


def numel(self) -> int:
    """The number of elements of that shape."""
    return math.prod(self)


def _reduce_size(self):
    return _C.Size, (tuple(self),)


def get_offset(self) -> int:
    """The place in the sequence of a GPU's generator.

    Raises:
        RuntimeError: that of the CPU has none.
    """
    raise RuntimeError(f"{self.device.type.upper()} Generator does not use offset")


def set_offset(self, offset: int):
    """Moves a GPU's generator; RuntimeError as `get_offset`."""
    raise RuntimeError(f"{self.device.type.upper()} Generator does not use offset")


def graphsafe_get_state(self):
    """A GPU generator's state as recorded work shares it.

    Raises:
        NotImplementedError: that of the CPU has none.
    """
    raise NotImplementedError(
        "graphsafe_get_state is not supported in this Generator: it is of "
        f"{self.device.type}"
    )


def graphsafe_set_state(self, _new_state):
    """Gives a GPU's generator such a state; NotImplementedError on the CPU."""
    raise NotImplementedError(
        "graphsafe_set_state is not supported in this Generator: it is of "
        f"{self.device.type}"
    )


def _reduce_generator(self):
    from taeda.random import _rebuild_generator

    return _rebuild_generator, (str(self.device), self.get_state())


def hpu(self, device=None, non_blocking: bool = False):
    """A copy on a Habana device.

    Raises:
        AssertionError: this build knows none.
    """
    raise AssertionError("HPU device module is not loaded")


def mps(self):
    """A copy on Apple's GPU; RuntimeError, there is none."""
    raise RuntimeError(
        f"{taeda.__name__}.UntypedStorage(): Storage device not recognized: mps"
    )


def register_hook(self, hook):
    """hook(grad_inputs, grad_outputs), called after the node ran."""
    from taeda.autograd.graph import _register_hook

    return _register_hook(self, hook)


def register_prehook(self, hook):
    """hook(grad_outputs), called before the node runs."""
    from taeda.autograd.graph import _register_prehook

    return _register_prehook(self, hook)


def _node_value(self, name: str):
    """What the node keeps: `_saved_NAME`, `_raw_saved_NAME`, a leaf's `variable`."""
    if name == "variable" or name.startswith(("_saved_", "_raw_saved_")):
        from taeda import _boxed

        return _boxed._node_value(self, name)
    kind = type(self).__name__
    raise AttributeError(f"{kind!r} object has no attribute {name!r}")


def _node_dir(self):
    from taeda import _boxed

    return sorted({*object.__dir__(self), *_boxed._node_names(self)})


def _named(*functions) -> dict:
    return {f.__name__: f for f in functions}


_COPIES = _named(__copy__, __deepcopy__)
MEMBERS = {
    _C.dtype: {"abbr": abbr, **_named(to_real, to_complex), **_COPIES},
    _C.layout: _COPIES,
    _C.memory_format: _COPIES,
    _C.device: {"__reduce__": _reduce_device, **_named(__enter__, __exit__, __call__)},
    _C.Size: {"__reduce__": _reduce_size, "numel": numel},
    _C.Generator: {
        "__reduce__": _reduce_generator,
        **_named(get_offset, set_offset, graphsafe_get_state, graphsafe_set_state),
    },
    _C.UntypedStorage: _named(hpu, mps),
    _C._NodeBase: {
        **_named(register_hook, register_prehook),
        "__getattr__": _node_value,
        "__dir__": _node_dir,
    },
}
