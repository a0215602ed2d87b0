"""The levels of function transforms, as contexts (csrc/functorch)."""

from __future__ import annotations

import textwrap

from taeda import _C

__all__ = [
    "batch_level",
    "below",
    "debug_unwrap",
    "dual_level",
    "functional_level",
    "grad_level",
    "innermost",
    "wrapper_text",
]


def grad_level():
    """A level of reverse mode; inside `with`, calls on its wrappers are recorded.

    Its `wrap(tensor)` gives a wrapper, `leaf(tensor)` one that gradients are taken by,
    `unwrap(tensor)` the value inside, `holds(tensor)` tells its wrappers from other
    tensors. A wrapper that outlives the level stands for the value inside.
    """
    return _C._functorch.GradLevel()


def batch_level(size: int, randomness: str):
    """A level of vmap; inside `with`, wrappers hide a dim of `size` elements.

    Its `wrap(tensor, dim)` hides a dim, `unwrap(tensor, dim)` shows it again (or
    expands what has none), `holds(tensor)` tells wrappers from other tensors.

    Raises:
        RuntimeError: randomness is not "error", "different" or "same".
    """
    return _C._functorch.BatchLevel(size, randomness)


def dual_level(is_transform: bool = True):
    """A level of forward mode: tensors made by its `make_dual` carry tangents.

    Its `make_dual(primal, tangent)` gives an alias with a tangent, `primal(tensor)` an
    alias without, `tangent(tensor)` the tangent, None where it is zero.

    Args:
        is_transform: whether it is one of func's, in which autograd's own calls
            (backward, requires_grad_) are refused.
    """
    return _C._functorch.DualLevel(is_transform)


def functional_level(keep_views: bool = True, is_transform: bool = True):
    """A level in which nothing is written: values change, wrappers of them stay.

    Its `wrap_inputs(tensors)` gives wrappers that share memory as the tensors do,
    `unwrap(tensor)` the present value, `is_changed(tensor)` whether an input was
    written to, `write_back()` writes to inputs what their wrappers have become and
    `output(tensor)` is what a result stands for outside, once the level has ended.

    Args:
        keep_views: whether views stay views; copies otherwise.
        is_transform: whether autograd's own calls are refused; where they are not,
            it is the wrappers that autograd records.
    """
    return _C._functorch.FunctionalLevel(keep_views, is_transform)


def innermost():
    """The innermost level of the thread; None without any."""
    return _C._functorch.innermost()


def below(level):
    """A context in which calls run as if a level, and those inside, did not exist."""
    return _C._functorch.below(level)


def debug_unwrap(tensor, *, recurse: bool = True):
    """The value inside a transform's tensor, to look at: never to compute with.

    Args:
        tensor: any tensor; a plain one is returned as it is.
        recurse: whether to take off the wrappers of all levels.

    Raises:
        TypeError: no tensor.

    Example:
        >>> x = taeda.ones(2)
        >>> taeda.func.debug_unwrap(x) is x
        True
    """
    if not isinstance(tensor, _C.TensorBase):
        raise TypeError(f"debug_unwrap: expected a Tensor, got {type(tensor).__name__}")
    facts = _C._functorch.describe(tensor)
    while facts is not None:
        tensor = facts[-1]
        facts = _C._functorch.describe(tensor) if recurse else None
    return tensor


def wrapper_text(tensor) -> str | None:
    """The text of `repr` for a transform's tensor; None for a plain one."""
    facts = _C._functorch.describe(tensor)
    if facts is None:
        return None
    kind, depth, dim, value = facts
    names = {
        "vmap": "BatchedTensor",
        "grad": "GradTrackingTensor",
        "functionalize": "FunctionalTensor",
        "compile": "TracedTensor",
    }
    level = "dead" if depth < 0 else f"lvl={depth}"
    head = f"{level}, bdim={dim}" if kind == "vmap" else level
    inside = textwrap.indent(repr(value), "    ")
    return f"{names[kind]}({head}, value=\n{inside}\n)"
