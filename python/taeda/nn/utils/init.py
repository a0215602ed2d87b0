"""Making modules without drawing their first values."""

from __future__ import annotations

from ..modules.module import Module

__all__ = ["skip_init"]


def skip_init(module_cls, *args, **kwargs):
    """An object of `module_cls` whose parameters are uninitialized memory.

    Args:
        module_cls: a module class whose constructor takes `device`.
        args, kwargs: of the constructor.

    Raises:
        RuntimeError: no module class, or without `device`.

    Example:
        >>> taeda.nn.utils.skip_init(taeda.nn.Linear, 5, 1)
        Linear(in_features=5, out_features=1, bias=True)
    """
    import inspect

    if not isinstance(module_cls, type) or not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    options = {"device": "cpu", **kwargs}
    empty = module_cls(*args, **{**options, "device": "meta"})
    return empty.to_empty(device=options["device"])
