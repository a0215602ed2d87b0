"""Functions of the top level that are not operators."""

from __future__ import annotations

from taeda import _C
from taeda._C import Size, UntypedStorage, device, dtype
from taeda._tensor import Tensor, _asking
from taeda.random import (
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)

__all__ = [
    "asarray",
    "from_dlpack",
    "get_default_device",
    "get_device_module",
    "get_num_interop_threads",
    "get_rng_state",
    "initial_seed",
    "is_storage",
    "get_device",
    "is_complex",
    "is_floating_point",
    "is_inference",
    "is_nonzero",
    "is_signed",
    "is_tensor",
    "numel",
    "manual_seed",
    "seed",
    "set_default_device",
    "set_default_tensor_type",
    "set_num_interop_threads",
    "set_rng_state",
    "to_dlpack",
    "typename",
]


def is_tensor(obj) -> bool:
    """Whether `obj` is a tensor.

    Example:
        >>> taeda.is_tensor(taeda.zeros(2))
        True
    """
    return isinstance(obj, Tensor)


def is_storage(obj) -> bool:
    """Whether `obj` is a storage, typed or not."""
    return isinstance(obj, UntypedStorage) or hasattr(obj, "_untyped_storage")


def typename(obj, /) -> str:
    """The full name of an object's type; of a tensor, its old type string.

    Example:
        >>> taeda.typename(taeda.ones(2))
        'taeda.FloatTensor'
    """
    if isinstance(obj, Tensor):
        return obj.type()
    kind = obj if hasattr(obj, "__qualname__") else type(obj)
    module = getattr(kind, "__module__", None) or ""
    if module in ("", "builtins"):
        return kind.__qualname__
    return f"{module}.{kind.__qualname__}"


@_asking
def is_floating_point(input: Tensor) -> bool:
    """Whether a tensor's dtype is a floating-point one.

    Example:
        >>> taeda.is_floating_point(taeda.ones(2))
        True
    """
    return input.is_floating_point()


@_asking
def is_complex(input: Tensor) -> bool:
    """Whether a tensor's dtype is complex.

    Example:
        >>> taeda.is_complex(taeda.ones(2))
        False
    """
    return input.is_complex()


@_asking
def is_signed(input: Tensor) -> bool:
    """Whether a tensor's dtype has negative values."""
    return input.is_signed()


@_asking
def is_inference(input: Tensor) -> bool:
    """Whether a tensor was made in inference mode."""
    return input.is_inference()


@_asking
def numel(input: Tensor) -> int:
    """The number of a tensor's elements.

    Example:
        >>> taeda.numel(taeda.ones(2, 3))
        6
    """
    return input.numel()


@_asking
def get_device(input: Tensor) -> int:
    """The index of a tensor's device; -1 on the CPU."""
    return input.get_device()


@_asking
def is_nonzero(input: Tensor) -> bool:
    """Whether a tensor's only element is not zero.

    Raises:
        RuntimeError: the tensor has more or fewer elements.
    """
    return bool(input)


def get_default_device() -> device:
    """Where tensors are made when no device is given.

    Example:
        >>> taeda.get_default_device()
        device(type='cpu')
    """
    return _C._get_default_device()


def set_default_device(device: device | str | None) -> None:
    """Set where tensors are made when no device is given; None means the CPU.

    Example:
        >>> taeda.set_default_device("meta")
        >>> taeda.ones(2).device
        device(type='meta')
        >>> taeda.set_default_device(None)
    """
    _C._set_default_device(device)


def set_default_tensor_type(t) -> None:
    """Set default dtype and device from an old type, such as "taeda.FloatTensor".

    Args:
        t: the type or its name.
    """
    name = t if isinstance(t, str) else t._type_string
    _, _, kind = name.rpartition(".")
    dtypes = {"FloatTensor": _C.float32, "DoubleTensor": _C.float64}
    dtypes |= {"HalfTensor": _C.float16, "BFloat16Tensor": _C.bfloat16}
    if kind not in dtypes:
        raise TypeError(
            "only floating-point types are supported as the default type, got " + name
        )
    _C.set_default_dtype(dtypes[kind])
    _C._set_default_device("cuda" if ".cuda." in name else "cpu")


_interop_threads = 1


def get_num_interop_threads() -> int:
    """How many threads run independent operators; operators run one by one here."""
    return _interop_threads


def set_num_interop_threads(num: int) -> None:
    """Set how many threads may run independent operators.

    It is a limit that is never reached: eager operators run one by one, and scripted
    code, which could fork, is not implemented.

    Raises:
        RuntimeError: less than one, or more than any machine has.
    """
    global _interop_threads
    if not 0 < num < 2**31:
        raise RuntimeError(
            f"set_num_interop_threads: expects a positive integer, got {num}"
        )
    _interop_threads = num


def get_device_module(device=None):
    """The submodule of a kind of device: `taeda.cpu`, `taeda.cuda`."""
    import importlib

    kind = _C.device(device if device is not None else "cpu").type
    return importlib.import_module(f"taeda.{kind}")


# Exchange ----------------------------------------------------------------------


def to_dlpack(tensor: Tensor):
    """A DLPack capsule over the tensor's memory."""
    from taeda import _dlpack

    return _dlpack.to_dlpack(tensor)


def from_dlpack(ext_tensor, *, device=None, copy: bool | None = None) -> Tensor:
    """A tensor over the memory of another library's array.

    Args:
        ext_tensor: an object with `__dlpack__`, or a DLPack capsule.
        device: where the result has to be; None takes the array's own.
        copy: True makes a copy, False raises where one would be needed.

    Returns:
        A tensor that shares memory unless a copy was asked for.

    Example:
        >>> taeda.from_dlpack(taeda.arange(3)).tolist()
        [0, 1, 2]
    """
    from taeda import _dlpack

    if not hasattr(ext_tensor, "__dlpack__"):
        return _dlpack.from_dlpack(ext_tensor)
    options = {}
    if copy is not None:
        options["copy"] = copy
    try:
        capsule = ext_tensor.__dlpack__(max_version=(1, 0), **options)
    except TypeError:
        capsule = ext_tensor.__dlpack__(**options)
    found = _dlpack.from_dlpack(capsule)
    return found if device is None else found.to(device)


def asarray(
    obj,
    *,
    dtype: dtype | None = None,
    device: device | str | None = None,
    copy: bool | None = None,
    requires_grad: bool | None = None,
) -> Tensor:
    """Anything like an array as a tensor.

    Args:
        obj: tensor, array, DLPack capsule, object with the buffer protocol, number or
            nested sequence.
        dtype, device: of the result; taken from `obj` if None.
        copy: True always copies, False raises where memory cannot be shared, None
            shares where possible.
        requires_grad: whether the result requires grad, as `obj` does if None.

    Returns:
        A tensor.

    Raises:
        ValueError: a copy is needed but `copy` is False.

    Example:
        >>> taeda.asarray([[1, 2], [3, 4]])
        tensor([[1, 2],
                [3, 4]])
    """
    found, shared = _shared(obj, dtype)
    if found is None:
        if copy is False and type(obj).__module__ == "numpy":
            raise RuntimeError("can't alias NumPy scalars.")
        if copy is False:
            raise ValueError("can't alias arbitrary sequence into a tensor.")
        found = _C.tensor(obj, dtype=dtype, device=device)
    elif copy is False and not (
        dtype in (None, found.dtype)
        and (device is None or _C.device(device) == found.device)
    ):
        what = "dtype" if dtype not in (None, found.dtype) else "device"
        old, new = (getattr(found, what), dtype if what == "dtype" else device)
        raise ValueError(f"can't alias tensor with {what} '{old}' into {what} '{new}'.")
    else:
        wanted = found.dtype if dtype is None else dtype
        place = found.device if device is None else device
        found = found.to(device=place, dtype=wanted, copy=copy is True and shared)
    if requires_grad is False and found.requires_grad:
        return found.detach()
    return found.requires_grad_() if requires_grad else found


def _shared(obj, dtype):
    """(tensor over obj's memory or None, whether it shares memory)."""
    if isinstance(obj, Tensor):
        return obj, True
    if type(obj).__module__ == "numpy":
        import numpy

        if isinstance(obj, numpy.ndarray):
            return _C.from_numpy(obj), True
        return None, False
    if hasattr(obj, "__dlpack__"):
        return from_dlpack(obj), True
    if type(obj).__name__ == "PyCapsule":
        return from_dlpack(obj), True
    if isinstance(obj, (list, tuple, str, Size)) or not _has_buffer(obj):
        return None, False
    from taeda._buffers import frombuffer

    return frombuffer(obj, dtype=dtype or _C.get_default_dtype()), True


def _has_buffer(obj) -> bool:
    try:
        memoryview(obj).release()
    except TypeError:
        return False
    return True
