"""`call_for_per_sample_grads`: a module's gradients, one for each sample."""

from __future__ import annotations

import functools

import taeda
from taeda.utils import _pytree

from ._expanded_weights import ExpandedWeight


def _batch_size(leaves, batch_first: bool) -> int:
    sizes = [
        leaf.shape[0 if batch_first else 1]
        for leaf in leaves
        if isinstance(leaf, taeda.Tensor)
    ]
    if not sizes:
        raise RuntimeError(
            "call_for_per_sample_grads: Unable to find a tensor in the passed args and"
            " kwargs; pass batch_size"
        )
    for size in sizes:
        if size != sizes[0]:
            raise RuntimeError(
                "call_for_per_sample_grads: When computing batch size, found at least"
                f" one input with batch size {sizes[0]} and one with batch size {size}."
                " Please specify it explicitly using the batch size kwarg"
            )
    return sizes[0]


def _check(module, batch_size, loss_reduction) -> None:
    if loss_reduction not in ("sum", "mean"):
        raise RuntimeError(
            "call_for_per_sample_grads: Expected loss_reduction argument to be sum or"
            f" mean, got {loss_reduction}"
        )
    if not isinstance(module, taeda.nn.Module):
        raise RuntimeError(
            "call_for_per_sample_grads: Module passed must be nn.Module, got"
            f" {type(module).__name__}"
        )
    if not (batch_size is None or isinstance(batch_size, int)):
        raise RuntimeError(
            "call_for_per_sample_grads: Batch size passed must be None or an integer,"
            f" got {type(batch_size).__name__}"
        )
    if batch_size is not None and batch_size < 1:
        raise RuntimeError(
            f"call_for_per_sample_grads: Batch size must be positive, got {batch_size}"
        )
    for name, weight in module.named_parameters():
        if getattr(weight, "grad_sample", None) is not None:
            raise RuntimeError(
                "call_for_per_sample_grads: Current Expanded Weights accumulates the"
                " gradients, which will be incorrect for multiple calls without"
                f" clearing gradients; set grad_sample of {name} to None"
            )


def call_for_per_sample_grads(
    module, *, batch_size=None, loss_reduction="sum", batch_first=True
):
    """The forward of `module`, whose backward fills `grad_sample`, not `grad`.

    After `backward` each parameter that requires grad has, in `grad_sample`, a tensor
    of shape (batch, *parameter.shape): what each sample alone contributes. With
    `loss_reduction` "mean" it is scaled by the batch size, so that a mean over samples
    gives what a sum would. The batch size is that of the tensors passed in (dimension
    0, or 1 where `batch_first` is False) unless `batch_size` says it.

    Raises:
        RuntimeError: for a module with layers other than linear, convolution,
            embedding, and layer, group or instance norm; for arguments that are not as
            described; where a `grad_sample` is left from before.

    >>> import taeda
    >>> from taeda.nn.utils._per_sample_grad import call_for_per_sample_grads
    >>> model = taeda.nn.Linear(4, 3)
    >>> call_for_per_sample_grads(model)(taeda.randn(5, 4)).sum().backward()
    >>> model.weight.grad_sample.shape, model.weight.grad
    (taeda.Size([5, 3, 4]), None)
    """
    _check(module, batch_size, loss_reduction)

    @functools.wraps(module.forward)
    def forward(*args, **kwargs):
        size = batch_size
        if size is None:
            size = _batch_size(_pytree.tree_leaves((args, kwargs)), batch_first)
        parameters = {
            name: ExpandedWeight(weight, size, loss_reduction)
            if weight.requires_grad
            else weight
            for name, weight in module.named_parameters()
        }
        return taeda.func.functional_call(module, parameters, args, kwargs)

    return forward
