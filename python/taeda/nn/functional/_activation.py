"""Activation functions, softmax and its kin."""

from __future__ import annotations

import taeda
from taeda import Tensor

from .._native import native, overrides_one, relay, warn

__name__ = __package__

threshold_ = native("threshold_")
relu_ = native("relu_")
hardtanh_ = native("hardtanh_")
elu_ = native("elu_")
selu_ = native("selu_")
celu_ = native("celu_")
leaky_relu_ = native("leaky_relu_")
rrelu_ = native("rrelu_")
prelu = native("prelu")
logsigmoid = native("log_sigmoid")
gelu = native("gelu")
hardshrink = native("hardshrink")
softplus = native("softplus")
softshrink = native("softshrink")

_threshold_new, _relu, _hardtanh = map(native, ("threshold", "relu", "hardtanh"))
_elu, _selu, _celu = map(native, ("elu", "selu", "celu"))
_leaky_relu, _rrelu, _glu = map(native, ("leaky_relu", "rrelu", "glu"))
_relu6, _relu6_ = native("relu6"), native("relu6_")
_softsign = native("softsign")
_hardsigmoid, _hardsigmoid_ = native("hardsigmoid"), native("hardsigmoid_")
_hardswish, _hardswish_ = native("hardswish"), native("hardswish_")
_silu, _silu_ = native("silu"), native("silu_")
_mish, _mish_ = native("mish"), native("mish_")


def threshold(
    input: Tensor, threshold: float, value: float, inplace: bool = False
) -> Tensor:
    """x where x > threshold, elsewhere value.

    Args:
        input (Tensor): any shape, any real dtype.
        threshold, value: scalars.
        inplace: write into `input`.

    Example:
        >>> taeda.nn.functional.threshold(taeda.tensor([0.1, 3.0]), 1, 20)
        tensor([20.,  3.])
    """
    if overrides_one(input):
        return relay(_threshold, (input,), locals())
    return (threshold_ if inplace else _threshold_new)(input, threshold, value)


_threshold = threshold


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(x, 0), element by element.

    Args:
        input (Tensor): any shape, any real dtype.
        inplace: write into `input`.

    Example:
        >>> taeda.nn.functional.relu(taeda.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """
    if overrides_one(input):
        return relay(relu, (input,), locals())
    return relu_(input) if inplace else _relu(input)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """Gated linear unit: a * sigmoid(b), a and b the halves along `dim`.

    Dauphin et al., "Language Modeling with Gated Convolutional Networks", 2017.

    Args:
        input (Tensor): floating, of even size along `dim`.
        dim: dimension to halve.

    Raises:
        RuntimeError: `input` is 0-d, or its size along `dim` is odd.

    Example:
        >>> taeda.nn.functional.glu(taeda.tensor([1.0, 0.0]))
        tensor([0.5000])
    """
    if overrides_one(input):
        return relay(glu, (input,), locals())
    if input.dim() == 0:
        raise RuntimeError(
            "glu does not support scalars because halving size must be even"
        )
    return _glu(input, dim)


def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """min(max(x, min_val), max_val).

    Raises:
        ValueError: min_val > max_val.

    Example:
        >>> taeda.nn.functional.hardtanh(taeda.tensor([-3.0, 0.5]))
        tensor([-1.0000,  0.5000])
    """
    if overrides_one(input):
        return relay(hardtanh, (input,), locals())
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return (hardtanh_ if inplace else _hardtanh)(input, min_val, max_val)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(x, 0), 6) (Krizhevsky, 2010).

    Example:
        >>> taeda.nn.functional.relu6(taeda.tensor([-1.0, 8.0]))
        tensor([0., 6.])
    """
    if overrides_one(input):
        return relay(relu6, (input,), locals())
    return (_relu6_ if inplace else _relu6)(input)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where x > 0, elsewhere alpha * (exp(x) - 1) (Clevert et al., 2015).

    Example:
        >>> taeda.nn.functional.elu(taeda.tensor([0.0, 2.0]))
        tensor([0., 2.])
    """
    if overrides_one(input):
        return relay(elu, (input,), locals())
    return (elu_ if inplace else _elu)(input, alpha)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """s * elu(x, a) with s = 1.0507..., a = 1.6732..., which keep mean and variance.

    Klambauer et al., "Self-Normalizing Neural Networks", 2017.

    Example:
        >>> taeda.nn.functional.selu(taeda.tensor([0.0, 1.0]))
        tensor([0.0000, 1.0507])
    """
    if overrides_one(input):
        return relay(selu, (input,), locals())
    return (selu_ if inplace else _selu)(input)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """max(0, x) + min(0, alpha * (exp(x / alpha) - 1)) (Barron, 2017).

    Example:
        >>> taeda.nn.functional.celu(taeda.tensor([0.0, 2.0]), alpha=0.5)
        tensor([0., 2.])
    """
    if overrides_one(input):
        return relay(celu, (input,), locals())
    return (celu_ if inplace else _celu)(input, alpha)


def leaky_relu(
    input: Tensor, negative_slope: float = 0.01, inplace: bool = False
) -> Tensor:
    """max(0, x) + negative_slope * min(0, x) (Maas et al., 2013).

    Example:
        >>> taeda.nn.functional.leaky_relu(taeda.tensor([-10.0, 1.0]), 0.1)
        tensor([-1.,  1.])
    """
    if overrides_one(input):
        return relay(leaky_relu, (input,), locals())
    return (leaky_relu_ if inplace else _leaky_relu)(input, negative_slope)


def rrelu(
    input: Tensor,
    lower: float = 0.125,
    upper: float = 1 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """Leaky relu whose slope is drawn from [lower, upper) while training.

    In evaluation the slope is (lower + upper) / 2. Xu et al., "Empirical
    Evaluation of Rectified Activations in Convolutional Network", 2015.

    Example:
        >>> taeda.nn.functional.rrelu(taeda.tensor([-4.0, 1.0]), 0.25, 0.25)
        tensor([-1.,  1.])
    """
    if overrides_one(input):
        return relay(rrelu, (input,), locals())
    return (rrelu_ if inplace else _rrelu)(input, lower, upper, training)


def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x).

    Example:
        >>> taeda.nn.functional.tanhshrink(taeda.zeros(1))
        tensor([0.])
    """
    if overrides_one(input):
        return relay(tanhshrink, (input,), locals())
    return input - input.tanh()


def softsign(input: Tensor) -> Tensor:
    """x / (1 + |x|).

    Example:
        >>> taeda.nn.functional.softsign(taeda.tensor([1.0, -3.0]))
        tensor([ 0.5000, -0.7500])
    """
    if overrides_one(input):
        return relay(softsign, (input,), locals())
    if input.is_floating_point():
        return _softsign(input)
    return input / (input.abs() + 1)


def tanh(input: Tensor) -> Tensor:
    """(exp(x) - exp(-x)) / (exp(x) + exp(-x)).

    Example:
        >>> taeda.nn.functional.tanh(taeda.zeros(1))
        tensor([0.])
    """
    return input.tanh()


def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-x)).

    Example:
        >>> taeda.nn.functional.sigmoid(taeda.zeros(1))
        tensor([0.5000])
    """
    return input.sigmoid()


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """relu6(x + 3) / 6.

    Example:
        >>> taeda.nn.functional.hardsigmoid(taeda.tensor([-3.0, 0.0, 3.0]))
        tensor([0.0000, 0.5000, 1.0000])
    """
    if overrides_one(input):
        return relay(hardsigmoid, (input,), locals())
    return (_hardsigmoid_ if inplace else _hardsigmoid)(input)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * relu6(x + 3) / 6 (Howard et al., "Searching for MobileNetV3", 2019).

    Example:
        >>> taeda.nn.functional.hardswish(taeda.tensor([0.0, 3.0]))
        tensor([0., 3.])
    """
    if overrides_one(input):
        return relay(hardswish, (input,), locals())
    return (_hardswish_ if inplace else _hardswish)(input)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x * sigmoid(x), also called swish (Elfwing et al., 2017).

    Example:
        >>> taeda.nn.functional.silu(taeda.zeros(1))
        tensor([0.])
    """
    if overrides_one(input):
        return relay(silu, (input,), locals())
    return (_silu_ if inplace else _silu)(input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * tanh(softplus(x)) (Misra, 2019).

    Example:
        >>> taeda.nn.functional.mish(taeda.zeros(1))
        tensor([0.])
    """
    if overrides_one(input):
        return relay(mish, (input,), locals())
    return (_mish_ if inplace else _mish)(input)


def _get_softmax_dim(name: str, ndim: int, stacklevel: int) -> int:
    """The dimension that an absent `dim` used to mean."""
    warn(
        f"Implicit dimension choice for {name} has been deprecated. "
        "Change the call to include dim=X as an argument.",
        level=stacklevel + 1,
    )
    return 0 if ndim in (0, 1, 3) else 1


def softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype=None
) -> Tensor:
    """exp(x_i) / sum_j exp(x_j) along `dim`.

    Args:
        input (Tensor): floating, or any dtype with `dtype` given.
        dim: the dimension that then sums to 1 (leaving it out is deprecated).
        dtype: cast to it before computing.

    Example:
        >>> taeda.nn.functional.softmax(taeda.zeros(2), 0)
        tensor([0.5000, 0.5000])
    """
    if overrides_one(input):
        return relay(softmax, (input,), locals())
    if dim is None:
        dim = _get_softmax_dim("softmax", input.dim(), _stacklevel)
    return input.softmax(dim) if dtype is None else input.softmax(dim, dtype=dtype)


def softmin(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype=None
) -> Tensor:
    """softmax(-x) along `dim`; arguments as `softmax`.

    Example:
        >>> taeda.nn.functional.softmin(taeda.zeros(2), 0)
        tensor([0.5000, 0.5000])
    """
    if overrides_one(input):
        return relay(softmin, (input,), locals())
    if dim is None:
        dim = _get_softmax_dim("softmin", input.dim(), _stacklevel)
    input = -input
    return input.softmax(dim) if dtype is None else input.softmax(dim, dtype=dtype)


def log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype=None
) -> Tensor:
    """log(softmax(x)) along `dim`, without overflow; arguments as `softmax`.

    Example:
        >>> taeda.nn.functional.log_softmax(taeda.zeros(2), 0)
        tensor([-0.6931, -0.6931])
    """
    if overrides_one(input):
        return relay(log_softmax, (input,), locals())
    if dim is None:
        dim = _get_softmax_dim("log_softmax", input.dim(), _stacklevel)
    if dtype is None:
        return input.log_softmax(dim)
    return input.log_softmax(dim, dtype=dtype)


def gumbel_softmax(
    logits: Tensor,
    tau: float = 1,
    hard: bool = False,
    eps: float = 1e-10,
    dim: int = -1,
) -> Tensor:
    """softmax((logits + g) / tau), g drawn from the standard Gumbel distribution.

    Jang et al., "Categorical Reparameterization with Gumbel-Softmax", 2016.

    Args:
        logits (Tensor): floating, unnormalised log-probabilities.
        tau: temperature.
        hard: a one-hot result, with the soft one's gradient.
        eps: deprecated, no effect.
        dim: the dimension that sums to 1.

    Example:
        >>> taeda.nn.functional.gumbel_softmax(taeda.zeros(3), hard=True).sum()
        tensor(1.)
    """
    if overrides_one(logits):
        return relay(gumbel_softmax, (logits,), locals())
    if eps != 1e-10:
        warn("gumbel_softmax: `eps` is deprecated and has no effect")
    layout = taeda.legacy_contiguous_format
    noise = -taeda.empty_like(logits, memory_format=layout).exponential_().log()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    one_hot = taeda.zeros_like(logits, memory_format=layout).scatter_(dim, index, 1.0)
    return one_hot - soft.detach() + soft
