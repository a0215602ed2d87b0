"""Window functions: weights by which spectra and filters taper a signal's ends.

All are computed in float64, whatever the dtype of the result is. `M` is the number of
weights; a symmetric window (`sym=True`, for filters) spans M - 1 steps, a periodic one
(for spectra) M steps, the last of which is left out. A window of one weight is 1.
Errors are ValueError: a negative M, a dtype other than float32 and float64, a layout
other than strided.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import taeda
from taeda import Tensor

__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]


def _window(
    name: str,
    M: int,
    formula: Callable[[Tensor, float], Tensor],
    sym: bool,
    dtype: taeda.dtype | None,
    layout: taeda.layout,
    device: object,
    requires_grad: bool,
) -> Tensor:
    """`formula` at the places 0, 1, ..., with the number of steps that it spans."""
    dtype = dtype or taeda.get_default_dtype()
    if isinstance(M, float):
        raise TypeError(f"{name}: expected M as an integer, got {M}")
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout is not taeda.strided:
        raise ValueError(
            f"{name} is implemented for strided tensors only, got: {layout}"
        )
    if dtype not in (taeda.float32, taeda.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
    if M < 2:
        weights = taeda.ones(M, dtype=dtype, device=device)
    else:
        places = taeda.arange(M, dtype=taeda.float64, device=device)
        weights = formula(places, M - 1 if sym else M).to(dtype)
    return weights.requires_grad_(requires_grad)


def bartlett(
    M: int,
    *,
    sym: bool = True,
    dtype: taeda.dtype | None = None,
    layout: taeda.layout = taeda.strided,
    device: object = None,
    requires_grad: bool = False,
) -> Tensor:
    """A triangle: 1 - |2 k / N - 1| at k = 0, 1, ..., N the steps."""

    def formula(k: Tensor, steps: float) -> Tensor:
        return 1 - abs(2 * k / steps - 1)

    return _window("bartlett", M, formula, sym, dtype, layout, device, requires_grad)


def exponential(
    M: int,
    *,
    center: float | None = None,
    tau: float = 1.0,
    sym: bool = True,
    dtype: taeda.dtype | None = None,
    layout: taeda.layout = taeda.strided,
    device: object = None,
    requires_grad: bool = False,
) -> Tensor:
    """exp(-|k - center| / tau), by default about the middle.

    Raises ValueError where tau is not above 0, or a symmetric window has a center.
    """
    if tau <= 0:
        raise ValueError(f"exponential: Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError(
            f"exponential: Center must be None for symmetric windows, got: {center}"
        )

    def formula(k: Tensor, steps: float) -> Tensor:
        middle = steps / 2 if center is None else center
        return taeda.exp(-abs(k - middle) / tau)

    return _window("exponential", M, formula, sym, dtype, layout, device, requires_grad)


def cosine(
    M: int,
    *,
    sym: bool = True,
    dtype: taeda.dtype | None = None,
    layout: taeda.layout = taeda.strided,
    device: object = None,
    requires_grad: bool = False,
) -> Tensor:
    """Half a wave: sin(pi (k + 1/2) / (N + 1)), N the steps."""

    def formula(k: Tensor, steps: float) -> Tensor:
        return taeda.sin((k + 0.5) * (math.pi / (steps + 1)))

    return _window("cosine", M, formula, sym, dtype, layout, device, requires_grad)


def gaussian(
    M: int,
    *,
    std: float = 1.0,
    sym: bool = True,
    dtype: taeda.dtype | None = None,
    layout: taeda.layout = taeda.strided,
    device: object = None,
    requires_grad: bool = False,
) -> Tensor:
    """exp(-((k - N / 2) / std) ** 2 / 2), N the steps.

    Raises ValueError where std is not above 0.
    """
    if std <= 0:
        raise ValueError(
            f"gaussian: Standard deviation must be positive, got: {std} instead."
        )

    def formula(k: Tensor, steps: float) -> Tensor:
        return taeda.exp(-0.5 * ((k - steps / 2) / std) ** 2)

    return _window("gaussian", M, formula, sym, dtype, layout, device, requires_grad)


def kaiser(
    M: int,
    *,
    beta: float = 12.0,
    sym: bool = True,
    dtype: taeda.dtype | None = None,
    layout: taeda.layout = taeda.strided,
    device: object = None,
    requires_grad: bool = False,
) -> Tensor:
    """I0(beta sqrt(1 - (2 k / N - 1) ** 2)) / I0(beta), N the steps.

    Raises ValueError where beta is negative.
    """
    if beta < 0:
        raise ValueError(f"kaiser: beta must be non-negative, got: {beta} instead.")

    def formula(k: Tensor, steps: float) -> Tensor:
        bend = taeda.sqrt(4 * k * (steps - k)) / steps
        # I0 without its growth, which may overflow.
        share = taeda.special.i0e(beta * bend) * taeda.exp(beta * (bend - 1))
        top = taeda.special.i0e(k.new_full((), beta))
        return share / top

    return _window("kaiser", M, formula, sym, dtype, layout, device, requires_grad)


def _cosines(
    name: str,
    M: int,
    a: Iterable[float],
    sym: bool,
    dtype: taeda.dtype | None,
    layout: taeda.layout,
    device: object,
    requires_grad: bool,
) -> Tensor:
    """a_0 - a_1 cos(x) + a_2 cos(2 x) - ..., x = 2 pi k / N."""

    def formula(k: Tensor, steps: float) -> Tensor:
        total = taeda.zeros_like(k)
        for i, weight in enumerate(a):
            wave = taeda.cos(k * (2 * math.pi * i / steps))
            total = total + (-weight if i % 2 else weight) * wave
        return total

    return _window(name, M, formula, sym, dtype, layout, device, requires_grad)


def general_cosine(
    M: int,
    *,
    a: Iterable[float],
    sym: bool = True,
    dtype: taeda.dtype | None = None,
    layout: taeda.layout = taeda.strided,
    device: object = None,
    requires_grad: bool = False,
) -> Tensor:
    """a[0] - a[1] cos(x) + a[2] cos(2 x) - ..., x = 2 pi k / N, N the steps.

    Raises TypeError where a is no list of numbers, ValueError where it is empty.
    """
    if not isinstance(a, Iterable):
        raise TypeError(
            f"general_cosine: Coefficients must be a list/tuple, got {type(a)}"
        )
    a = list(a)
    if not a:
        raise ValueError("general_cosine: Coefficients cannot be empty")
    call = (sym, dtype, layout, device, requires_grad)
    return _cosines("general_cosine", M, a, *call)


def general_hamming(
    M: int,
    *,
    alpha: float = 0.54,
    sym: bool = True,
    dtype: taeda.dtype | None = None,
    layout: taeda.layout = taeda.strided,
    device: object = None,
    requires_grad: bool = False,
) -> Tensor:
    """alpha - (1 - alpha) cos(2 pi k / N), N the steps."""
    call = (sym, dtype, layout, device, requires_grad)
    return _cosines("general_hamming", M, [alpha, 1 - alpha], *call)


def hamming(
    M: int,
    *,
    sym: bool = True,
    dtype: taeda.dtype | None = None,
    layout: taeda.layout = taeda.strided,
    device: object = None,
    requires_grad: bool = False,
) -> Tensor:
    """0.54 - 0.46 cos(2 pi k / N), N the steps."""
    call = (sym, dtype, layout, device, requires_grad)
    return _cosines("hamming", M, [0.54, 0.46], *call)


def hann(
    M: int,
    *,
    sym: bool = True,
    dtype: taeda.dtype | None = None,
    layout: taeda.layout = taeda.strided,
    device: object = None,
    requires_grad: bool = False,
) -> Tensor:
    """(1 - cos(2 pi k / N)) / 2, N the steps."""
    call = (sym, dtype, layout, device, requires_grad)
    return _cosines("hann", M, [0.5, 0.5], *call)


def blackman(
    M: int,
    *,
    sym: bool = True,
    dtype: taeda.dtype | None = None,
    layout: taeda.layout = taeda.strided,
    device: object = None,
    requires_grad: bool = False,
) -> Tensor:
    """0.42 - 0.5 cos(x) + 0.08 cos(2 x), x = 2 pi k / N, N the steps."""
    call = (sym, dtype, layout, device, requires_grad)
    return _cosines("blackman", M, [0.42, 0.5, 0.08], *call)


def nuttall(
    M: int,
    *,
    sym: bool = True,
    dtype: taeda.dtype | None = None,
    layout: taeda.layout = taeda.strided,
    device: object = None,
    requires_grad: bool = False,
) -> Tensor:
    """The cosines of 4 terms with Nuttall's weights for the lowest side lobes.

    A. Nuttall, IEEE Trans. Acoustics, Speech, Signal Processing 29 (1981), 84-91.
    """
    weights = [0.3635819, 0.4891775, 0.1365995, 0.0106411]
    call = (sym, dtype, layout, device, requires_grad)
    return _cosines("nuttall", M, weights, *call)
