"""Linear layers."""

from __future__ import annotations

import math

import taeda
from taeda import Tensor

from .. import functional as F
from .. import init
from .._types import MaybeDevice, MaybeDtype
from ..parameter import Parameter, UninitializedParameter
from .lazy import LazyModuleMixin
from .module import Module

__all__ = ["Bilinear", "Identity", "LazyLinear", "Linear"]


class Identity(Module):
    """Returns its input; takes and ignores any constructor arguments.

    Example:
        >>> taeda.nn.Identity(54, unused=True)(3)
        3
    """

    def __init__(self, *args, **kwargs) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


class Linear(Module):
    """y = x W^T + b.

    Args:
        in_features, out_features: last sizes of input and output.
        bias: whether there is a b.
        device, dtype: of the parameters.

    Attributes:
        weight (Tensor): (out_features, in_features), uniform in +-1/sqrt(in_features).
        bias (Tensor): (out_features,), the same.

    Example:
        >>> taeda.nn.Linear(2, 3)
        Linear(in_features=2, out_features=3, bias=True)
    """

    __constants__ = ["in_features", "out_features"]

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: MaybeDevice = None,
        dtype: MaybeDtype = None,
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        shape = (out_features, in_features)
        self.weight = Parameter(taeda.empty(shape, device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(taeda.empty(shape[:1], device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        init._layer_(self.weight, self.bias)

    def forward(self, input: Tensor) -> Tensor:
        own = self._parameters
        try:
            weight, bias = own["weight"], own["bias"]
        except KeyError:  # replaced, by a parametrization or by a plain tensor
            weight, bias = self.weight, self.bias
        return F.linear(input, weight, bias)

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class NonDynamicallyQuantizableLinear(Linear):
    """A Linear that dynamic quantization leaves alone."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: MaybeDevice = None,
        dtype: MaybeDtype = None,
    ) -> None:
        super().__init__(in_features, out_features, bias, device, dtype)


class Bilinear(Module):
    """y_k = x1^T W_k x2 + b_k.

    Args:
        in1_features, in2_features, out_features: last sizes of inputs and output.
        bias: whether there is a b.
        device, dtype: of the parameters.

    Raises:
        ValueError: in1_features not above 0.

    Example:
        >>> layer = taeda.nn.Bilinear(2, 3, 4)
        >>> tuple(layer(taeda.ones(5, 2), taeda.ones(5, 3)).shape)
        (5, 4)
    """

    __constants__ = ["in1_features", "in2_features", "out_features"]

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: MaybeDevice = None,
        dtype: MaybeDtype = None,
    ) -> None:
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got {in1_features}")
        kind = {"device": device, "dtype": dtype}
        shape = (out_features, in1_features, in2_features)
        self.out_features, self.in1_features, self.in2_features = shape
        self.weight = Parameter(taeda.empty(shape, **kind))
        own_bias = Parameter(taeda.empty(out_features, **kind)) if bias else None
        self.register_parameter("bias", own_bias)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew, uniform in +-1/sqrt(in1_features)."""
        bound = 1 / math.sqrt(self.weight.size(1))
        for value in (self.weight, self.bias):
            if value is not None:
                init.uniform_(value, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        sizes = ("in1_features", "in2_features", "out_features")
        shown = ", ".join(f"{name}={getattr(self, name)}" for name in sizes)
        return f"{shown}, bias={self.bias is not None}"


class LazyLinear(LazyModuleMixin, Linear):
    """A Linear that takes `in_features` from its first input.

    Args:
        out_features, bias, device, dtype: as for `Linear`.

    Example:
        >>> layer = taeda.nn.LazyLinear(2)
        >>> tuple(layer(taeda.ones(5, 3)).shape)
        (5, 2)
    """

    cls_to_become = Linear

    def __init__(
        self,
        out_features: int,
        bias: bool = True,
        device: MaybeDevice = None,
        dtype: MaybeDtype = None,
    ) -> None:
        super().__init__(0, 0, False)
        self.out_features = out_features
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input) -> None:
        """Take `in_features` from the last size of `input`."""
        width = input.shape[-1]
        if self.has_uninitialized_params():
            with taeda.no_grad():
                self.in_features = width
                self.weight.materialize((self.out_features, width))
                if self.bias is not None:
                    self.bias.materialize((self.out_features,))
                self.reset_parameters()
        elif self.in_features == 0:  # the shapes came from a checkpoint
            if width != self.weight.shape[-1]:
                raise AssertionError(
                    f"The in_features inferred from input: {width} is not equal to "
                    f"in_features from self.weight: {self.weight.shape[-1]}"
                )
            self.in_features = width
