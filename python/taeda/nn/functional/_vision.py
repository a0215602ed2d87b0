"""Resizing, sampling, padding and rearranging of images and volumes."""

from __future__ import annotations

import taeda
from taeda import Tensor

from .._native import native, overrides_any, overrides_one, relay, warn
from .._types import Flag

__name__ = __package__

pixel_shuffle, pixel_unshuffle = native("pixel_shuffle"), native("pixel_unshuffle")
channel_shuffle = native("channel_shuffle")
native_channel_shuffle = native("native_channel_shuffle")
_pad, _im2col, _col2im = native("pad"), native("im2col"), native("col2im")
_grid_sampler = native("grid_sampler")
_affine_grid = native("affine_grid_generator")

# (rank, mode, antialias) -> native; the first three modes take no align_corners.
_RESIZE = {
    (d + 2, mode, False): f"{name}{d}d"
    for mode, name in (
        ("nearest", "upsample_nearest"),
        ("nearest-exact", "_upsample_nearest_exact"),
        ("area", "adaptive_avg_pool"),
    )
    for d in (1, 2, 3)
}
_RESIZE.update(
    {
        (3, "linear", False): "upsample_linear1d",
        (4, "bilinear", False): "upsample_bilinear2d",
        (4, "bicubic", False): "upsample_bicubic2d",
        (5, "trilinear", False): "upsample_trilinear3d",
        (4, "bilinear", True): "_upsample_bilinear2d_aa",
        (4, "bicubic", True): "_upsample_bicubic2d_aa",
        (4, "lanczos", True): "_upsample_lanczos2d_aa",
    }
)
_BY_CELL = ("nearest", "nearest-exact", "area")
_NEEDS = {"linear": 3, "bilinear": 4, "trilinear": 5}


def _each(value, d: int, name: str, input) -> list:
    """One entry of `value` for each of the `d` spatial dimensions."""
    if not isinstance(value, (list, tuple)):
        return [value] * d
    if len(value) != d:
        raise ValueError(
            f"Input and {name} must have the same number of spatial dimensions, but "
            f"got input with spatial dimensions of {list(input.shape[2:])} and {name} "
            f"of {value}. Please provide input tensor in (N, C, d1, d2, ...,dK) format "
            f"and {name} with K entries."
        )
    return list(value)


def _whole(n) -> bool:
    if isinstance(n, Tensor):
        return not n.is_floating_point()
    return hasattr(type(n), "__index__")


def interpolate(
    input: Tensor,
    size=None,
    scale_factor=None,
    mode: str = "nearest",
    align_corners: Flag = None,
    recompute_scale_factor: Flag = None,
    antialias: bool = False,
) -> Tensor:
    """Resize the last one, two or three dimensions.

    Args:
        input (Tensor): (N, C, L), (N, C, H, W) or (N, C, D, H, W).
        size: wanted sizes, one number for all or one for each; or
        scale_factor: their ratio to the present ones.
        mode: "nearest", "nearest-exact", "area", "linear" (3-D), "bilinear",
            "bicubic", "lanczos" (4-D), "trilinear" (5-D).
        align_corners: whether corner pixels map to each other by their centres;
            linear and cubic modes only, default False.
        recompute_scale_factor: compute with size / present size, not with the given
            factors, which need not be the same after rounding.
        antialias: low-pass before shrinking; bilinear, bicubic, lanczos.

    Raises:
        ValueError: options that contradict each other.
        TypeError: sizes that are no integers.
        NotImplementedError: a mode that the rank does not have.

    Example:
        >>> x = taeda.tensor([[[1.0, 2.0]]])
        >>> taeda.nn.functional.interpolate(x, scale_factor=2)
        tensor([[[1., 1., 2., 2.]]])
    """
    if overrides_one(input):
        return relay(interpolate, (input,), locals())
    if mode in _BY_CELL:
        if align_corners is not None:
            raise ValueError(
                "align_corners option can only be set with the interpolating modes: "
                "linear | bilinear | bicubic | trilinear"
            )
    rank = input.dim()
    recompute = bool(recompute_scale_factor)
    sizes, factors = _target(input, size, scale_factor, mode, recompute)
    if antialias and not (mode in ("bilinear", "bicubic", "lanczos") and rank == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes "
            "and requires a 4-D tensor as input"
        )
    if mode == "lanczos" and rank == 4 and (align_corners or not antialias):
        raise ValueError(
            "Lanczos mode requires antialias=True and does not support "
            "align_corners=True"
        )
    name = _RESIZE.get((rank, mode, antialias))
    if name is None:
        _refuse(rank, mode)
    resize = native(name)
    if mode == "area":
        return resize(input, sizes)
    if mode in _BY_CELL:
        return resize(input, sizes, factors)
    return resize(input, sizes, bool(align_corners), factors)


def _target(input, size, scale_factor, mode, recompute):
    """(output sizes, scale factors), of which one may be None."""
    d = input.dim() - 2
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is not None:
        sizes = _each(size, d, "size", input)
        if not all(map(_whole, sizes)):
            raise TypeError(
                "expected size to be one of int or Tuple[int] or Tuple[int, int] or "
                "Tuple[int, int, int], but got size with types "
                f"{list(map(type, sizes))}"
            )
        if recompute:
            raise ValueError(
                "recompute_scale_factor is not meaningful with an explicit size."
            )
        return sizes, None
    if scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    factors = _each(scale_factor, d, "scale_factor", input)
    if recompute or mode == "area":
        return [
            int(n * f) for n, f in zip(input.shape[2:], factors, strict=False)
        ], None
    return None, factors


def _refuse(rank, mode):
    if rank in (3, 4, 5) and mode in _NEEDS:
        raise NotImplementedError(
            f"Got {rank}D input, but {mode} mode needs {_NEEDS[mode]}D input"
        )
    raise NotImplementedError(
        f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {rank}D) for "
        "the modes: nearest | linear | bilinear | bicubic | trilinear | lanczos | area "
        f"| nearest-exact (got {mode})"
    )


def upsample(
    input: Tensor, size=None, scale_factor=None, mode="nearest", align_corners=None
) -> Tensor:
    """Deprecated name of `interpolate`."""
    warn("`nn.functional.upsample` is deprecated, use `nn.functional.interpolate`")
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size=None, scale_factor=None) -> Tensor:
    """Deprecated: `interpolate` with mode "nearest"."""
    warn("`nn.functional.upsample_nearest` is deprecated, use `interpolate`")
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input: Tensor, size=None, scale_factor=None) -> Tensor:
    """Deprecated: `interpolate` with mode "bilinear" and aligned corners."""
    warn("`nn.functional.upsample_bilinear` is deprecated, use `interpolate`")
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


_SAMPLING = {"bilinear": 0, "nearest": 1, "bicubic": 2}
_BEYOND = {"zeros": 0, "border": 1, "reflection": 2}


def _corners(align_corners) -> bool:
    if align_corners is None:
        warn(
            "grid_sample and affine_grid take align_corners=False when it is not "
            "given (it was True before 1.3.0); pass it to silence this",
            level=4,
        )
    return bool(align_corners)


def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: Flag = None,
) -> Tensor:
    """Sample an image or a volume at the places of `grid`.

    Jaderberg et al., "Spatial Transformer Networks", 2015.

    Args:
        input (Tensor): (N, C, H, W) or (N, C, D, H, W), floating.
        grid (Tensor): (N, h, w, 2) or (N, d, h, w, 3), x first, in [-1, 1].
        mode: "bilinear", "nearest" or "bicubic".
        padding_mode: values beyond the edge: "zeros", "border" or "reflection".
        align_corners: whether -1 and 1 are centres of the corner pixels, not their
            outer edges.

    Raises:
        ValueError: unknown mode.

    Example:
        >>> x = taeda.ones(1, 1, 2, 2)
        >>> f = taeda.nn.functional.grid_sample
        >>> f(x, taeda.zeros(1, 1, 1, 2), align_corners=False)
        tensor([[[[1.]]]])
    """
    if overrides_any(input, grid):
        return relay(grid_sample, (input, grid), locals())
    for name, value, known in (
        ("mode", mode, _SAMPLING),
        ("padding_mode", padding_mode, _BEYOND),
    ):
        if value not in known:
            raise ValueError(
                f"nn.functional.grid_sample(): expected {name} to be one of "
                f"{list(known)}, but got: '{value}'"
            )
    how = (_SAMPLING[mode], _BEYOND[padding_mode], _corners(align_corners))
    return _grid_sampler(input, grid, *how)


def affine_grid(theta: Tensor, size, align_corners: Flag = None) -> Tensor:
    """A grid for `grid_sample` from affine matrices.

    Args:
        theta (Tensor): (N, 2, 3) or (N, 3, 4), floating.
        size: wanted (N, C, H, W) or (N, C, D, H, W).
        align_corners: as for `grid_sample`.

    Raises:
        ValueError: theta is not floating, a shape that does not fit, a size below 1.
        NotImplementedError: a size of another length.

    Example:
        >>> theta = taeda.eye(2, 3).unsqueeze(0)
        >>> f = taeda.nn.functional.affine_grid
        >>> f(theta, (1, 1, 1, 1), align_corners=False)
        tensor([[[[0., 0.]]]])
    """
    if overrides_one(theta):
        return relay(affine_grid, (theta,), locals())
    align_corners = _corners(align_corners)
    if not theta.is_floating_point():
        raise ValueError(
            f"Expected theta to have floating point type, but got {theta.dtype}"
        )
    d = len(size) - 2
    if d not in (2, 3):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine "
            f"transforms, respectively. Got size {size}."
        )
    if theta.dim() != 3 or tuple(theta.shape[-2:]) != (d, d + 1):
        raise ValueError(
            f"Expected a batch of {d}D affine matrices of shape Nx{d}x{d + 1} for size "
            f"{size}. Got {theta.shape}."
        )
    if align_corners and min(size[2:]) == 1:
        warn(
            "affine_grid: with align_corners=True a size of 1 gives the centre (since "
            "1.3.0), for which align_corners was not made. See the documentation of "
            "affine_grid for details."
        )
    elif min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    return _affine_grid(theta, size, align_corners)


def pad(
    input: Tensor, pad, mode: str = "constant", value: float | None = None
) -> Tensor:
    """Put values around the last dimensions.

    Args:
        input (Tensor): any shape and dtype.
        pad: (begin, end) of the last dimension, then of the one before, ...; what is
            negative cuts off.
        mode: "constant", "reflect", "replicate" or "circular".
        value: of the constant; default 0.

    Example:
        >>> taeda.nn.functional.pad(taeda.ones(2), (1, 0))
        tensor([0., 1., 1.])
    """
    if overrides_one(input):
        return relay(taeda.nn.functional.pad, (input,), locals())
    return _pad(input, pad, mode, value)


def _pair(value):
    return tuple(value) if isinstance(value, (tuple, list)) else (value, value)


def unfold(input: Tensor, kernel_size, dilation=1, padding=0, stride=1) -> Tensor:
    """All windows of an image as columns: (N, C, H, W) -> (N, C * window, windows).

    Args:
        input (Tensor): (N, C, H, W) or (C, H, W), floating.
        kernel_size, dilation, padding, stride: one number or two, as in pooling.

    Example:
        >>> tuple(taeda.nn.functional.unfold(taeda.ones(1, 1, 3, 3), 2).shape)
        (1, 4, 4)
    """
    if overrides_one(input):
        return relay(unfold, (input,), locals())
    return _im2col(input, *map(_pair, (kernel_size, dilation, padding, stride)))


def fold(
    input: Tensor, output_size, kernel_size, dilation=1, padding=0, stride=1
) -> Tensor:
    """Sum columns of windows back into an image; the transpose of `unfold`.

    Args:
        input (Tensor): (N, C * window, windows) or without N.
        output_size: (H, W) of the image.
        kernel_size, dilation, padding, stride: those of `unfold`.

    Example:
        >>> taeda.nn.functional.fold(taeda.ones(1, 4, 1), 2, 2)
        tensor([[[[1., 1.],
                  [1., 1.]]]])
    """
    if overrides_one(input):
        return relay(fold, (input,), locals())
    places = (output_size, kernel_size, dilation, padding, stride)
    return _col2im(input, *map(_pair, places))
