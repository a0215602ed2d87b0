"""Neural networks: layers, their functions, initial values and utilities.

Layers live in `modules/`, functions in `functional/`; a file is read when a name of
its own is first used, so that importing this package costs little.
"""

from __future__ import annotations

from taeda._lazy import attributes

from .modules import _WHERE
from .modules.module import Module
from .parameter import (
    Buffer,
    Parameter,
    UninitializedBuffer,
    UninitializedParameter,
)

_PACKAGES = frozenset(
    (
        "attention",
        "common_types",
        "functional",
        "grad",
        "init",
        "modules",
        "parallel",
        "parameter",
        "utils",
    )
)
__all__ = [
    "Buffer",
    "DataParallel",
    "Module",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    *sorted(_WHERE.keys() - {"Module"}),
]


__getattr__ = attributes(
    __name__,
    {name: f"modules.{file}" for name, file in _WHERE.items()}
    | {"DataParallel": "parallel"},
    _PACKAGES,
)


def __dir__():
    return [*globals(), *__all__, *_PACKAGES]


def factory_kwargs(kwargs: dict | None) -> dict:
    """The options of a layer's constructor that `empty` and its kin take as well.

    Args:
        kwargs: `device`, `dtype`, `memory_format`, and a dictionary
            `factory_kwargs` of the same, which may not repeat one.

    Returns:
        dict: all of them together.

    Raises:
        TypeError: an option that is none of these, or that is given twice.

    Example:
        >>> taeda.nn.factory_kwargs({"device": "cpu"})
        {'device': 'cpu'}
    """
    if kwargs is None:
        return {}
    known = {"device", "dtype", "memory_format"}
    unknown = kwargs.keys() - known - {"factory_kwargs"}
    if unknown:
        raise TypeError(f"unexpected kwargs {unknown}")
    result = dict(kwargs.get("factory_kwargs", {}))
    for name in known & kwargs.keys():
        if name in result:
            raise TypeError(
                f"{name} specified twice, in **kwargs and in factory_kwargs"
            )
        result[name] = kwargs[name]
    return result
