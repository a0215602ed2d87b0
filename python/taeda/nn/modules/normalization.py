"""Layer, group, root-mean-square and local response normalization."""

from __future__ import annotations

import taeda
from taeda import Tensor

from .. import functional as F
from .._types import MaybeDevice, MaybeDtype
from ..parameter import Parameter
from .module import Module
from .utils import described

__all__ = ["CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


class LocalResponseNorm(Module):
    """x / (k + alpha * m)^beta, m the mean of x^2 over `size` channels around.

    Krizhevsky et al., "ImageNet Classification with Deep Convolutional Neural
    Networks", 2012.

    Args:
        size: number of neighbouring channels.
        alpha, beta, k: as in the formula.

    Example:
        >>> taeda.nn.LocalResponseNorm(1, alpha=0.0)(taeda.ones(1, 1, 1))
        tensor([[[1.]]])
    """

    __constants__ = ["size", "alpha", "beta", "k"]

    def __init__(
        self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
    ) -> None:
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, " + described(self, "alpha beta k")


_cross_map = None


def _cross_map_function():
    """The autograd function of `CrossMapLRN2d`; made when first needed.

    Its windows are those of PyTorch's (inherited from Lua Torch): forward keeps the
    first channel in every window from channel `reach` on, and backward's windows end
    at the channel itself.
    """
    global _cross_map
    if _cross_map is None:

        class CrossMapLRN2dFunction(taeda.autograd.Function):
            @staticmethod
            def forward(ctx, input, size, alpha, beta, k):
                reach = int((size - 1) / 2 + 1)
                square = input * input
                wide = F.pad(square, (0, 0, 0, 0, reach - 1, reach - 1))
                total = wide.unfold(1, 2 * reach - 1, 1).sum(-1)
                total[:, reach:] += square[:, :1]
                scale = total * (alpha / size) + k
                output = scale.pow(-beta) * input
                ctx.save_for_backward(input, output, scale)
                ctx.options = size, alpha, beta
                return output

            @staticmethod
            def backward(ctx, grad):
                input, output, scale = ctx.saved_tensors
                size, alpha, beta = ctx.options
                before = int(size - (size - 1) / 2)
                ratio = grad * output / scale
                wide = F.pad(ratio, (0, 0, 0, 0, before, size - 1 - before))
                total = wide.unfold(1, size, 1).sum(-1)
                result = scale.pow(-beta) * grad
                result -= 2 * alpha * beta / size * input * total
                return result, None, None, None, None

        _cross_map = CrossMapLRN2dFunction
    return _cross_map


class CrossMapLRN2d(Module):
    """`LocalResponseNorm` for (N, C, H, W), as old models have it.

    Args:
        size, alpha, beta, k: as for `LocalResponseNorm`.

    Raises:
        ValueError: input of another rank.

    Example:
        >>> taeda.nn.CrossMapLRN2d(3, alpha=0.0)(taeda.ones(1, 1, 1, 1))
        tensor([[[[1.]]]])
    """

    def __init__(
        self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1
    ) -> None:
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() != 4:
            raise ValueError(
                f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead."
            )
        options = (self.size, self.alpha, self.beta, self.k)
        return _cross_map_function().apply(input, *options)

    def extra_repr(self) -> str:
        return f"{self.size}, " + described(self, "alpha beta k")


class _Affine(Module):
    """A weight of ones and a bias of zeros, where there are any."""

    def _make(self, shape, weight, bias, device, dtype) -> None:
        for name, wanted in (("weight", weight), ("bias", bias)):
            if wanted:
                values = taeda.empty(shape, device=device, dtype=dtype)
                setattr(self, name, Parameter(values))
            elif wanted is not None:
                self.register_parameter(name, None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weight 1, bias 0."""
        own = self._parameters
        with taeda.no_grad():
            for name, value in (("weight", 1.0), ("bias", 0.0)):
                if own.get(name) is not None:
                    own[name].fill_(value)


def _as_shape(shape) -> tuple[int, ...]:
    return tuple(shape) if hasattr(shape, "__iter__") else (shape,)


class LayerNorm(_Affine):
    """(x - mean) / sqrt(var + eps) * weight + bias over the last dimensions.

    Ba et al., "Layer Normalization", 2016.

    Args:
        normalized_shape: the last sizes, or one of them.
        eps: added to the variance.
        elementwise_affine: whether there are weight and bias.
        bias: False leaves out the bias alone.
        device, dtype: of the parameters.

    Attributes:
        weight, bias (Tensor): of `normalized_shape`.

    Example:
        >>> taeda.nn.LayerNorm(2, eps=0, bias=False)(taeda.tensor([1.0, 3.0])).tolist()
        [-1.0, 1.0]
    """

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]

    def __init__(
        self,
        normalized_shape,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: MaybeDevice = None,
        dtype: MaybeDtype = None,
    ) -> None:
        super().__init__()
        self.normalized_shape, self.eps = _as_shape(normalized_shape), eps
        self.elementwise_affine = affine = elementwise_affine
        shape = self.normalized_shape
        self._make(shape, bool(affine), bool(affine and bias), device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        own = self._parameters
        try:
            weight, bias = own["weight"], own["bias"]
        except KeyError:  # replaced, by a parametrization or by a plain tensor
            weight, bias = self.weight, self.bias
        return F.layer_norm(input, self.normalized_shape, weight, bias, self.eps)

    def extra_repr(self) -> str:
        shown = described(self, "eps elementwise_affine")
        return f"{self.normalized_shape}, {shown}, bias={self.bias is not None}"


class GroupNorm(_Affine):
    """(x - mean) / sqrt(var + eps) * weight + bias over groups of channels.

    Wu and He, "Group Normalization", 2018.

    Args:
        num_groups: number of groups; divides the channels.
        num_channels: channels C of (N, C, ...).
        eps: added to the variance.
        affine: whether there are weight and bias, of shape (C,).
        device, dtype: of the parameters.
        bias: False leaves out the bias alone.

    Raises:
        ValueError: groups that do not divide the channels.

    Example:
        >>> tuple(taeda.nn.GroupNorm(2, 4)(taeda.ones(1, 4, 3)).shape)
        (1, 4, 3)
    """

    __constants__ = ["num_groups", "num_channels", "eps", "affine"]

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: MaybeDevice = None,
        dtype: MaybeDtype = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups != 0:
            raise ValueError(
                f"num_channels ({num_channels}) must be divisible by num_groups "
                f"({num_groups})"
            )
        self.num_groups, self.num_channels = num_groups, num_channels
        self.eps, self.affine = eps, affine
        self._make(num_channels, bool(affine), bool(affine and bias), device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        affine = (self.weight, self.bias)
        return F.group_norm(input, self.num_groups, *affine, self.eps)

    def extra_repr(self) -> str:
        shown = f"{self.num_groups}, {self.num_channels}, "
        return shown + described(self, "eps affine") + f", bias={self.bias is not None}"


class RMSNorm(_Affine):
    """x / sqrt(mean(x^2) + eps) * weight over the last dimensions.

    Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019.

    Args:
        normalized_shape: the last sizes, or one of them.
        eps: None means the machine epsilon of the computing dtype.
        elementwise_affine: whether there is a weight.
        device, dtype: of the weight.

    Example:
        >>> taeda.nn.RMSNorm(2, eps=0)(taeda.tensor([3.0, 3.0])).tolist()
        [1.0, 1.0]
    """

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]

    def __init__(
        self,
        normalized_shape,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: MaybeDevice = None,
        dtype: MaybeDtype = None,
    ) -> None:
        super().__init__()
        self.normalized_shape, self.eps = _as_shape(normalized_shape), eps
        self.elementwise_affine = elementwise_affine
        shape = self.normalized_shape
        self._make(shape, bool(elementwise_affine), None, device, dtype)

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, " + described(self, "eps elementwise_affine")
