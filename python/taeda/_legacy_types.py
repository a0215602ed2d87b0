"""taeda.FloatTensor and its kin: constructors and types of old programs."""

from __future__ import annotations

import taeda
from taeda import _C

_DTYPES = {
    "DoubleTensor": "float64",
    "FloatTensor": "float32",
    "HalfTensor": "float16",
    "BFloat16Tensor": "bfloat16",
    "LongTensor": "int64",
    "IntTensor": "int32",
    "ShortTensor": "int16",
    "CharTensor": "int8",
    "ByteTensor": "uint8",
    "BoolTensor": "bool",
}
__all__ = list(_DTYPES)


class tensortype(type):
    """The class of these types: calls make tensors, isinstance looks at the dtype."""

    def __call__(cls, *args, device=None):
        if len(args) == 1 and isinstance(args[0], taeda.Tensor):
            if args[0].dtype != cls.dtype:
                raise TypeError(
                    f"expected {cls.__name__} (got {args[0].type().rpartition('.')[2]})"
                )
            return args[0].detach()
        sizes = args[0] if len(args) == 1 and isinstance(args[0], _C.Size) else args
        if all(type(size) is int for size in sizes):
            return taeda.empty(tuple(sizes) or (0,), dtype=cls.dtype, device=device)
        return taeda.tensor(args[0], dtype=cls.dtype, device=device)

    def __instancecheck__(cls, instance) -> bool:
        return (
            isinstance(instance, taeda.Tensor)
            and instance.dtype == cls.dtype
            and instance.is_cpu
        )

    def __repr__(cls) -> str:
        return f"<class '{cls._type_string}'>"


def _make(name: str, dtype: str) -> tensortype:
    space = {
        "dtype": getattr(_C, dtype),
        "_type_string": f"taeda.{name}",
        "is_cuda": False,
        "is_sparse": False,
        "__module__": "taeda",
        "__doc__": f"Tensors of dtype {dtype} on the CPU, under their old name.",
    }
    return tensortype(name, (), space)


for _name, _dtype in _DTYPES.items():
    globals()[_name] = _make(_name, _dtype)
