"""Linear layers of half precision or 8-bit weights, by PyTorch's old names.

A packed weight is a tensor of bytes, for these functions alone. Of 8 bits the input is
rounded too, to 0..255 by its own range, and products are sums of integers: exact, as
long as there are fewer than 2**24 / 2**15 of them, and rounded like float32 beyond.
"""

from __future__ import annotations

import taeda

__all__ = [
    "fbgemm_linear_fp16_weight",
    "fbgemm_linear_fp16_weight_fp32_activation",
    "fbgemm_linear_int8_weight",
    "fbgemm_linear_int8_weight_fp32_activation",
    "fbgemm_linear_quantize_weight",
    "fbgemm_pack_gemm_matrix_fp16",
    "fbgemm_pack_quantized_matrix",
]

_LARGEST = 65504.0  # of half precision


def _check_float(name: str, tensor) -> None:
    if tensor.dtype != taeda.float32:
        raise RuntimeError(
            f"{name}: expected scalar type Float but found {tensor.dtype}"
        )


def _packed(matrix) -> taeda.Tensor:
    """Sizes and elements as bytes."""
    sizes = taeda.tensor(matrix.shape, dtype=taeda.int64).view(taeda.uint8)
    return taeda.cat([sizes, matrix.contiguous().view(-1).view(taeda.uint8)])


def _unpacked(name: str, packed, dtype) -> taeda.Tensor:
    if packed.dtype != taeda.uint8 or packed.numel() < 16:
        raise RuntimeError(f"{name}: expected a packed weight, got {packed.dtype}")
    sizes = packed[:16].clone().view(taeda.int64).tolist()
    return packed[16:].clone().view(dtype).view(sizes)


def fbgemm_pack_gemm_matrix_fp16(input):
    """A weight in half precision, for `fbgemm_linear_fp16_weight`.

    Args:
        input (Tensor): (out, in), float32. What is too large for half precision becomes
            its largest number.
    """
    _check_float("fbgemm_pack_gemm_matrix_fp16", input)
    return _packed(input.clamp(-_LARGEST, _LARGEST).half())


def fbgemm_linear_fp16_weight_fp32_activation(input, packed_weight, bias, output=None):
    """input @ weight.T + bias, summed in float32.

    Args:
        input (Tensor): (*, in), float32.
        packed_weight (Tensor): of `fbgemm_pack_gemm_matrix_fp16`.
        bias (Tensor or None): (out).
        output (Tensor): gets the result, if given.
    """
    name = "fbgemm_linear_fp16_weight_fp32_activation"
    _check_float(name, input)
    weight = _unpacked(name, packed_weight, taeda.float16).float()
    result = taeda.nn.functional.linear(input, weight, bias)
    if output is None:
        return result
    return output.resize_(result.shape).copy_(result)


def fbgemm_linear_fp16_weight(input, packed_weight, bias, output=None):
    """The same, with a bias."""
    return fbgemm_linear_fp16_weight_fp32_activation(input, packed_weight, bias, output)


def _range(x, low: int, high: int) -> tuple[float, int]:
    """The scale and zero point by which x's values fill low..high."""
    from taeda._fake_quantize import _parameters

    scale, zero = _parameters(x.min(), x.max(), low, high, False)
    return scale.item(), int(zero.item())


def fbgemm_linear_quantize_weight(input) -> tuple:
    """A weight in 8 bits.

    Args:
        input (Tensor): (out, in), float32.

    Returns:
        The integers (int8), their sums by row less what the zero point adds to them
        (int32), the scale and the zero point.
    """
    _check_float("fbgemm_linear_quantize_weight", input)
    scale, zero = _range(input, -128, 127)
    unit = 1.0 / taeda.tensor(scale)
    q = (input * unit).add(zero).round().clamp(-128, 127).to(taeda.int8)
    sums = q.sum(1, dtype=taeda.int32) - zero * input.size(1)
    return q, sums.to(taeda.int32), scale, zero


def fbgemm_pack_quantized_matrix(input, K=None, N=None):
    """An 8-bit weight for `fbgemm_linear_int8_weight`.

    Args:
        input (Tensor): (N, K), int8.
        K, N: its sizes, which it has anyway.

    Raises:
        RuntimeError: other sizes.
    """
    if K is not None and tuple(input.shape) != (N, K):
        raise RuntimeError(
            f"fbgemm_pack_quantized_matrix: expected ({N}, {K}), got "
            f"{tuple(input.shape)}"
        )
    return _packed(input)


def fbgemm_linear_int8_weight_fp32_activation(
    input, weight, packed, col_offsets, weight_scale, weight_zero_point, bias
):
    """input @ weight.T + bias in 8-bit integers, for a float32 input.

    Args:
        input (Tensor): (*, in), float32.
        weight (Tensor): (out, in), int8; its sizes are read.
        packed (Tensor): of `fbgemm_pack_quantized_matrix`.
        col_offsets, weight_scale, weight_zero_point: of
            `fbgemm_linear_quantize_weight`.
        bias (Tensor): (out).
    """
    name = "fbgemm_linear_int8_weight_fp32_activation"
    _check_float(name, input)
    scale, zero = _range(input, 0, 255)
    unit = 1.0 / taeda.tensor(scale)
    q = (input * unit).add(zero).round().clamp(0, 255)
    kernel = _unpacked(name, packed, taeda.int8).float()
    # sum (q - zero)(w - weight_zero) = sum (q - zero) w - weight_zero sum (q - zero)
    centred = q - zero
    product = centred @ kernel.mT
    product -= float(weight_zero_point) * centred.sum(-1, keepdim=True)
    return product * (scale * float(weight_scale)) + bias


def fbgemm_linear_int8_weight(
    input, weight, packed, col_offsets, weight_scale, weight_zero_point, bias
):
    """The same, under an older name."""
    return fbgemm_linear_int8_weight_fp32_activation(
        input, weight, packed, col_offsets, weight_scale, weight_zero_point, bias
    )
