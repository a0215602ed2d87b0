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
# Types that never had a class.
_NAMES = {dtype: name for name, dtype in _DTYPES.items()} | {
    "complex32": "ComplexHalfTensor",
    "complex64": "ComplexFloatTensor",
    "complex128": "ComplexDoubleTensor",
    "uint16": "UInt16Tensor",
    "uint32": "UInt32Tensor",
    "uint64": "UInt64Tensor",
    "float8_e5m2": "Float8_e5m2Tensor",
    "float8_e4m3fn": "Float8_e4m3fnTensor",
    "float8_e5m2fnuz": "Float8_e5m2fnuzTensor",
    "float8_e4m3fnuz": "Float8_e4m3fnuzTensor",
    "float8_e8m0fnu": "Float8_e8m0fnuTensor",
}


def type_name(tensor) -> str:
    """`taeda.FloatTensor`; accelerators have their name in the middle."""
    library, _, dtype = repr(tensor.dtype).rpartition(".")
    device = "" if tensor.is_cpu else f".{tensor.device.type}"
    sparse = ".sparse" if tensor.is_sparse else ""
    return f"{library}{device}{sparse}.{_NAMES[dtype]}"


def tensor_as(tensor, wanted):
    """The tensor in a dtype, or in an old type that is given by class or name.

    Raises:
        TypeError: for what names no type.
        ValueError: for the name of a type that is not there.
    """
    if isinstance(wanted, _C.dtype) or wanted in (bool, int, float, complex):
        return tensor.to(wanted)
    name = "Tensor" if wanted is taeda.Tensor else wanted
    name = getattr(name, "_type_string", name)
    if not isinstance(name, str):
        raise TypeError(
            "type(): dtype must be a type, str, or dtype object, got "
            f"{type(wanted).__name__}"
        )
    rest = name.removeprefix("torch.").removeprefix("taeda.")
    device = "cuda" if rest.startswith("cuda.") else "cpu"
    rest = rest.removeprefix("cuda.")
    if rest == "Tensor":
        return tensor.to(device=device, dtype=_C.get_default_dtype())
    for dtype, known in _NAMES.items():
        if rest == known:
            return tensor.to(device=device, dtype=getattr(_C, dtype))
    raise ValueError(f"invalid type: '{name}'")


class tensortype(type):
    """The class of these types: calls make tensors, isinstance looks at the dtype."""

    def __call__(cls, *args, device=None):
        if len(args) == 1 and isinstance(args[0], taeda.Tensor):
            if args[0].dtype != cls.dtype:
                raise TypeError(
                    f"expected {cls.__name__} (got {args[0].type().rpartition('.')[2]})"
                )
            return args[0].detach()
        if len(args) == 1 and hasattr(args[0], "untyped"):
            empty = taeda.empty(0, dtype=cls.dtype, device=args[0].device)
            return empty.set_(args[0])
        if len(args) == 1 and isinstance(args[0], _C.Size):
            return taeda.empty(args[0], dtype=cls.dtype, device=device)
        sizes = args
        if all(type(size) is int for size in sizes):
            return taeda.empty(tuple(sizes) or (0,), dtype=cls.dtype, device=device)
        if len(sizes) != 1:
            raise TypeError(
                f"new(): expected sizes, or data alone, got {len(sizes)} arguments"
            )
        return taeda.tensor(args[0], dtype=cls.dtype, device=device)

    def __instancecheck__(cls, instance) -> bool:
        return (
            isinstance(instance, taeda.Tensor)
            and instance.dtype == cls.dtype
            and instance.is_cpu
            and not instance.is_sparse
        )

    def __repr__(cls) -> str:
        return f"<class '{cls._type_string}'>"


def _make(name: str, dtype: str) -> tensortype:
    space = {
        "dtype": getattr(_C, dtype),
        "_type_string": f"{taeda.__name__}.{name}",
        "is_cuda": False,
        "is_sparse": False,
        "__module__": taeda.__name__,
        "__doc__": f"Tensors of dtype {dtype} on the CPU, under their old name.",
    }
    return tensortype(name, (), space)


def type_of(dtype) -> tensortype:
    """The old type of a dtype; one without a public name is made for the call."""
    short = repr(dtype).rpartition(".")[2]
    name = _NAMES.get(short, short)
    return globals().get(name) or _make(name, short)


for _name, _dtype in _DTYPES.items():
    globals()[_name] = _make(_name, _dtype)
