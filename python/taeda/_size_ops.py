"""Operators on geometry: `taeda.ops.aten.sym_size.int`, `dim`, `_assert_scalar`.

They give integers, symbolic ones where sizes are, and need no dispatch: graphs of
programs with symbolic sizes call them by their names.
"""

from __future__ import annotations

from taeda._ops import OpOverload, OpOverloadPacket
from taeda._schema import Schema

__all__ = ["size_packet"]

# The method that reads it, and what follows `self` in each overload's schema.
_OF_DIMS = {"": ") -> SymInt[]", "int": ", int dim) -> SymInt"}
_READ = {
    "sym_size": ("size", _OF_DIMS),
    "sym_stride": ("stride", _OF_DIMS),
    "sym_numel": ("numel", {"": ") -> SymInt"}),
    "sym_storage_offset": ("storage_offset", {"": ") -> SymInt"}),
    "dim": ("dim", {"": ") -> int"}),
    "is_contiguous": (
        "_is_contiguous_in",
        {"": ") -> bool", "memory_format": ", MemoryFormat memory_format) -> bool"},
    ),
}


class _Reader(OpOverload):
    tags: tuple = ()
    is_view = False

    def __init__(self, packet, overload: str, schema: str, method: str) -> None:
        self._packet, self._overloadname = packet, overload or "default"
        self._opname, self._native = packet.__name__, (packet.__name__, overload)
        self._schema, self._method = Schema(schema, "aten"), method
        self.__name__ = self.__qualname__ = f"{packet.__name__}.{self._overloadname}"
        self.__module__ = packet.__module__

    def __call__(self, self_, *args):
        if hasattr(type(self_), "__torch_function__") and not hasattr(self_, "dtype"):
            return type(self_).__torch_function__(self, (), (self_, *args))
        if self._method == "_is_contiguous_in":  # which takes the format by name alone
            return self_.is_contiguous(**({"memory_format": args[0]} if args else {}))
        return getattr(self_, self._method)(*args)


class _Check(_Reader):
    """`_assert_scalar`: what a program said of numbers that come from data."""

    def __call__(self, self_, assert_msg: str = "") -> None:
        if hasattr(type(self_), "__torch_function__"):
            return type(self_).__torch_function__(self, (), (self_, assert_msg))
        if not self_:
            raise RuntimeError(assert_msg)


def _check_packet() -> OpOverloadPacket:
    from taeda.fx.node import has_side_effect

    schema = "_assert_scalar(Scalar self, str assert_msg) -> ()"
    packet = OpOverloadPacket("aten", "_assert_scalar", {"": schema})
    made = packet._made[""] = _Check(packet, "", schema, "")
    has_side_effect(made)
    return packet


def size_packet(name: str) -> OpOverloadPacket | None:
    """The packet of this name; None where it is none of them."""
    if name == "_assert_scalar":
        return _check_packet()
    if name not in _READ:
        return None
    method, overloads = _READ[name]
    schemas = {
        overload: f"{name}{overload and '.'}{overload}(Tensor self{rest}"
        for overload, rest in overloads.items()
    }
    packet = OpOverloadPacket("aten", name, schemas)
    for overload, schema in schemas.items():
        packet._made[overload] = _Reader(packet, overload, schema, method)
    return packet
