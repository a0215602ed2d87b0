"""Activation layers; each calls its function of nn.functional."""

from __future__ import annotations

import taeda
from taeda import Tensor

from .. import functional as F
from .._native import warn
from .._types import MaybeDevice, MaybeDtype, MaybeFloat, MaybeInt
from ..parameter import Parameter
from .module import Module

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "PReLU",
    "RReLU",
    "ReLU",
    "ReLU6",
    "SELU",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
]


def __getattr__(name: str):
    if name == "MultiheadAttention":
        from .attention import MultiheadAttention

        return MultiheadAttention
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class _Inplace(Module):
    """Layers whose only option is to write into their input."""

    __constants__ = ["inplace"]
    inplace: bool

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


def _shown(module, text: str) -> str:
    return text + ", inplace=True" if module.inplace else text


class Threshold(Module):
    """x where x > threshold, elsewhere value.

    Args:
        threshold, value: scalars.
        inplace: write into the input.

    Example:
        >>> taeda.nn.Threshold(1, 20)(taeda.tensor([0.1, 3.0]))
        tensor([20.,  3.])
    """

    __constants__ = ["threshold", "value", "inplace"]

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold, self.value, self.inplace = threshold, value, inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        return _shown(self, f"threshold={self.threshold}, value={self.value}")


class ReLU(_Inplace):
    """max(x, 0).

    Args:
        inplace: write into the input.

    Example:
        >>> taeda.nn.ReLU()(taeda.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(input, self.inplace)


class SELU(_Inplace):
    """1.0507 * elu(x, 1.6733), which keeps mean and variance.

    Klambauer et al., "Self-Normalizing Neural Networks", 2017.

    Args:
        inplace: write into the input.

    Example:
        >>> taeda.nn.SELU()(taeda.tensor([0.0, 1.0]))
        tensor([0.0000, 1.0507])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.selu(input, self.inplace)


class SiLU(_Inplace):
    """x * sigmoid(x), also called swish (Elfwing et al., 2017).

    Args:
        inplace: write into the input.

    Example:
        >>> taeda.nn.SiLU()(taeda.zeros(1))
        tensor([0.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.silu(input, self.inplace)


class Mish(_Inplace):
    """x * tanh(softplus(x)) (Misra, 2019).

    Args:
        inplace: write into the input.

    Example:
        >>> taeda.nn.Mish()(taeda.zeros(1))
        tensor([0.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.mish(input, self.inplace)


class Hardsigmoid(Module):
    """relu6(x + 3) / 6.

    Args:
        inplace: write into the input.

    Example:
        >>> taeda.nn.Hardsigmoid()(taeda.zeros(1))
        tensor([0.5000])
    """

    __constants__ = ["inplace"]

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.hardsigmoid(input, self.inplace)


class Hardswish(Module):
    """x * relu6(x + 3) / 6.

    Howard et al., "Searching for MobileNetV3", 2019.

    Args:
        inplace: write into the input.

    Example:
        >>> taeda.nn.Hardswish()(taeda.tensor([3.0]))
        tensor([3.])
    """

    __constants__ = ["inplace"]

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.hardswish(input, self.inplace)


class RReLU(Module):
    """Leaky relu whose slope is drawn from [lower, upper) while training.

    Xu et al., "Empirical Evaluation of Rectified Activations in Convolutional
    Network", 2015.

    Args:
        lower, upper: in evaluation the slope is their mean.
        inplace: write into the input.

    Example:
        >>> taeda.nn.RReLU(0.25, 0.25)(taeda.tensor([-4.0, 1.0]))
        tensor([-1.,  1.])
    """

    __constants__ = ["lower", "upper", "inplace"]

    def __init__(
        self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False
    ) -> None:
        super().__init__()
        self.lower, self.upper, self.inplace = lower, upper, inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        return _shown(self, f"lower={self.lower}, upper={self.upper}")


class Hardtanh(Module):
    """min(max(x, min_val), max_val).

    Args:
        min_val, max_val: ends of the linear part.
        inplace: write into the input.
        min_value, max_value: deprecated names of the ends.

    Raises:
        ValueError: max_val not above min_val.

    Example:
        >>> taeda.nn.Hardtanh()(taeda.tensor([-3.0, 0.5]))
        tensor([-1.0000,  0.5000])
    """

    __constants__ = ["min_val", "max_val", "inplace"]

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: MaybeFloat = None,
        max_value: MaybeFloat = None,
    ) -> None:
        super().__init__()
        for old, new, given in (
            ("min_value", "min_val", min_value),
            ("max_value", "max_val", max_value),
        ):
            if given is not None:
                text = f"keyword argument `{old}` is deprecated and rename to `{new}`"
                warn(text, FutureWarning)
        self.min_val = min_val if min_value is None else min_value
        self.max_val = max_val if max_value is None else max_value
        self.inplace = inplace
        if self.max_val <= self.min_val:
            raise AssertionError(
                "max_val must be larger than min_val, but got "
                f"min_val={self.min_val} and max_val={self.max_val}"
            )

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        return _shown(self, f"min_val={self.min_val}, max_val={self.max_val}")


class ReLU6(Hardtanh):
    """min(max(x, 0), 6) (Krizhevsky, 2010).

    Args:
        inplace: write into the input.

    Example:
        >>> taeda.nn.ReLU6()(taeda.tensor([-1.0, 8.0]))
        tensor([0., 6.])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class Sigmoid(Module):
    """1 / (1 + exp(-x)).

    Example:
        >>> taeda.nn.Sigmoid()(taeda.zeros(1))
        tensor([0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return taeda.sigmoid(input)


class Tanh(Module):
    """(exp(x) - exp(-x)) / (exp(x) + exp(-x)).

    Example:
        >>> taeda.nn.Tanh()(taeda.zeros(1))
        tensor([0.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return taeda.tanh(input)


class LogSigmoid(Module):
    """log(1 / (1 + exp(-x))).

    Example:
        >>> taeda.nn.LogSigmoid()(taeda.zeros(1))
        tensor([-0.6931])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.logsigmoid(input)


class Softsign(Module):
    """x / (1 + |x|).

    Example:
        >>> taeda.nn.Softsign()(taeda.tensor([1.0]))
        tensor([0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softsign(input)


class Tanhshrink(Module):
    """x - tanh(x).

    Example:
        >>> taeda.nn.Tanhshrink()(taeda.zeros(1))
        tensor([0.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.tanhshrink(input)


class ELU(Module):
    """x where x > 0, elsewhere alpha * (exp(x) - 1) (Clevert et al., 2015).

    Args:
        alpha: -alpha is the limit to the left.
        inplace: write into the input.

    Example:
        >>> taeda.nn.ELU()(taeda.tensor([0.0, 2.0]))
        tensor([0., 2.])
    """

    __constants__ = ["alpha", "inplace"]

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha, self.inplace = alpha, inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return _shown(self, f"alpha={self.alpha}")


class CELU(Module):
    """max(0, x) + min(0, alpha * (exp(x / alpha) - 1)) (Barron, 2017).

    Args:
        alpha: -alpha is the limit to the left.
        inplace: write into the input.

    Example:
        >>> taeda.nn.CELU()(taeda.tensor([0.0, 2.0]))
        tensor([0., 2.])
    """

    __constants__ = ["alpha", "inplace"]

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha, self.inplace = alpha, inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.celu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return _shown(self, f"alpha={self.alpha}")


class GLU(Module):
    """a * sigmoid(b), a and b the halves along `dim`.

    Dauphin et al., "Language Modeling with Gated Convolutional Networks", 2017.

    Args:
        dim: dimension to halve, of even size.

    Example:
        >>> taeda.nn.GLU()(taeda.tensor([1.0, 0.0]))
        tensor([0.5000])
    """

    __constants__ = ["dim"]

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class GELU(Module):
    """x * Phi(x), Phi the normal distribution function.

    Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016.

    Args:
        approximate: "none", or "tanh" for
            x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))).

    Example:
        >>> taeda.nn.GELU()(taeda.zeros(1))
        tensor([0.])
    """

    __constants__ = ["approximate"]

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class Hardshrink(Module):
    """x where |x| > lambd, elsewhere 0.

    Args:
        lambd: half the width of the zero part.

    Example:
        >>> taeda.nn.Hardshrink()(taeda.tensor([0.1]))
        tensor([0.])
    """

    __constants__ = ["lambd"]

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return F.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class Softshrink(Module):
    """x - lambd sign(x) where |x| > lambd, elsewhere 0.

    Args:
        lambd: half the width of the zero part.

    Example:
        >>> taeda.nn.Softshrink()(taeda.tensor([0.1]))
        tensor([0.])
    """

    __constants__ = ["lambd"]

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return F.softshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class LeakyReLU(Module):
    """max(0, x) + negative_slope * min(0, x) (Maas et al., 2013).

    Args:
        negative_slope: slope to the left.
        inplace: write into the input.

    Example:
        >>> taeda.nn.LeakyReLU(0.1)(taeda.tensor([-10.0, 1.0]))
        tensor([-1.,  1.])
    """

    __constants__ = ["inplace", "negative_slope"]

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope, self.inplace = negative_slope, inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        return _shown(self, f"negative_slope={self.negative_slope}")


class Softplus(Module):
    """log(1 + exp(beta x)) / beta; x itself where beta x > threshold.

    Args:
        beta, threshold: as in the formula.

    Example:
        >>> taeda.nn.Softplus()(taeda.zeros(1))
        tensor([0.6931])
    """

    __constants__ = ["beta", "threshold"]

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class PReLU(Module):
    """max(0, x) + weight * min(0, x), the weight learned.

    He et al., "Delving Deep into Rectifiers", 2015.

    Args:
        num_parameters: 1, or the channels (dimension 1) of the input.
        init: first value of the weight.
        device, dtype: of the weight.

    Attributes:
        weight (Tensor): (num_parameters,).

    Example:
        >>> taeda.nn.PReLU()(taeda.tensor([-4.0])).tolist()
        [-1.0]
    """

    __constants__ = ["num_parameters"]
    num_parameters: int

    def __init__(
        self,
        num_parameters: int = 1,
        init: float = 0.25,
        device: MaybeDevice = None,
        dtype: MaybeDtype = None,
    ) -> None:
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        values = taeda.empty(num_parameters, device=device, dtype=dtype)
        self.weight = Parameter(values)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set every slope to `init`."""
        with taeda.no_grad():
            self.weight.fill_(self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class _OverDim(Module):
    """Softmax and its kin: one dimension."""

    __constants__ = ["dim"]
    dim: MaybeInt

    def __init__(self, dim: MaybeInt = None) -> None:
        super().__init__()
        self.dim = dim

    def __setstate__(self, state) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("dim", None)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmin(_OverDim):
    """softmax(-x) along `dim`.

    Args:
        dim: the dimension that sums to 1.

    Example:
        >>> taeda.nn.Softmin(0)(taeda.zeros(2))
        tensor([0.5000, 0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmin(input, self.dim, _stacklevel=5)


class Softmax(_OverDim):
    """exp(x_i) / sum_j exp(x_j) along `dim`.

    Args:
        dim: the dimension that sums to 1.

    Example:
        >>> taeda.nn.Softmax(0)(taeda.zeros(2))
        tensor([0.5000, 0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim, _stacklevel=5)


class LogSoftmax(_OverDim):
    """log(softmax(x)) along `dim`, without overflow.

    Args:
        dim: the dimension that sums to 1.

    Example:
        >>> taeda.nn.LogSoftmax(0)(taeda.zeros(2))
        tensor([-0.6931, -0.6931])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim, _stacklevel=5)


class Softmax2d(Module):
    """`Softmax` over the channels at every place of (N, C, H, W) or (C, H, W).

    Raises:
        ValueError: input of another rank.

    Example:
        >>> taeda.nn.Softmax2d()(taeda.zeros(1, 1, 2))
        tensor([[[1., 1.]]])
    """

    def forward(self, input: Tensor) -> Tensor:
        rank = input.dim()
        if not 3 <= rank <= 4:
            raise ValueError(
                f"Softmax2d: expected input to be 3D or 4D, got {rank}D instead"
            )
        return F.softmax(input, -3, _stacklevel=5)
