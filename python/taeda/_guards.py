"""Under PyTorch's name: which mode of fake tensors is in force."""

from __future__ import annotations

__all__ = ["active_fake_mode", "detect_fake_mode"]


def active_fake_mode():
    """The innermost mode of fake tensors of the thread; None without one."""
    from taeda._subclasses.fake_tensor import FakeTensorMode
    from taeda.utils._python_dispatch import _get_current_dispatch_mode_stack

    for mode in reversed(_get_current_dispatch_mode_stack()):
        if isinstance(mode, FakeTensorMode):
            return mode
    return None


def detect_fake_mode(inputs=None):
    """The mode that is in force, or that of the fake tensors among some values.

    Args:
        inputs: tensors and other values, nested; None looks at the thread alone.

    Returns:
        The mode, None without one.

    Raises:
        AssertionError: the values are of several modes.
    """
    from taeda._subclasses.fake_tensor import FakeTensor
    from taeda.utils._pytree import tree_leaves

    leaves = tree_leaves(inputs)
    modes = [leaf.fake_mode for leaf in leaves if isinstance(leaf, FakeTensor)]
    if (active := active_fake_mode()) is not None:
        modes.insert(0, active)
    if any(mode is not modes[0] for mode in modes):
        raise AssertionError("fake tensors of several modes were given")
    return modes[0] if modes else None
