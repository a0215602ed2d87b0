"""Normalisation over batch, instance, layer, group and neighbouring channels."""

from __future__ import annotations

from taeda import Tensor

from .._native import native, overrides_any, overrides_one, relay
from .._types import MaybeFloat, MaybeTensor

__name__ = __package__

_batch_norm, _instance_norm = native("batch_norm"), native("instance_norm")
_layer_norm, _group_norm = native("layer_norm"), native("group_norm")
_rms_norm = native("rms_norm")
# The operators' last argument, which kernels without cuDNN do not look at.
_CUDNN = False


def _verify_batch_size(size) -> None:
    """More than one value per channel, or the variance means nothing."""
    count = size[0]
    for n in size[2:]:
        count *= n
    if count == 1:
        raise ValueError(
            "Expected more than 1 value per channel when training, got input size "
            f"{size}"
        )


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: MaybeTensor = None,
    bias: MaybeTensor = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """(x - mean) / sqrt(var + eps) * weight + bias for each channel.

    Ioffe and Szegedy, "Batch Normalization", 2015.

    Args:
        input (Tensor): (N, C, ...), floating.
        running_mean, running_var (Tensor): (C,); used in evaluation, updated in
            place while training: new = (1 - momentum) * old + momentum * batch's.
        weight, bias (Tensor): (C,).
        training: take mean and variance of the batch.
        momentum: weight of the batch's statistics.
        eps: added to the variance.

    Raises:
        ValueError: one value per channel while training, or an `eps` below zero.

    Example:
        >>> x = taeda.tensor([[1.0], [3.0]])
        >>> taeda.nn.functional.batch_norm(x, taeda.ones(1), taeda.ones(1), eps=0)
        tensor([[0.],
                [2.]])
    """
    if overrides_any(input, running_mean, running_var, weight, bias):
        return relay(
            batch_norm, (input, running_mean, running_var, weight, bias), locals()
        )
    if training:
        _verify_batch_size(input.size())
    if eps < 0.0 or (training and eps == 0.0):
        wanted = "positive during training" if training else "non-negative"
        raise ValueError(f"batch_norm eps must be {wanted}, but got {eps}")
    state = (weight, bias, running_mean, running_var)
    return _batch_norm(input, *state, training, momentum, eps, _CUDNN)


def instance_norm(
    input: Tensor,
    running_mean: MaybeTensor = None,
    running_var: MaybeTensor = None,
    weight: MaybeTensor = None,
    bias: MaybeTensor = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """`batch_norm` with the statistics of each sample's channel.

    Ulyanov et al., "Instance Normalization", 2016. Arguments as `batch_norm`.

    Args:
        use_input_stats: otherwise the running statistics are used.

    Raises:
        ValueError: one spatial element with `use_input_stats`.

    Example:
        >>> taeda.nn.functional.instance_norm(taeda.tensor([[[1.0, 3.0]]]), eps=0)
        tensor([[[-1.,  1.]]])
    """
    if overrides_any(input, running_mean, running_var, weight, bias):
        return relay(
            instance_norm, (input, running_mean, running_var, weight, bias), locals()
        )
    if use_input_stats:
        count = 1
        for n in input.size()[2:]:
            count *= n
        if count == 1:
            raise ValueError(
                "Expected more than 1 spatial element when training, got input size "
                f"{input.size()}"
            )
    state = (weight, bias, running_mean, running_var)
    return _instance_norm(input, *state, use_input_stats, momentum, eps, _CUDNN)


def layer_norm(
    input: Tensor,
    normalized_shape,
    weight: MaybeTensor = None,
    bias: MaybeTensor = None,
    eps: float = 1e-5,
) -> Tensor:
    """(x - mean) / sqrt(var + eps) * weight + bias over the last dimensions.

    Ba et al., "Layer Normalization", 2016.

    Args:
        input (Tensor): (..., *normalized_shape), floating.
        normalized_shape: list of the last sizes.
        weight, bias (Tensor): of that shape.
        eps: added to the variance.

    Raises:
        RuntimeError: the last sizes differ from `normalized_shape`.

    Example:
        >>> taeda.nn.functional.layer_norm(taeda.tensor([1.0, 3.0]), [2], eps=0)
        tensor([-1.,  1.])
    """
    if overrides_any(input, weight, bias):
        return relay(layer_norm, (input, weight, bias), locals())
    return _layer_norm(input, normalized_shape, weight, bias, eps, _CUDNN)


def rms_norm(
    input: Tensor,
    normalized_shape,
    weight: MaybeTensor = None,
    eps: MaybeFloat = None,
) -> Tensor:
    """x / sqrt(mean(x^2) + eps) * weight over the last dimensions.

    Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019.

    Args:
        input (Tensor): (..., *normalized_shape), floating.
        normalized_shape: list of the last sizes.
        weight (Tensor): of that shape.
        eps: None means the machine epsilon of the computing dtype.

    Example:
        >>> taeda.nn.functional.rms_norm(taeda.tensor([3.0, 3.0]), [2], eps=0)
        tensor([1., 1.])
    """
    if overrides_any(input, weight):
        return relay(rms_norm, (input, weight), locals())
    return _rms_norm(input, normalized_shape, weight, eps)


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: MaybeTensor = None,
    bias: MaybeTensor = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalisation over groups of channels of each sample.

    Wu and He, "Group Normalization", 2018.

    Args:
        input (Tensor): (N, C, ...), floating.
        num_groups: number of groups; divides C.
        weight, bias (Tensor): (C,).
        eps: added to the variance.

    Raises:
        RuntimeError: fewer than two dimensions.
        ValueError: one value per group.

    Example:
        >>> taeda.nn.functional.group_norm(taeda.tensor([[1.0, 3.0]]), 1, eps=0)
        tensor([[-1.,  1.]])
    """
    if overrides_any(input, weight, bias):
        return relay(group_norm, (input, weight, bias), locals())
    if input.dim() < 2:
        raise RuntimeError(
            "Expected at least 2 dimensions for input tensor but received "
            f"{input.dim()}"
        )
    n, c, *rest = input.size()
    _verify_batch_size([n * c // num_groups, num_groups, *rest])
    return _group_norm(input, num_groups, weight, bias, eps, _CUDNN)


def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """x / (k + alpha * m)^beta, m the mean of x^2 over `size` channels around.

    Krizhevsky et al., "ImageNet Classification with Deep Convolutional Neural
    Networks", 2012.

    Args:
        input (Tensor): (N, C, ...) of at least 3 dimensions, floating.
        size: number of neighbouring channels.
        alpha, beta, k: as in the formula.

    Raises:
        ValueError: fewer than 3 dimensions.

    Example:
        >>> taeda.nn.functional.local_response_norm(taeda.ones(1, 1, 1), 1, 0.0)
        tensor([[[1.]]])
    """
    if overrides_one(input):
        return relay(local_response_norm, (input,), locals())
    from ._pooling import avg_pool2d, avg_pool3d
    from ._vision import pad

    rank = input.dim()
    if rank < 3:
        raise ValueError(
            f"Expected 3D or higher dimensionality input (got {rank} dimensions)"
        )
    if input.numel() == 0:
        return input
    # The channels become the depth of a one-channel volume, which is then pooled.
    around = (size // 2, (size - 1) // 2)
    square = input.mul(input)
    if rank == 3:
        volume = pad(square.unsqueeze(1), (0, 0, *around))
        mean = avg_pool2d(volume, (size, 1), stride=1).squeeze(1)
    else:
        n, c, h = input.shape[:3]
        volume = pad(square.view(n, 1, c, h, -1), (0, 0, 0, 0, *around))
        mean = avg_pool3d(volume, (size, 1, 1), stride=1).squeeze(1).view(input.shape)
    return input / mean.mul(alpha).add(k).pow(beta)
