"""Clipping gradients by their norm or by value."""

from __future__ import annotations

import taeda
from taeda import Tensor

from .._native import native, warn
from .._types import Flag

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "get_total_norm",
]


def _as_list(tensors) -> list[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def _gradients(parameters) -> list[Tensor]:
    return [p.grad for p in _as_list(parameters) if p.grad is not None]


def _groups(tensors, foreach):
    """Tensors of one device and dtype together, and whether to use fused kernels."""
    groups: dict = {}
    for t in tensors:
        groups.setdefault((t.device, t.dtype), []).append(t)
    for (device, _), group in groups.items():
        fused = device.type in ("cpu", "cuda")
        if foreach and not fused:
            raise RuntimeError(
                "foreach=True was passed, but can't use the foreach API on "
                f"{device.type} tensors"
            )
        yield device, group, fused and foreach is not False


def get_total_norm(
    tensors,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: Flag = None,
) -> Tensor:
    """The norm of all tensors as if they were one vector.

    Args:
        tensors: a tensor or an iterable of them.
        norm_type: exponent of the norm; infinity is the largest element.
        error_if_nonfinite: raise when the result is inf or nan.
        foreach: one fused kernel for each list; None where there is one.

    Raises:
        RuntimeError: see `error_if_nonfinite`; `foreach` on another device.

    Example:
        >>> taeda.nn.utils.get_total_norm([taeda.tensor([3.0]), taeda.tensor([4.0])])
        tensor(5.)
    """
    tensors, norm_type = _as_list(tensors), float(norm_type)
    if not tensors:
        return taeda.tensor(0.0)
    norm = taeda.linalg.vector_norm
    with taeda.no_grad():
        norms = []
        for _, group, fused in _groups(tensors, foreach):
            if fused:
                norms.extend(native("_foreach_norm")(group, norm_type))
            else:
                norms.extend(norm(t, norm_type) for t in group)
        at = tensors[0].device
        total = norm(taeda.stack([n.to(at) for n in norms]), norm_type)
        if error_if_nonfinite and not total.isfinite():
            raise RuntimeError(
                f"The total norm of order {norm_type} for gradients from `parameters` "
                "is non-finite, so it cannot be clipped. Set error_if_nonfinite=False "
                "to scale by it anyway"
            )
    return total


def clip_grads_with_norm_(
    parameters, max_norm: float, total_norm: Tensor, foreach: Flag = None
) -> None:
    """Scale gradients by max_norm / total_norm where that is below 1.

    Args:
        parameters: a parameter or an iterable of them.
        max_norm: the norm to stay under.
        total_norm (Tensor): the norm they have.
        foreach: as for `get_total_norm`.

    Example:
        >>> p = taeda.nn.Parameter(taeda.zeros(1))
        >>> p.grad = taeda.tensor([10.0])
        >>> taeda.nn.utils.clip_grads_with_norm_(p, 1.0, taeda.tensor(10.0))
        >>> p.grad
        tensor([1.0000])
    """
    grads = _gradients(parameters)
    if not grads:
        return
    with taeda.no_grad():
        factor = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
        for device, group, fused in _groups(grads, foreach):
            here = factor.to(device)
            if fused:
                native("_foreach_mul_")(group, here)
            else:
                for grad in group:
                    grad.mul_(here)


def clip_grad_norm_(
    parameters,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: Flag = None,
) -> Tensor:
    """Scale all gradients together so that their norm is at most `max_norm`.

    Pascanu et al., "On the difficulty of training recurrent neural networks", 2013.

    Args:
        parameters: a parameter or an iterable of them.
        max_norm: the norm to stay under.
        norm_type, error_if_nonfinite, foreach: as for `get_total_norm`.

    Returns:
        Tensor: the norm before.

    Example:
        >>> p = taeda.nn.Parameter(taeda.zeros(1))
        >>> p.grad = taeda.tensor([10.0])
        >>> taeda.nn.utils.clip_grad_norm_([p], 1.0)
        tensor(10.)
    """
    once = not isinstance(parameters, (Tensor, list, tuple))
    parameters = _as_list(parameters)
    if once and not parameters:
        warn("`parameters` is an empty generator, no gradient clipping will occur.")
    norm = get_total_norm(
        _gradients(parameters), norm_type, error_if_nonfinite, foreach
    )
    clip_grads_with_norm_(parameters, max_norm, norm, foreach)
    return norm


def clip_grad_norm(
    parameters,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: Flag = None,
) -> Tensor:
    """Deprecated name of `clip_grad_norm_`."""
    warn("`clip_grad_norm` is deprecated, use `clip_grad_norm_`", FutureWarning)
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters, clip_value: float, foreach: Flag = None) -> None:
    """Clamp every element of all gradients to [-clip_value, clip_value].

    Args:
        parameters: a parameter or an iterable of them.
        clip_value: the largest magnitude.
        foreach: as for `get_total_norm`.

    Example:
        >>> p = taeda.nn.Parameter(taeda.zeros(1))
        >>> p.grad = taeda.tensor([10.0])
        >>> taeda.nn.utils.clip_grad_value_(p, 2.0)
        >>> p.grad
        tensor([2.])
    """
    bound = float(clip_value)
    with taeda.no_grad():
        for _, group, fused in _groups(_gradients(parameters), foreach):
            if fused:
                native("_foreach_clamp_min_")(group, -bound)
                native("_foreach_clamp_max_")(group, bound)
            else:
                for grad in group:
                    grad.clamp_(-bound, bound)
