"""Types of CUDA tensors by their old names, as a build without CUDA has them."""

from __future__ import annotations

from taeda import _C

from .legacy_types import _DTYPES

__all__ = list(_DTYPES)


class _CudaType(type):
    """The class of these types: no tensor is of one, and none can be made."""

    def __call__(cls, *args, **kwargs):
        raise TypeError(
            f"type {cls._type_string} not available: Taeda not compiled with CUDA "
            "enabled"
        )

    def __instancecheck__(cls, instance) -> bool:
        return False


for _name, _dtype in _DTYPES.items():
    globals()[_name] = _CudaType(
        _name,
        (),
        {
            "dtype": getattr(_C, _dtype),
            "_type_string": f"taeda.cuda.{_name}",
            "is_cuda": True,
            "is_sparse": False,
            "__module__": "taeda.cuda",
            "__doc__": f"Tensors of dtype {_dtype} on a GPU; calls raise TypeError.",
        },
    )
