"""Linear maps and convolutions; mostly natives as they are."""

from __future__ import annotations

import taeda
from taeda import Tensor
from taeda._choice import Choice

from .._native import native
from .._types import MaybeTensor

__name__ = __package__

linear = native("linear")
bilinear = native("bilinear")
conv1d, conv2d, conv3d = (native(f"conv{d}d") for d in (1, 2, 3))
conv_transpose1d, conv_transpose2d, conv_transpose3d = (
    native(f"conv_transpose{d}d") for d in (1, 2, 3)
)
conv_tbc = native("conv_tbc")
_scaled_mm_v2, _scaled_grouped_mm_v2 = map(
    native, ("_scaled_mm_v2", "_scaled_grouped_mm_v2")
)


class ScalingType(Choice):
    """How the scales of a scaled matrix product are laid out.

    Example:
        >>> taeda.nn.functional.ScalingType.RowWise.value
        1
    """

    __slots__ = ()
    _values = {
        "TensorWise": 0,
        "RowWise": 1,
        "BlockWise1x16": 2,
        "BlockWise1x32": 3,
        "BlockWise1x128": 4,
        "BlockWise128x128": 5,
    }


class SwizzleType(Choice):
    """How the scales of a scaled matrix product are permuted in memory."""

    __slots__ = ()
    _values = {"NO_SWIZZLE": 0, "SWIZZLE_32_4_4": 1}


def grouped_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    *,
    offs: MaybeTensor = None,
    bias: MaybeTensor = None,
    out_dtype=None,
) -> Tensor:
    """Matrix products of many groups in one call.

    Args:
        mat_a, mat_b (Tensor): 2-D or 3-D; a 2-D operand is cut into groups.
        offs (Tensor): int32 ends of the groups along the cut dimension.
        bias (Tensor): added to each row.
        out_dtype: dtype of the result.
    """
    if mat_a.dim() == 3 and mat_b.dim() == 3:
        out = mat_a @ mat_b
    else:
        if offs is None:
            raise ValueError("grouped_mm: offs is needed where an operand is 2-D")
        out = _by_groups(mat_a, mat_b, offs.tolist())
    out = out if bias is None else out + bias
    return out if out_dtype is None else out.to(out_dtype)


def _by_groups(a: Tensor, b: Tensor, ends: list[int]) -> Tensor:
    """The products of groups that end at `ends` along the cut dimension."""
    cuts = list(zip([0, *ends[:-1]], ends, strict=True))
    if a.dim() == 3:
        return taeda.cat([a[i] @ b[:, s:e] for i, (s, e) in enumerate(cuts)], 1)
    if b.dim() == 3:
        rows = [a[s:e] @ b[i] for i, (s, e) in enumerate(cuts)]
        rest = a.new_zeros(a.size(0) - ends[-1], b.size(-1))
        return taeda.cat([*rows, rest])
    return taeda.stack([a[:, s:e] @ b[s:e] for s, e in cuts])


def _several(value) -> list:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _numbers(value) -> list:
    return [choice.value for choice in _several(value)]


def _scaling(scale, recipe, swizzle):
    """One operand's scales, as the natives take them."""
    return _several(scale), _numbers(recipe), _numbers(swizzle)


def scaled_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    scale_a,
    scale_recipe_a,
    scale_b,
    scale_recipe_b,
    swizzle_a=None,
    swizzle_b=None,
    bias: MaybeTensor = None,
    output_dtype=taeda.bfloat16,
    contraction_dim=(),
    use_fast_accum: bool = False,
) -> Tensor:
    """(scale_a * mat_a) @ (scale_b * mat_b) + bias of narrow floats.

    Args:
        mat_a, mat_b (Tensor): 2-D, float8 or float4.
        scale_a, scale_b: a tensor or a list of them.
        scale_recipe_a, scale_recipe_b: `ScalingType` of each scale.
        swizzle_a, swizzle_b: `SwizzleType` of each scale.
        bias (Tensor): added to each row.
        output_dtype: dtype of the result.
        contraction_dim: dimensions that are summed over; () is the usual ones.
        use_fast_accum: allow narrower sums where the device has them.
    """
    first = _scaling(scale_a, scale_recipe_a, swizzle_a)
    second = _scaling(scale_b, scale_recipe_b, swizzle_b)
    how = (output_dtype, contraction_dim, use_fast_accum)
    return _scaled_mm_v2(mat_a, mat_b, *first, *second, bias, *how)


def scaled_grouped_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    scale_a,
    scale_recipe_a,
    scale_b,
    scale_recipe_b,
    swizzle_a=None,
    swizzle_b=None,
    bias: MaybeTensor = None,
    offs: MaybeTensor = None,
    output_dtype=taeda.bfloat16,
    contraction_dim=(),
    use_fast_accum: bool = False,
) -> Tensor:
    """`grouped_mm` of scaled narrow floats; arguments as it and `scaled_mm`."""
    first = _scaling(scale_a, scale_recipe_a, swizzle_a)
    second = _scaling(scale_b, scale_recipe_b, swizzle_b)
    how = (output_dtype, contraction_dim, use_fast_accum)
    return _scaled_grouped_mm_v2(mat_a, mat_b, *first, *second, offs, bias, *how)
