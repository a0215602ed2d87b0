"""Methods of tensors that few programs call; the class finds them on first use."""

from __future__ import annotations

import taeda
from taeda import _C, Tensor

__all__ = ["METHODS", "bound"]


def is_set_to(self, tensor) -> bool:
    """Whether both show the same memory with the same sizes and strides."""
    ours, theirs = self.untyped_storage(), tensor.untyped_storage()
    return (
        ours._cdata == theirs._cdata
        and self.storage_offset() == tensor.storage_offset()
        and self.shape == tensor.shape
        and self.stride() == tensor.stride()
    )


def map2_(self, x, y, callable):
    """Replace each element by callable(element, x's element, y's element); slow."""
    from taeda._tensor import _refill

    if x.requires_grad or y.requires_grad:
        raise RuntimeError(
            "Can't call map2_() with a tensor that requires grad; detach it first"
        )
    flat = (t.expand_as(self).reshape(-1).tolist() for t in (self, x, y))
    values = [callable(*three) for three in zip(*flat, strict=True)]
    return _refill(self, values, "map2_")


def resize(self, *sizes):
    """The elements in other sizes, of as many elements; old for `reshape`."""
    import warnings

    from taeda._seldom import resize_of

    warnings.warn("non-inplace resize is deprecated", stacklevel=2)
    return resize_of(self, *sizes)


def resize_as(self, tensor):
    """The elements in another tensor's sizes; old for `reshape_as`."""
    import warnings

    from taeda._seldom import resize_of

    warnings.warn("non-inplace resize_as is deprecated", stacklevel=2)
    return resize_of(self, tensor.shape)


def lu(self, pivot: bool = True, get_infos: bool = False):
    """Factors of matrices in one tensor, and pivots; see `linalg.lu_factor`."""
    return taeda.functional.lu(self, pivot, get_infos)


def record_stream(self, s) -> None:
    """Keep the memory of a tensor on a GPU, once it is freed, until a stream that uses
    it is done with what it has now.

    Work on the CPU has ended when its call returns: there is nothing to record.

    Raises:
        TypeError: `s` is no stream.
    """
    kinds = (taeda.Stream, taeda.cpu.Stream, taeda.cuda.Stream)
    if not isinstance(s, kinds):
        raise TypeError(f"record_stream: expected a stream, got {type(s).__name__}")
    if self.is_cuda:
        from taeda import _cuda

        _cuda.record_stream(self, s.device_index, s.stream_id)
    elif self.device.type == taeda._C._get_privateuse1_backend_name():
        from taeda import _cuda

        _cuda.record_program_stream(self, s.device_index, s.stream_id)


def _repr_html_(self) -> str:
    """What a notebook shows."""
    from taeda._notebook import tensor_html

    return tensor_html(self)


def __div__(self, other):
    return self / other


def __idiv__(self, other):
    return self.div_(other)


def __long__(self) -> int:
    return int(self)


def __nonzero__(self) -> bool:
    return bool(self)


def is_distributed(self) -> bool:
    """Whether it lies on several devices at once: False."""
    return False


def slice_inverse(self, src, dim: int = 0, start=None, end=None, step=1):
    """See `taeda.slice_inverse`."""
    return taeda.slice_inverse(self, src, dim, start, end, step)


def dequantize(self):
    """See `taeda.dequantize`."""
    return taeda.dequantize(self)


def resize_as_sparse_(self, the_template):
    """See `taeda.resize_as_sparse_`."""
    return taeda.resize_as_sparse_(self, the_template)


def to_sparse_coo(self):
    """The tensor in COO layout; see `Tensor.to_sparse`."""
    return self.to_sparse()


def to_padded_tensor(self, padding: float, output_size=None):
    """A nested tensor's entries in one dense tensor; nested tensors define it.

    Raises:
        NotImplementedError: on tensors that are not nested.
    """
    raise NotImplementedError(
        "Could not run 'aten::to_padded_tensor' with arguments from the "
        f"'{self.device.type.upper()}' backend: the tensor is not nested"
    )


def _of_quantized(name: str):
    def method(self):
        raise NotImplementedError(
            f"Could not run 'aten::{name}' with arguments from the "
            f"'{self.device.type.upper()}' backend: the tensor is not quantized"
        )

    method.__name__ = name
    method.__doc__ = "Raises NotImplementedError: there are no quantized tensors here."
    return method


# What a quantized tensor's integers stand for.
OF_QUANTIZED = (
    "int_repr",
    "q_per_channel_axis",
    "q_per_channel_scales",
    "q_per_channel_zero_points",
    "q_scale",
    "q_zero_point",
    "qscheme",
)


def grad_dtype(self):
    """The dtype of a leaf's gradient: its own unless another was chosen.

    None where gradients keep the dtype that they come in.

    Raises:
        RuntimeError: the tensor is no leaf.
    """
    if self.grad_fn is not None:
        raise RuntimeError("grad_dtype can only be accessed on leaf tensors.")
    return _C._grad_dtype(self)


def set_grad_dtype(self, dtype) -> None:
    """Chooses the dtype that gradients are cast to; None casts none.

    Raises:
        RuntimeError: the tensor is no leaf, has a grad of another dtype, or `dtype` is
            no dtype.
    """
    if dtype is not None and not isinstance(dtype, _C.dtype):
        raise RuntimeError(
            f"grad_dtype must be a {taeda.__name__}.dtype or None, but got "
            f"{type(dtype).__name__}"
        )
    if self.grad_fn is not None:
        raise RuntimeError("grad_dtype can only be set on leaf tensors.")
    _C._set_grad_dtype(self, dtype)


def _moving(name: str):
    def move(
        self,
        device=None,
        non_blocking: bool = False,
        memory_format=_C.preserve_format,
    ):
        raise AssertionError(f"Taeda not compiled with {name.upper()} enabled")

    move.__name__ = name
    move.__doc__ = "Raises AssertionError: this build has no such device."
    return move


METHODS = {
    f.__name__: f
    for f in (
        is_set_to,
        map2_,
        resize,
        resize_as,
        lu,
        record_stream,
        _repr_html_,
        __div__,
        __idiv__,
        __long__,
        __nonzero__,
        is_distributed,
        slice_inverse,
        dequantize,
        resize_as_sparse_,
        to_sparse_coo,
        to_padded_tensor,
        *(_of_quantized(name) for name in OF_QUANTIZED),
        _moving("ipu"),
        _moving("mtia"),
        _moving("xpu"),
    )
}


def _removed(name: str):
    def method(self, *args, **kwargs):
        return getattr(taeda, name)(self, *args, **kwargs)

    method.__name__, method.__doc__ = name, getattr(taeda, name).__doc__
    return method


METHODS.update((name, _removed(name)) for name in ("eig", "lstsq", "solve", "symeig"))


def bound(name: str):
    """The method of that name, which subclasses can override."""
    from functools import wraps

    plain = METHODS[name]

    @wraps(plain)
    def method(self, *args, **kwargs):
        if _C._has_torch_function_unary(self):
            from taeda.overrides import handle_torch_function

            return handle_torch_function(method, (self,), self, *args, **kwargs)
        return plain(self, *args, **kwargs)

    method.__qualname__, method.__module__ = f"Tensor.{name}", Tensor.__module__
    return method
