"""taeda.sparse.FloatTensor and its kin: constructors and types of old programs."""

from __future__ import annotations

import taeda
from taeda import _C

from . import legacy_types

_DTYPES = legacy_types._DTYPES
_SPARSE = {name: dtype for name, dtype in _DTYPES.items() if dtype != "bool"}
__all__ = list(_SPARSE)


class sparsetype(type):
    """The class of these types: calls make COO tensors, isinstance looks at dtypes."""

    def __call__(cls, *args, device=None):
        if len(args) in (2, 3) and isinstance(args[0], taeda.Tensor):
            indices, values, *size = args
            values = values.to(cls.dtype)
            return taeda.sparse_coo_tensor(indices, values, *size, device=device)
        sizes = args[0] if len(args) == 1 and isinstance(args[0], _C.Size) else args
        if not all(type(size) is int for size in sizes):
            raise TypeError(
                f"sparse.{cls.__name__}: expected sizes, or indices and values, got "
                f"{', '.join(type(a).__name__ for a in args)}"
            )
        return taeda.sparse_coo_tensor(
            tuple(sizes) or (0,), dtype=cls.dtype, device=device
        )

    def __instancecheck__(cls, instance) -> bool:
        return (
            isinstance(instance, taeda.Tensor)
            and instance.layout is _C.sparse_coo
            and instance.dtype == cls.dtype
            and instance.is_cpu
        )

    def __repr__(cls) -> str:
        return f"<class '{cls._type_string}'>"


def _make(name: str, dtype) -> sparsetype:
    space = {
        "dtype": dtype,
        "_type_string": f"{taeda.__name__}.sparse.{name}",
        "is_cuda": False,
        "is_sparse": True,
        "__module__": f"{taeda.__name__}.sparse",
        "__doc__": f"COO tensors of {dtype}, under their old name.",
    }
    return sparsetype(name, (), space)


def type_of(dtype) -> sparsetype:
    """The old type of a dtype; one without a public name is made for the call."""
    name = legacy_types.type_of(dtype).__name__
    return globals().get(name) or _make(name, dtype)


for _name, _dtype in _SPARSE.items():
    globals()[_name] = _make(_name, getattr(_C, _dtype))
