"""Tools around tensors: data loading, checkpointing, hooks, DLPack.

Submodules load when they are first named.
"""

from __future__ import annotations

from taeda._lazy import attributes

_MODULES = {
    "_mode_utils",
    "_python_dispatch",
    "_pytree",
    "backcompat",
    "backend_registration",
    "benchmark",
    "checkpoint",
    "collect_env",
    "cpp_backtrace",
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


_WHERE = {
    "ThroughputBenchmark": "throughput_benchmark",
    "generate_methods_for_privateuse1_backend": "backend_registration",
    "get_cpp_backtrace": "cpp_backtrace",
    "rename_privateuse1_backend": "backend_registration",
}
__getattr__ = attributes(__name__, _WHERE, _MODULES)


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

    Classes, attributes and slots are exchanged too. A graph in which one of them is a
    leaf can no longer be run backward.

    Raises:
        RuntimeError: a weak reference to one of them exists, something else in C++
            holds one of them, or their classes have different slots.
    """
    import copyreg
    import weakref

    import taeda

    slots = [set(copyreg._slotnames(type(t))) for t in (t1, t2)]
    for tensor, name in ((t1, "t1"), (t2, "t2")):
        if weakref.getweakrefs(tensor):
            raise RuntimeError(
                f"Cannot swap {name} because it has weakref associated with it"
            )
    if slots[0] != slots[1]:
        raise RuntimeError("Cannot swap t1 and t2 if they have different slots")
    for tensor, name in ((t1, "t1"), (t2, "t2")):
        _check_held_alone(tensor, name)
    t1.__class__, t2.__class__ = t2.__class__, t1.__class__
    t1.__dict__, t2.__dict__ = t2.__dict__, t1.__dict__
    for slot in slots[0]:
        _swap_slot(t1, t2, slot)
    taeda._C._swap_tensor_impl(t1, t2)


def _check_held_alone(tensor, name: str) -> None:
    """Nothing but its object may hold the tensor, or a leaf's AccumulateGrad node,
    whose gradient would now go to the other object and is refused."""
    from taeda import _C
    from taeda.autograd.graph import get_gradient_edge

    count = _C._tensor_use_count(tensor)
    if count == 2 and tensor.is_leaf and tensor.requires_grad:
        # Where there is no such node yet, this makes one, which is one holder more.
        node = get_gradient_edge(tensor).node
        count = _C._tensor_use_count(tensor)
        if count == 2:
            node.register_prehook(_refuse_gradient)
            return
    if count > 1:
        raise RuntimeError(
            f"Expected use_count of {name} to be 1 or 2 with an AccumulateGrad node "
            f"but got {count}: a view, a saved tensor or a list in C++ holds it"
        )


def _refuse_gradient(grad_outputs) -> None:
    raise RuntimeError(
        "Trying to execute AccumulateGrad node that was poisoned by swap_tensors: a "
        "leaf of this graph was exchanged between forward and backward; convert or "
        "load modules before forward or after backward"
    )


def _swap_slot(t1, t2, slot: str) -> None:
    missing = object()
    first, second = (getattr(t, slot, missing) for t in (t1, t2))
    for tensor, value in ((t1, second), (t2, first)):
        if value is not missing:
            setattr(tensor, slot, value)
        elif hasattr(tensor, slot):
            delattr(tensor, slot)
