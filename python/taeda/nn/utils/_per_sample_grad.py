"""Gradients of parameters for each sample of a batch."""

from __future__ import annotations

import functools

import taeda
from taeda.autograd import Function
from taeda.func import functional_call, vmap
from taeda.nn import Module
from taeda.utils import _pytree as pytree

__all__ = ["call_for_per_sample_grads"]


class _Spread(Function):
    """One parameter for each sample; their gradients are kept, not added up."""

    @staticmethod
    def forward(ctx, parameter, count: int, scale: int):
        ctx.parameter, ctx.scale = parameter, scale
        return parameter.detach().expand(count, *parameter.shape)

    @staticmethod
    def backward(ctx, grad):
        grad = grad * ctx.scale
        before = getattr(ctx.parameter, "grad_sample", None)
        ctx.parameter.grad_sample = grad if before is None else before + grad
        return None, None, None


def call_for_per_sample_grads(
    module, *, batch_size: int | None = None, loss_reduction="sum", batch_first=True
):
    """The module's forward, whose backward pass gives each sample's own gradients.

    After `backward()` every parameter that requires a gradient has an attribute
    `grad_sample` of shape `[batch_size, *parameter.shape]`; its `grad` is left alone.
    The module is called once, on a sample that stands for all (`taeda.func.vmap`).

    Args:
        module: its results are tensors that keep the dim of the batch.
        batch_size: the number of samples; None takes it from the arguments, which must
            agree. Tensors of another size belong to all samples.
        loss_reduction: how the loss goes over the samples: "sum", or "mean", for which
            the gradients are multiplied by the batch's size.
        batch_first: whether the batch is the first dim of arguments and results, or the
            second.

    Returns:
        A function of the arguments of `module.forward`.

    Raises:
        RuntimeError: another `loss_reduction`, no module, no fitting batch size, a
            parameter that has a `grad_sample` already, or a result without the batch.

    Example:
        >>> from taeda.nn.utils._per_sample_grad import call_for_per_sample_grads
        >>> layer, x = taeda.nn.Linear(2, 1), taeda.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> call_for_per_sample_grads(layer)(x).sum().backward()
        >>> layer.weight.grad_sample.tolist()
        [[[1.0, 2.0]], [[3.0, 4.0]]]
    """
    _check(module, batch_size, loss_reduction)
    dim = 0 if batch_first else 1

    @functools.wraps(module.forward)
    def forward(*args, **kwargs):
        leaves, spec = pytree.tree_flatten((args, kwargs))
        count = batch_size or _common_size(leaves, dim)
        scale = count if loss_reduction == "mean" else 1
        spread = {
            name: _Spread.apply(p, count, scale)
            for name, p in module.named_parameters()
            if p.requires_grad
        }
        places = [i for i, leaf in enumerate(leaves) if _has(leaf, dim, count)]

        def one(parameters, samples):
            given = list(leaves)
            for i, sample in zip(places, samples, strict=True):
                given[i] = sample.unsqueeze(dim)
            args, kwargs = pytree.tree_unflatten(given, spec)
            result = functional_call(module, parameters, args, kwargs)
            return pytree.tree_map(lambda t: _without(t, dim), result)

        each = vmap(one, in_dims=(0, dim), out_dims=dim, randomness="different")
        return each(spread, [leaves[i] for i in places])

    return forward


def _check(module, batch_size, loss_reduction) -> None:
    if loss_reduction not in ("sum", "mean"):
        raise RuntimeError(
            f"Expected loss_reduction argument to be sum or mean, got {loss_reduction}"
        )
    if not isinstance(module, Module):
        raise RuntimeError(
            f"Module passed must be nn.Module, got {type(module).__name__}"
        )
    if batch_size is not None and not isinstance(batch_size, int):
        raise RuntimeError(
            "Batch size passed must be None or an integer, got "
            f"{type(batch_size).__name__}"
        )
    if batch_size is not None and batch_size < 1:
        raise RuntimeError(f"Batch size must be positive, got {batch_size}")
    for name, parameter in module.named_parameters():
        if getattr(parameter, "grad_sample", None) is not None:
            raise RuntimeError(
                f"call_for_per_sample_grads: {name} has a grad_sample from an earlier "
                "call, and another one accumulates the gradients: set it to None first"
            )


def _common_size(leaves: list, dim: int) -> int:
    sizes = {leaf.shape[dim] for leaf in leaves if isinstance(leaf, taeda.Tensor)}
    if not sizes:
        raise RuntimeError(
            "Unable to find a tensor in the passed args and kwargs: give batch_size"
        )
    if len(sizes) > 1:
        first, second = sorted(sizes)[:2]
        raise RuntimeError(
            "When computing batch size, found at least one input with batch size "
            f"{first} and one with batch size {second}: give batch_size"
        )
    return sizes.pop()


def _has(leaf, dim: int, count: int) -> bool:
    """Whether the leaf is a tensor with the samples along a dim."""
    tensor = isinstance(leaf, taeda.Tensor)
    return tensor and leaf.dim() > dim and leaf.shape[dim] == count


def _without(result, dim: int):
    tensor = isinstance(result, taeda.Tensor)
    if not tensor or result.dim() <= dim or result.shape[dim] != 1:
        shown = tuple(result.shape) if tensor else type(result).__name__
        raise RuntimeError(
            "call_for_per_sample_grads: every result of the module must be a tensor "
            f"with the samples along dim {dim}, got {shown}"
        )
    return result.squeeze(dim)
