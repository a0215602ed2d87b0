"""Filling parameters with their first values; every function works in place.

The streams of random numbers are PyTorch's: the same seed gives the same values.
"""

from __future__ import annotations

import math

import taeda
from taeda import Tensor

from ._native import overrides_one, relay, warn

__all__ = [
    "calculate_gain",
    "constant",
    "constant_",
    "dirac",
    "dirac_",
    "eye",
    "eye_",
    "kaiming_normal",
    "kaiming_normal_",
    "kaiming_uniform",
    "kaiming_uniform_",
    "normal",
    "normal_",
    "ones_",
    "orthogonal",
    "orthogonal_",
    "sparse",
    "sparse_",
    "trunc_normal_",
    "uniform",
    "uniform_",
    "xavier_normal",
    "xavier_normal_",
    "xavier_uniform",
    "xavier_uniform_",
    "zeros_",
]

_GAINS = {
    "sigmoid": 1,
    "tanh": 5.0 / 3,
    "relu": math.sqrt(2.0),
    "selu": 3.0 / 4,
    "linear": 1,
    **{f"conv{kind}{d}d": 1 for kind in ("", "_transpose") for d in (1, 2, 3)},
}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor that keeps a layer's variance under a nonlinearity.

    Args:
        nonlinearity: name of a function of nn.functional: "linear", "conv1d" ...
            "conv_transpose3d" and "sigmoid" (1), "tanh" (5/3), "relu" (sqrt 2),
            "leaky_relu" (sqrt(2 / (1 + slope^2))), "selu" (3/4).
        param: the slope of "leaky_relu", default 0.01.

    Raises:
        ValueError: unknown name, or a slope that is no number.

    Example:
        >>> taeda.nn.init.calculate_gain("leaky_relu", 1)
        1.0
    """
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, (int, float)):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    try:
        return _GAINS[nonlinearity]
    except KeyError:
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}") from None


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator=None) -> Tensor:
    """Draw from the uniform distribution on [a, b).

    Args:
        tensor (Tensor): floating; filled in place and returned.
        a, b: ends of the interval.
        generator: source of random numbers; default the global one.

    Example:
        >>> taeda.nn.init.uniform_(taeda.empty(2), 3.0, 3.0)
        tensor([3., 3.])
    """
    if overrides_one(tensor):
        return relay(uniform_, (tensor,), locals())
    return _no_grad_uniform_(tensor, a, b, generator)


def _no_grad_uniform_(tensor, a, b, generator=None):
    """`uniform_` under the name that packages fill parameters by."""
    with taeda.no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator=None
) -> Tensor:
    """Draw from the normal distribution of that mean and deviation.

    Example:
        >>> taeda.nn.init.normal_(taeda.empty(2), 5.0, 0.0)
        tensor([5., 5.])
    """
    if overrides_one(tensor):
        return relay(normal_, (tensor,), locals())
    with taeda.no_grad():
        return tensor.normal_(mean, std, generator=generator)


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with `val`.

    Example:
        >>> taeda.nn.init.constant_(taeda.empty(2), 0.5)
        tensor([0.5000, 0.5000])
    """
    if overrides_one(tensor):
        return relay(constant_, (tensor,), locals())
    with taeda.no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fill with 1.

    Example:
        >>> taeda.nn.init.ones_(taeda.empty(2))
        tensor([1., 1.])
    """
    with taeda.no_grad():
        return tensor.fill_(1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with 0.

    Example:
        >>> taeda.nn.init.zeros_(taeda.empty(2))
        tensor([0., 0.])
    """
    with taeda.no_grad():
        return tensor.zero_()


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator=None,
) -> Tensor:
    """Draw from a normal distribution cut off outside [a, b].

    What falls outside is drawn again; where little of the distribution lies inside,
    uniform proposals are accepted with the density (von Neumann, 1951).

    Args:
        tensor (Tensor): floating.
        mean, std: of the distribution before the cut.
        a, b: the interval.
        generator: source of random numbers.

    Example:
        >>> t = taeda.nn.init.trunc_normal_(taeda.empty(100), a=-1, b=1)
        >>> bool(t.abs().max() <= 1)
        True
    """
    if tensor.is_meta:
        return tensor
    if not a - 2 * std <= mean <= b + 2 * std:
        warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The "
            "distribution of values may be incorrect."
        )

    def below(x):
        return (1.0 + math.erf((x - mean) / std / math.sqrt(2.0))) / 2.0

    with taeda.no_grad():
        draw = _redraw_normal if below(b) - below(a) > 0.3 else _accept_uniform
        result = draw(tensor, mean, std, a, b, generator)
        if result is not tensor:
            tensor.copy_(result)
    return tensor


def _redraw_normal(tensor, mean, std, a, b, generator):
    """Normal draws, those outside drawn again."""
    # The ends as the tensor's dtype rounds them.
    low, high = (tensor.new_tensor(x, device="cpu").item() for x in (a, b))
    result = tensor.normal_(mean, std, generator=generator)
    while (outside := (result < low) | (result > high)).any():
        again = taeda.empty_like(result).normal_(mean, std, generator=generator)
        result = taeda.where(outside, again, result)
    return result


def _accept_uniform(tensor, mean, std, a, b, generator):
    """Uniform draws, accepted with the density relative to its peak in [a, b]."""
    peak = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2
    level = taeda.empty_like(tensor)

    def refused(drawn):
        log_density = ((drawn - mean) / std).square() * -0.5 - peak
        return level.uniform_(generator=generator).log_() > log_density

    result = tensor.uniform_(a, b, generator=generator)
    pending = refused(result)
    while pending.any():
        drawn = taeda.empty_like(result).uniform_(a, b, generator=generator)
        result = taeda.where(pending, drawn, result)
        pending &= refused(drawn)
    return result


def _matrix_shape(tensor):
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    return tensor.shape


def eye_(tensor: Tensor) -> Tensor:
    """Make a matrix the identity, as far as its shape allows.

    Raises:
        ValueError: not 2-D.

    Example:
        >>> taeda.nn.init.eye_(taeda.empty(1, 2))
        tensor([[1., 0.]])
    """
    shape = _matrix_shape(tensor)
    with taeda.no_grad():
        taeda.eye(*shape, out=tensor, requires_grad=tensor.requires_grad)
    return tensor


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Make a convolution weight hand its input channels through.

    Args:
        tensor (Tensor): (out, in / groups, kernel ...) of 3 to 5 dimensions.
        groups: groups of the convolution.

    Raises:
        ValueError: another rank, or groups that do not divide the channels.

    Example:
        >>> taeda.nn.init.dirac_(taeda.empty(1, 1, 3))
        tensor([[[0., 1., 0.]]])
    """
    if not 3 <= tensor.dim() <= 5:
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    outputs, inputs, *kernel = tensor.size()
    step, rest = divmod(outputs, groups)
    if rest:
        raise ValueError("dim 0 must be divisible by groups")
    if tensor.is_meta:
        return tensor
    centre = tuple(n // 2 for n in kernel)
    with taeda.no_grad():
        middle = tensor.zero_()[(slice(None), slice(None), *centre)]
        for group in middle.split(step):
            group.diagonal().fill_(1)
    return tensor


def _calculate_fan_in_and_fan_out(tensor):
    """Inputs of one output and outputs of one input of a weight."""
    sizes = tensor.size()
    if len(sizes) < 2:
        raise ValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 "
            "dimensions"
        )
    area = math.prod(sizes[2:])
    return sizes[1] * area, sizes[0] * area


def _calculate_correct_fan(tensor, mode):
    fans = dict(
        zip(("fan_in", "fan_out"), _calculate_fan_in_and_fan_out(tensor), strict=False)
    )
    try:
        return fans[mode.lower()]
    except KeyError:
        raise ValueError(
            f"Mode {mode} not supported, please use one of {list(fans)}"
        ) from None


def _uniform_of(std, tensor, generator):
    """Uniform values about 0 of that deviation."""
    bound = math.sqrt(3.0) * std
    with taeda.no_grad():
        return tensor.uniform_(-bound, bound, generator=generator)


def _glorot_std(tensor, gain):
    return gain * math.sqrt(2.0 / sum(_calculate_fan_in_and_fan_out(tensor)))


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator=None) -> Tensor:
    """Uniform on [-r, r], r = gain * sqrt(6 / (fan_in + fan_out)).

    Glorot and Bengio, "Understanding the difficulty of training deep feedforward
    neural networks", 2010.

    Raises:
        ValueError: fewer than two dimensions.

    Example:
        >>> t = taeda.nn.init.xavier_uniform_(taeda.empty(3, 3))
        >>> bool(t.abs().max() <= 1)
        True
    """
    return _uniform_of(_glorot_std(tensor, gain), tensor, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator=None) -> Tensor:
    """Normal with deviation gain * sqrt(2 / (fan_in + fan_out)); Glorot, 2010.

    Example:
        >>> tuple(taeda.nn.init.xavier_normal_(taeda.empty(3, 3)).shape)
        (3, 3)
    """
    std = _glorot_std(tensor, gain)
    with taeda.no_grad():
        return tensor.normal_(0.0, std, generator=generator)


def _kaiming_std(tensor, a, mode, nonlinearity):
    """gain / sqrt(fan), or None for a tensor without elements."""
    if 0 in tensor.shape:
        warn("Initializing zero-element tensors is a no-op", level=4)
        return None
    fan = _calculate_correct_fan(tensor, mode)
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator=None,
) -> Tensor:
    """Uniform on [-r, r], r = gain * sqrt(3 / fan).

    He et al., "Delving Deep into Rectifiers", 2015.

    Args:
        tensor (Tensor): a weight of at least two dimensions.
        a: slope of "leaky_relu".
        mode: "fan_in" keeps the variance forward, "fan_out" backward.
        nonlinearity: as for `calculate_gain`.
        generator: source of random numbers.

    Raises:
        ValueError: fewer than two dimensions, or an unknown name.

    Example:
        >>> t = taeda.nn.init.kaiming_uniform_(taeda.empty(2, 6))
        >>> bool(t.abs().max() <= 1)
        True
    """
    if overrides_one(tensor):
        return relay(kaiming_uniform_, (tensor,), locals())
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    if std is None:
        return tensor
    return _uniform_of(std, tensor, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator=None,
) -> Tensor:
    """Normal with deviation gain / sqrt(fan); arguments as `kaiming_uniform_`.

    Example:
        >>> tuple(taeda.nn.init.kaiming_normal_(taeda.empty(2, 6)).shape)
        (2, 6)
    """
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    if std is None:
        return tensor
    with taeda.no_grad():
        return tensor.normal_(0, std, generator=generator)


# kaiming_uniform_'s steps for a = sqrt(5), leaky_relu, in its order of rounding.
_LAYER_GAIN = math.sqrt(2.0 / (1 + math.sqrt(5) ** 2))
_SQRT_3 = math.sqrt(3.0)


def _layer_(weight, bias) -> None:
    """What linear and convolution layers start from: uniform, 1 / sqrt(fan_in)."""
    sizes = weight.shape
    fan = sizes[1] if len(sizes) == 2 else math.prod(sizes[1:])
    special = 0 in sizes or overrides_one(weight)
    with taeda.no_grad():
        if special:
            kaiming_uniform_(weight, a=math.sqrt(5))
        else:
            bound = _SQRT_3 * (_LAYER_GAIN / math.sqrt(fan))
            weight.uniform_(-bound, bound)
        if bias is not None:
            bound = 1 / math.sqrt(fan) if fan > 0 else 0
            if special:
                uniform_(bias, -bound, bound)
            else:
                bias.uniform_(-bound, bound)


def orthogonal_(tensor: Tensor, gain: float = 1, generator=None) -> Tensor:
    """Orthonormal rows or columns, times `gain`.

    Saxe et al., "Exact solutions to the nonlinear dynamics of learning in deep linear
    neural networks", 2013. Dimensions after the first count as one.

    Raises:
        ValueError: fewer than two dimensions.

    Example:
        >>> q = taeda.nn.init.orthogonal_(taeda.empty(3, 3))
        >>> taeda.allclose(q @ q.T, taeda.eye(3), atol=1e-5)
        True
    """
    if tensor.dim() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0 or tensor.is_meta:
        return tensor
    rows, *rest = tensor.shape
    flat = tensor.new_empty((rows, math.prod(rest)))
    flat.normal_(0, 1, generator=generator)
    tall = flat.T if rows < flat.size(1) else flat
    q, r = taeda.linalg.qr(tall)
    # QR is unique up to the signs of r's diagonal (Mezzadri, 2007).
    q *= r.diagonal().sign()
    with taeda.no_grad():
        tensor.copy_((q if tall is flat else q.T).reshape(tensor.shape)).mul_(gain)
    return tensor


def sparse_(
    tensor: Tensor, sparsity: float, std: float = 0.01, generator=None
) -> Tensor:
    """Normal values, a part of each column zero.

    Martens, "Deep learning via Hessian-free optimization", 2010.

    Args:
        tensor (Tensor): a matrix.
        sparsity: part of each column that is zero.
        std: deviation of the rest.
        generator: source of random numbers.

    Raises:
        ValueError: not 2-D.

    Example:
        >>> t = taeda.nn.init.sparse_(taeda.empty(10, 1), sparsity=0.5)
        >>> int((t == 0).sum())
        5
    """
    rows, _ = _matrix_shape(tensor)
    if tensor.is_meta:
        return tensor
    count = math.ceil(sparsity * rows)
    with taeda.no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in tensor.detach().unbind(1):
            column[taeda.randperm(rows)[:count]] = 0
    return tensor


def _old_name(function):
    """`function` under its deprecated name, without the underscore."""
    name = function.__name__[:-1]

    def deprecated(*args, **kwargs):
        warn(
            f"`nn.init.{name}` is now deprecated in favor of `nn.init.{name}_`.",
            FutureWarning,
        )
        return function(*args, **kwargs)

    deprecated.__name__ = deprecated.__qualname__ = name
    deprecated.__doc__ = f"Deprecated name of `{name}_`."
    return deprecated


uniform, normal, constant = map(_old_name, (uniform_, normal_, constant_))
eye, dirac, sparse = map(_old_name, (eye_, dirac_, sparse_))
xavier_uniform, xavier_normal = map(_old_name, (xavier_uniform_, xavier_normal_))
kaiming_uniform, kaiming_normal = map(_old_name, (kaiming_uniform_, kaiming_normal_))
orthogonal = _old_name(orthogonal_)
