"""Parameters as one vector, and back."""

from __future__ import annotations

import taeda
from taeda import Tensor

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def _same_device(tensors):
    """The tensors, refused when they lie on several devices."""
    first = None
    for t in tensors:
        first = t.device if first is None else first
        if t.device != first:
            raise TypeError(
                "Found two parameters on different devices, this is currently not "
                "supported."
            )
        yield t


def parameters_to_vector(parameters) -> Tensor:
    """All parameters flattened, one after the other.

    Raises:
        TypeError: they lie on several devices.

    Example:
        >>> taeda.nn.utils.parameters_to_vector([taeda.ones(1, 2), taeda.zeros(1)])
        tensor([1., 1., 0.])
    """
    return taeda.cat([t.view(-1) for t in _same_device(parameters)])


def vector_to_parameters(vec: Tensor, parameters) -> None:
    """Make the parameters views of consecutive parts of a vector.

    Args:
        vec (Tensor): 1-D, long enough.
        parameters: an iterable of tensors.

    Raises:
        TypeError: `vec` is no tensor; the parameters lie on several devices.

    Example:
        >>> p = taeda.nn.Parameter(taeda.zeros(1, 2))
        >>> taeda.nn.utils.vector_to_parameters(taeda.tensor([1.0, 2.0]), [p])
        >>> p.tolist()
        [[1.0, 2.0]]
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec).__name__}")
    at = 0
    for t in _same_device(parameters):
        t.data = vec[at : at + t.numel()].view_as(t).data
        at += t.numel()
