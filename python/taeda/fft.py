"""Fourier transforms: natives under their short names, and helpers for their order."""

from __future__ import annotations

import taeda
from taeda import _C
from taeda._lazy import attributes
from taeda._tensor import _asking

_natives = {
    name.removeprefix("fft_"): function
    for name, function in vars(_C._fft).items()
    if not name.startswith("_")
}
globals().update(_natives)
__all__ = [*_natives, "fftfreq", "fftshift", "ifftshift", "rfftfreq"]
__getattr__ = attributes(__name__)


def _counted(name: str, n: int, out, options: dict):
    """0 to n - 1 in the wanted dtype, which is that of `out` where none is given."""
    if options.get("dtype") is None:
        given = taeda.get_default_dtype() if out is None else out.dtype
        options["dtype"] = given
    dtype = options["dtype"]
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(
            f"{name} requires a floating point or complex dtype, got {dtype}"
        )
    return taeda.arange(n, out=out, **options)


def fftfreq(n: int, d: float = 1.0, *, out=None, **options):
    """The frequencies of a transform's elements, positive ones first.

    Args:
        n: the transform's length.
        d: the distance of samples.
        out: a tensor to write to.
        options: of a new tensor: dtype, layout, device, requires_grad.

    Example:
        >>> taeda.fft.fftfreq(4)
        tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    result = _counted("fftfreq", n, out, options)
    with taeda.no_grad():
        result[(n + 1) // 2 :] -= n
        return result.mul_(1.0 / (n * d))


def rfftfreq(n: int, d: float = 1.0, *, out=None, **options):
    """The frequencies of a real transform's elements: the half that is not negative.

    Args:
        n, d, out, options: as for `fftfreq`.
    """
    result = _counted("rfftfreq", n // 2 + 1, out, options)
    with taeda.no_grad():
        return result.mul_(1.0 / (n * d))


def _rolled(input, dim, sign: int):
    dims = range(input.dim()) if dim is None else dim
    dims = [dims] if isinstance(dims, int) else list(dims)
    shifts = [(input.size(i) + (sign < 0)) // 2 for i in dims]
    return taeda.roll(input, shifts, dims)


@_asking
def fftshift(input, dim=None):
    """The elements rearranged so that the frequency 0 stands in the middle."""
    return _rolled(input, dim, 1)


@_asking
def ifftshift(input, dim=None):
    """Undoes `fftshift`."""
    return _rolled(input, dim, -1)
