"""Tools around tensors: data loading, checkpointing, hooks, DLPack.

Submodules load when they are first named.
"""

from __future__ import annotations

from taeda._lazy import attributes

_MODULES = {
    "_mode_utils",
    "_python_dispatch",
    "_pytree",
    "benchmark",
    "checkpoint",
    "collect_env",
    "cpp_extension",
    "data",
    "deterministic",
    "dlpack",
    "file_baton",
    "hooks",
    "model_zoo",
    "safetensors",
    "serialization",
    "tensorboard",
    "throughput_benchmark",
    "weak",
}

# Where find_package(Taeda) looks: the package's own folder.
cmake_prefix_path = f"{__path__[0].rpartition('/')[0]}/share/cmake"

__all__ = ["set_module", "swap_tensors"]


__getattr__ = attributes(
    __name__, {"ThroughputBenchmark": "throughput_benchmark"}, _MODULES
)


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
