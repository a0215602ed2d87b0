"""Types of CUDA tensors and storages by their old names, as PyTorch's build without
CUDA has them."""

from __future__ import annotations

from taeda import _C

from .legacy_types import _DTYPES

_STORAGES = {name.replace("Tensor", "Storage"): d for name, d in _DTYPES.items()}
_STORAGES |= {"ComplexDoubleStorage": "complex128", "ComplexFloatStorage": "complex64"}
__all__ = [*_DTYPES, *_STORAGES]


class _CudaType(type):
    """The class of these types: no tensor is of one, and none can be made."""

    def __call__(cls, *args, **kwargs):
        raise TypeError(
            f"type {cls._type_string} not available: Taeda not compiled with CUDA "
            "enabled"
        )

    def __instancecheck__(cls, instance) -> bool:
        return False


class _CudaStorage(type):
    """The class of old storages: calls make typed ones on a GPU."""

    def __call__(
        cls, *args, wrap_storage=None, dtype=None, device=None, _internal=False
    ):
        from taeda.cuda._devices import _driver
        from taeda.storage import TypedStorage

        _driver()
        return TypedStorage(
            *args, wrap_storage=wrap_storage, dtype=cls.dtype, device=device or "cuda"
        )

    def __instancecheck__(cls, instance) -> bool:
        from taeda.storage import TypedStorage

        if not isinstance(instance, TypedStorage):
            return False
        return instance.is_cuda and instance.dtype == cls.dtype


def _from_buffer(*args, **kwargs):
    """Raises RuntimeError: a buffer's bytes are on the CPU."""
    raise RuntimeError("from_buffer: Not available for CUDA storage")


def _types(meta: type, dtypes: dict, module: str, what: str, **more) -> dict:
    return {
        name: meta(
            name,
            (),
            {
                "dtype": getattr(_C, dtype),
                "_type_string": f"{module}.{name}",
                "is_cuda": True,
                "is_sparse": False,
                "__module__": module,
                "__doc__": f"{what} of dtype {dtype} on a GPU, by their old name.",
                **more,
            },
        )
        for name, dtype in dtypes.items()
    }


globals().update(_types(_CudaType, _DTYPES, "taeda.cuda", "Tensors"))
globals().update(
    _types(
        _CudaStorage,
        _STORAGES,
        "taeda.cuda",
        "Storages",
        from_buffer=staticmethod(_from_buffer),
    )
)
_SPARSE = {name: dtype for name, dtype in _DTYPES.items() if dtype != "bool"}
sparse_types = _types(
    _CudaType, _SPARSE, "taeda.cuda.sparse", "Sparse tensors", is_sparse=True
)
