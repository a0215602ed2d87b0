"""Tools around tensors: data loading, checkpointing, hooks, DLPack.

Submodules load when they are first named.
"""

from __future__ import annotations

_MODULES = {
    "_pytree",
    "benchmark",
    "checkpoint",
    "collect_env",
    "cpp_extension",
    "data",
    "deterministic",
    "dlpack",
    "hooks",
    "model_zoo",
    "safetensors",
    "serialization",
    "tensorboard",
    "weak",
}

# Where find_package(Taeda) looks: the package's own folder.
_CMAKE_PREFIX_PATH = f"{__path__[0].rpartition('/')[0]}/share/cmake"

__all__ = ["set_module", "swap_tensors"]


def __getattr__(name: str):
    if name in _MODULES:
        from importlib import import_module

        try:
            return import_module(f"{__name__}.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{name}":
                raise
    if name == "cmake_prefix_path":
        return _CMAKE_PREFIX_PATH
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def set_module(obj, mod) -> None:
    """Let `obj` say that it comes from module `mod`.

    Raises:
        TypeError: `mod` is no string.
    """
    if not isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod


def swap_tensors(t1, t2) -> None:
    """Exchange two tensors: each object then holds what the other held.

    Raises:
        RuntimeError: a weak reference to one of them exists.
    """
    import weakref

    import taeda

    for tensor in (t1, t2):
        if weakref.getweakrefs(tensor):
            raise RuntimeError("Cannot swap tensors that have weak references")
    t1.__class__, t2.__class__ = t2.__class__, t1.__class__
    t1.__dict__, t2.__dict__ = t2.__dict__, t1.__dict__
    taeda._C._swap_tensor_impl(t1, t2)
