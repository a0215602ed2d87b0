"""Members of native classes that need nothing native; found when first asked for."""

from __future__ import annotations

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


def hpu(self, device=None, non_blocking: bool = False):
    """A copy on a Habana device.

    Raises:
        AssertionError: this build knows none.
    """
    raise AssertionError("HPU device module is not loaded")


def mps(self):
    """A copy on Apple's GPU; RuntimeError, there is none."""
    raise RuntimeError("taeda.UntypedStorage(): Storage device not recognized: mps")


MEMBERS = {
    _C.dtype: {"abbr": abbr},
    _C.Generator: {
        f.__name__: f
        for f in (get_offset, set_offset, graphsafe_get_state, graphsafe_set_state)
    },
    _C.UntypedStorage: {f.__name__: f for f in (hpu, mps)},
}
