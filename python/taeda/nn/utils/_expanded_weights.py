"""Parameters whose gradients come one for each sample of the batch.

An `ExpandedWeight` stands for a parameter during one call of a module. A function of
a layer that meets one computes what it always does; its backward, instead of adding to
`grad`, writes to `grad_sample` of the parameter what each sample alone would give it.
One rule serves all layers: the function's derivative at one sample, under `vmap`.
"""

from __future__ import annotations

import taeda
from taeda.nn import functional as F
from taeda.utils import _pytree

_BATCHED_RANK = {F.conv1d: 3, F.conv2d: 4, F.conv3d: 5}


def _check_linear(input, args) -> None:
    if input.dim() <= 1:
        raise RuntimeError(
            "linear: Input does not have a batch dimension. Expanded Weights expected"
            f" input of at least rank 2, got of rank {input.dim()}"
        )


def _check_layer_norm(input, args) -> None:
    if input.dim() <= len(args[1]):
        raise RuntimeError(
            "layer_norm: Expanded Weights: Layer norm should not normalize over batch"
            f" dimension, but the normalized shape {tuple(args[1])} takes all of"
            f" {tuple(input.shape)}"
        )


def _check_embedding(input, args) -> None:
    if input.dim() == 1:
        raise RuntimeError(
            "embedding: Expanded Weights needs an input with a batch size, got a 1D"
            f" tensor, {input}"
        )


def _check_any(input, args) -> None:
    """Nothing beyond what `_check_batch` says of every input."""


# What a function asks of its input, beside a batch in front.
_CHECKS = {
    F.linear: _check_linear,
    F.layer_norm: _check_layer_norm,
    F.embedding: _check_embedding,
    F.group_norm: _check_any,
    F.instance_norm: _check_any,
    **dict.fromkeys(_BATCHED_RANK, _check_any),
}


def _check_batch(name: str, input, weights) -> None:
    if isinstance(input, ExpandedWeight):
        raise RuntimeError(
            f"{name}: Expanded Weights do not support inputs that are also"
            f" ExpandedWeights. Input must be a Tensor, got {type(input).__name__}"
        )
    if not isinstance(input, taeda.Tensor):
        raise RuntimeError(
            f"{name}: Expanded Weights requires a Tensor as the first input to get the"
            f" batch dimension, got {type(input).__name__}"
        )
    if input.dim() == 0:
        raise RuntimeError(
            f"{name}: Expanded Weights requires a batch dimension but got an input of"
            " size 0"
        )
    if input.shape[0] == 0:
        raise RuntimeError(
            f"{name}: 0 is not a valid batch size for Expanded Weights but got input"
            f" tensor of {input}"
        )
    for weight in weights:
        if weight.batch_size != input.shape[0]:
            raise RuntimeError(
                f"{name}: Expected ExpandedWeights to have batch size matching input"
                f" but got input batch size of {input.shape[0]} with ExpandedWeight of"
                f" batch size {weight.batch_size}"
            )
    reductions = {weight.loss_reduction for weight in weights}
    if len(reductions) > 1:
        raise RuntimeError(
            f"{name}: Expected ExpandedWeights to all have the same loss_reduction"
            f" argument but got {sorted(reductions)}"
        )


class _Call:
    """One call of a layer's function: its arguments, and where the weights stand."""

    def __init__(self, func, args, kwargs):
        self.func = func
        self.name = func.__name__
        kwargs = dict(kwargs)
        if not args:
            args = (kwargs.pop("input"),)
        self.leaves, self.tree = _pytree.tree_flatten((args, kwargs))
        places = [
            index
            for index, leaf in enumerate(self.leaves)
            if isinstance(leaf, ExpandedWeight)
        ]
        self.input = args[0]
        self.weights = [self.leaves[index] for index in places]
        _check_batch(self.name, self.input, self.weights)
        _CHECKS[func](self.input, args)
        rank = _BATCHED_RANK.get(func, self.input.dim())
        if self.input.dim() != rank:
            raise RuntimeError(
                f"{self.name}: Expanded Weights only support convolution with batched"
                f" input, got an unbatched input of dim {self.input.dim()}, expected"
                f" input of dim {rank}"
            )
        self.places = places

    def run(self, input, weights, **changed):
        """The function at this input with these weights, and with changed options."""
        leaves = [input, *self.leaves[1:]]
        for place, weight in zip(self.places, weights, strict=True):
            leaves[place] = weight
        args, kwargs = _pytree.tree_unflatten(leaves, self.tree)
        return self.func(*args, **{**kwargs, **changed})

    def pure(self, input, weights):
        """`run` for derivatives: writes to no buffer, has dense derivatives."""
        if self.func is F.embedding:
            return self.run(input, weights, sparse=False, max_norm=None)
        kwargs = _pytree.tree_unflatten(self.leaves, self.tree)[1]
        if self.func is F.instance_norm and kwargs.get("use_input_stats", True):
            return self.run(input, weights, running_mean=None, running_var=None)
        return self.run(input, weights)

    def check_alone(self) -> None:
        """Refuses parameters that would need an ordinary gradient beside these."""
        for leaf in self.leaves[1:]:
            if isinstance(leaf, ExpandedWeight) or not isinstance(leaf, taeda.Tensor):
                continue
            if leaf.requires_grad:
                raise RuntimeError(
                    f"{self.name}: ExpandedWeights currently does not support a mixture"
                    " of ExpandedWeight parameters and normal Parameters"
                )


class _PerSample(taeda.autograd.Function):
    """A layer's function whose backward fills `grad_sample` of its weights."""

    @staticmethod
    def forward(ctx, call, input, *weights):
        output = call.run(input, weights)
        ctx.call = call
        # An embedding with a largest norm has changed its weight by now.
        ctx.save_for_backward(input, *weights)
        return output

    @staticmethod
    def backward(ctx, grad):
        call = ctx.call
        input, *weights = ctx.saved_tensors
        call.check_alone()
        input_grad = None
        if ctx.needs_input_grad[1]:
            _, pull = taeda.func.vjp(lambda x: call.pure(x, weights), input)
            (input_grad,) = pull(grad)

        def of_one(sample, grad_of_one):
            batch = sample.unsqueeze(0)
            _, pull = taeda.func.vjp(lambda *w: call.pure(batch, w), *weights)
            return pull(grad_of_one.unsqueeze(0))

        samples = taeda.func.vmap(of_one)(input, grad)
        for weight, found in zip(call.weights, samples, strict=True):
            weight.add_grad_sample(found)
        return (None, input_grad, *[None] * len(weights))


class ExpandedWeight(taeda.Tensor):
    """A parameter that collects one gradient for each of `batch_size` samples.

    It has the shape, dtype and device of `orig_weight`, a tensor that requires grad.
    `loss_reduction` is "sum" or "mean", how the loss joins its samples. Functions that
    are not those of a layer with a rule for samples raise RuntimeError.
    """

    def __new__(cls, orig_weight, batch_size, loss_reduction):
        if not isinstance(orig_weight, taeda.Tensor):
            raise RuntimeError(
                "Can only make Expanded Weights of Tensors, got"
                f" {type(orig_weight).__name__}"
            )
        if not orig_weight.requires_grad:
            raise RuntimeError(
                "Can only build ExpandedWeights objects of tensors that requires_grad"
            )
        return taeda.Tensor._make_subclass(cls, orig_weight, True)

    def __init__(self, orig_weight, batch_size, loss_reduction):
        self.orig_weight = orig_weight
        self.batch_size = batch_size
        self.loss_reduction = loss_reduction

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func not in _CHECKS:
            raise RuntimeError(
                "Expanded Weights encountered but cannot handle function"
                f" {getattr(func, '__name__', func)}"
            )
        call = _Call(func, args, kwargs or {})
        originals = [weight.orig_weight for weight in call.weights]
        return _PerSample.apply(call, call.input, *originals)

    def add_grad_sample(self, found) -> None:
        """Adds gradients of shape (batch, *shape) to the parameter's `grad_sample`."""
        if self.loss_reduction == "mean":
            found = found * self.batch_size
        before = getattr(self.orig_weight, "grad_sample", None)
        self.orig_weight.grad_sample = found if before is None else before + found

    @property
    def dtype(self):
        return self.orig_weight.dtype

    @property
    def data(self):
        return self.orig_weight.data

    @property
    def shape(self):
        return self.orig_weight.shape

    @property
    def device(self):
        return self.orig_weight.device

    @property
    def is_cuda(self):
        return self.orig_weight.is_cuda

    def data_ptr(self):
        return self.orig_weight.data_ptr()

    def get_device(self):
        return self.orig_weight.get_device()
