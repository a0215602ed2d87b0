"""Layers, losses and their functions: what they refuse (part 1)."""

from __future__ import annotations

import pytest
from refusals import cases, check_refused_as_by

TABLE = """
F.gelu(ones(2), approximate='x')  # argument must be either none or tanh. Got 'x'
F.hardtanh(bools(2))  # hardtanh: Bool inputs not supported for hardtanh
F.hardtanh(ones(2, dtype=m.uint8), -1, 1)  # unsigned type with negative limits [-1, 1]
F.softshrink(ones(2), -1)  # for input dtype Float, but found -1
F.softshrink(ones(2, dtype=m.half), 1e5)\
  # lambda must be in range [0, 65504] for input dtype Half, but found 100000
F.rrelu(ones(2), inf, 0.3)  # rrelu: lower bound must be finite, got inf
F.rrelu(ones(2), 0.1, nan)  # rrelu: upper bound must be finite, got nan
F.batch_norm(doubles(2, 1, 4), None, None, ones(1), training=True)  # mixed dtype
F.instance_norm(ones(2, 1, 4), weight=doubles(1))  # mixed dtype
F.group_norm(ones(2, 1, 4).half(), 1, doubles(1), doubles(1))  # mixed dtype
F.layer_norm(doubles(2, 4), (4,), ones(4), ones(4))  # mixed dtype
F.layer_norm(ones(2, 4), (4,), None, ones(4).bfloat16())  # mixed dtype
m._pad_packed_sequence(ones(3, 4), m.tensor([2.0, 1.0]), False, 0.0, 3)\
  # 'lengths' argument should be a 1D CPU int64 tensor
m.ops.aten.rnn_tanh.data(ones(3, 4), m.tensor([-1, 4]), ones(1, 2, 4), \
[ones(4, 4)] * 2, False, 1, 0.0, False, False)\
  # lengths and batch sizes are not negative, got -1
m.rnn_tanh_cell(ones(2, 3), ones(2, 4), ones(5, 3), ones(4, 4))  # weight_ih
m.gru_cell(ones(2, 3), ones(2, 4), ones(12, 3), ones(13, 4))\
  # weight_hh first dim must be 3 * hidden_size = 12, but got 13
F.grid_sample(ones(1, 2, 2), ones(1, 1, 1, 2), align_corners=False)\
  # expected grid to have size 1 in last dimension
F.max_pool3d(ones(1, 1, 4, 4, 4), 2**63 - 5)\
  # value cannot be converted to type int without overflow
F.avg_pool2d(ones(1, 4, 4), 2**40)\
  # value cannot be converted to type int without overflow
F.max_unpool3d(ones(1, 1, 1, 1), longs(1, 1, 1, 1), ())  # There should be exactly
F.celu(ones(2), 0)  # celu: ZeroDivisionError: alpha cannot be 0 for CELU
F.scaled_dot_product_attention(ones(2, 2), doubles(2, 2), ones(2, 2))\
  # Expected query, key, and value to have the same dtype, but got query.dtype:
F.scaled_dot_product_attention(ones(2), ones(2), ones(2))\
  # query, key, and value to all be  at least 2 dimensional, but got query.dim: 1
F.scaled_dot_product_attention(ones(2, 2), ones(2, 2), ones(2, 2), ones(2, 2), \
is_causal=True)\
  # scaled_dot_product_attention: Explicit attn_mask should not be set when
F.scaled_dot_product_attention(ones(2, 2), ones(2, 2), ones(2, 2), longs(2, 2))\
  # Expected attn_mask dtype to be bool or float or to match query dtype, but got
F.scaled_dot_product_attention(ones(1, 3, 2, 2), ones(1, 2, 2, 2), ones(1, 2, 2, 2), \
enable_gqa=True)\
  # of heads in key and value must divide the number of heads in query, got 2 and 3
m.ops.aten.avg_pool2d_backward(ones(1, 1, 2, 2), ones(1, 1, 2, 2), [2, 2], [2, 2], \
[0, 0], False, True, None)\
  # avg_pool2d_backward: expected gradient of shape [1, 1, 1, 1], got [1, 1, 2, 2]
F.avg_pool2d(ones(1, 1, 2, 2), 2, divisor_override=0)\
  # avg_pool2d: divisor must be not zero
F.avg_pool1d(ones(2), 1)  # Expected 2 to 3 dimensions, but got 1-dimensional tensor for
F.batch_norm(ones(2, 3), ones(2), ones(3))  # batch_norm: running_mean should contain 3
F.batch_norm(ones(2), None, None, training=True)  # at least 2 dims, got input [2] f32
m.batch_norm(ones(2, 3), None, None, None, None, False, 0.1, 1e-5, False)\
  # batch_norm: Expected running_mean and running_var to be defined when training is
F.bilinear(ones(2), ones(2, 2), ones(1, 2, 2))  # dimensions do not match: got 1 and 2
F.bilinear(ones(2, 2), ones(2, 2), ones(2, 2))  # weight must have 3 dimensions, got [2,
F.bilinear(ones(2, 2), ones(3, 2), ones(1, 2, 2))  # do not match at dim 0: got 2 and 3
F.bilinear(ones(2, 2), ones(2, 3), ones(1, 2, 2))  # weight size: got 3 but expected 2
F.bilinear(ones(2, 2), ones(2, 2), ones(1, 2, 2), ones(3))\
  # bilinear(): bias size does not match weight size: got [3] but expected 1
m.conv_tbc(ones(2, 2), ones(1, 2, 2), ones(2))  # time, batch, in_channel, got [2, 2]
m.conv_tbc(ones(2, 2, 2), ones(2, 2), ones(2))  # in_channels, out_channels, got [2, 2]
m.conv_tbc(ones(2, 2, 2), ones(1, 2, 2), ones(2, 2))\
  # conv_tbc: Bias must be 1-D, got [2, 2] f32
m.conv_tbc(ones(2, 2, 3), ones(1, 2, 2), ones(2))  # in the weight tensor: [2, 2, 3] f32
m.conv_tbc(ones(2, 2, 2), ones(1, 2, 2), ones(3))  # (output channels), got [3] f32 and
F.conv2d(ones(1, 1, 4, 4), ones(1, 1, 2, 2), stride=(1, 1, 1))\
  # or a list of 2 values to match the convolution dimensions, but got stride=[1, 1,
F.conv_transpose2d(ones(1, 2, 4, 4), ones(3, 1, 2, 2))\
  # Given transposed=1, weight of size [3, 1, 2, 2], expected input[1, 2, 4, 4] to
F.conv_transpose2d(ones(1, 2, 4, 4), ones(2, 1, 2, 2), output_padding=2)\
  # must be smaller than either stride or dilation, but got output_padding [2, 2],
m.convolution(ones(1, 1), ones(1, 1), None, [1], [0], [1], False, [0], 1)\
  # convolution: weight should have at least three dimensions, got [1, 1] f32
F.conv2d(ones(1, 1, 4, 4), ones(1, 1, 2, 2), groups=0)\
  # convolution: non-positive groups is not supported, expected groups to be greater
F.conv1d(ones(1, 1, 4), ones(1, 1, 2), padding=2**63 - 5)\
  # Given padding=9223372036854775803 at dimension 0 , expected padding to be at mo
F.conv2d(ones(1, 1, 4, 4), ones(1, 1, 2, 2), padding=-1)\
  # negative padding is not supported
F.conv_transpose2d(ones(1, 1, 4, 4), ones(1, 1, 2, 2), output_padding=-1)\
  # negative output_padding is not supported
F.conv2d(ones(1, 1, 4, 4), ones(1, 1, 2, 2), dilation=0)\
  # convolution: dilation should be greater than zero, got [0, 0]
m.convolution(ones(1, 1, 4), ones(1, 1, 2, 2), None, [1], [0], [1], False, [0], 1)\
  # Expected 4-dimensional input for 4-dimensional weight [1, 1, 2, 2], but got
m.convolution(ones(1, 1, 1, 1, 1, 1), ones(1, 1, 1, 1, 1, 1), None, [1], [0], [1], \
False, [0], 1)\
  # convolution: at most 3 spatial dims, got 4
F.conv2d(ones(1, 1, 4, 4), doubles(1, 1, 2, 2))  # (Float) and weight type (Double)
F.conv2d(ones(1, 1, 4, 4), ones(1, 1, 0, 2))  # not supported, got weight of size [1, 1,
F.conv2d(ones(1, 2, 4, 4), ones(1, 1, 2, 2), groups=2)\
  # Given groups=2, expected weight to be at least 2 at dimension 0, but got weight
F.conv2d(ones(1, 1, 4, 4), ones(1, 1, 2, 2), doubles(1))\
  # Input type (Float) and bias type (Double) should be the same
F.conv_transpose2d(ones(1, 1, 1, 1), ones(1, 1, 1, 1), padding=1)\
  # size per channel: (1 x 1). Calculated output size per channel is too small: -1
F.conv2d(ones(4, 4), ones(1, 1, 2, 2))  # or 4D (batched) input to conv2d, but got input
F.conv1d(ones(1, 4), ones(1, 4), padding='same')  # weight should have at least three
F.conv2d(ones(1, 1, 4, 4), ones(1, 1, 2, 2), stride=2, padding='same')\
  # padding='same' is not supported for strided convolutions
F.conv2d(ones(1, 1, 4, 4), ones(1, 1, 2, 2), padding='full')\
  # Invalid padding string: 'full'
F.cross_entropy(ones(2, 3), longs(2), ones(2))  # 3 classes or no classes but got weight
F.cross_entropy(ones(2, 3), longs(2), label_smoothing=2)\
  # label_smoothing must be between 0.0 and 1.0. Got: 2
F.cross_entropy(ones(2, 3), longs(2, 3))  # target with class probabilities, got Long
F.cross_entropy(ones(2, 3), ones(2, 3), ignore_index=1)\
  # ignore_index is not supported for floating point target
m.ctc_loss(ones(0, 1, 3), longs(1, 2), [0], [2])  # ctc_loss: log_probs tensor mu
m.ctc_loss(ones(2, 1, 3), longs(1, 2), [2, 2], [2])\
  # ctc_loss: input_lengths must be of size batch_size (1), got [2, 2]
m.ctc_loss(ones(2, 1, 3), longs(1, 2), [2], [2, 2])\
  # ctc_loss: target_lengths must be of size batch_size (1), got [2, 2]
m.ctc_loss(ones(2, 1, 3), longs(1, 2), [2], [-1])  # value at least 0, but got value -1
m.ctc_loss(ones(2, 1, 3), longs(1), [2], [2])  # size 2 at dimension 0, but got size [1]
m.ctc_loss(ones(2, 1, 3), longs(2, 2), [2], [2])  # [1, at least 2], but got size [2, 2]
m.ctc_loss(ones(2, 1, 3), longs(1, 2), ones(1), longs(1))\
  # input_lengths must be integral
F.cosine_similarity(ones(2), ones(2), dim=0, eps=-1.0)  # eps must be non-negative, got
F.cosine_similarity(longs(2), longs(2), dim=0)  # expected common dtype to be floating
F.triplet_margin_loss(ones(2), ones(2, 2), ones(2))\
  # expected to have the same number of dimensions, but got: anchor 1D, positive 2D,
m.dropout(ones(2), 2, True)  # dropout probability has to be between 0 and 1, but got 2
m.feature_dropout(ones(2), 0.5, True)  # Feature dropout requires at least 2 dimensions
F.embedding(longs(2), ones(2))  # 'weight' must be 2-D, got [2] f32
m.embedding_renorm_(ones(2), longs(2), 1.0, 2.0)  # embedding_renorm_: 'self' must be
F.embedding_bag(ones(2, 2), ones(2, 2))  # expected indices of type Long or Int, got
m.embedding_bag(ones(2, 2), longs(2), m.zeros(0).long(), include_last_offset=True)\
  # embedding_bag: include_last_offset: number of offsets should be at least 1
m.embedding_bag(ones(2, 2), longs(2), T([0]), mode=1, per_sample_weights=ones(2))\
  # was not None. per_sample_weights is only supported for mode='sum' (got mode=1).
m.embedding_bag(ones(2, 2), longs(2), T([0]), per_sample_weights=doubles(2))\
  # per_sample_weights to have the same type as weight, Float, got Double
m.embedding_bag(ones(2, 2), longs(2), T([0]), per_sample_weights=ones(3))\
  # embedding_bag: expected per_sample_weights of size [2], got [3]
m.embedding_bag(ones(2, 2), longs(2), T([0, 5]))  # length(2) but got offsets[-1] of 5
m.embedding_bag(ones(2), longs(2), T([0]))  # weight has to be a 2D Tensor, but got [2]
m.embedding_bag(ones(2, 2), longs(2), T([0]), mode=3)\
  # embedding_bag: mode must be 0, 1 or 2, got 3
m._foreach_norm([])  # Tensor list must have at least one tensor.
m._foreach_norm([longs(2)])\
  # _foreach_norm: expected floating-point or complex tensors, got Long
F.fractional_max_pool2d(ones(1, 4, 4), (2, 2, 2), output_size=2)\
  # fractional_max_pool2d: kernel_size must either be a single Int or tuple of Ints
F.fractional_max_pool2d(ones(1, 4, 4), 2, output_size=5)\
  # fractional_max_pool2d(): pool height 2 too large relative to input height 4
F.fractional_max_pool2d(ones(1, 4, 4), 2, output_size=2, _random_samples=ones(1, 2, \
2))\
  # fractional_max_pool2d: Expect _random_samples of shape [1, 1, 2], got [1, 2, 2]
F.fractional_max_pool2d(ones(1, 4, 4), 2, output_size=2, _random_samples=doubles(1, \
1, 2))\
  # fractional_max_pool2d: Expect _random_samples to have the same dtype as input,
F.max_unpool2d(ones(1, 1, 2, 2), ones(1, 1, 2, 2), 2)\
  # elements in indices should be type int64 but got: Float
m._C._nn.max_unpool2d(ones(1, 1, 2, 2), longs(1, 1, 2, 2), (4,))\
  # max_unpool2d: There should be exactly 2 elements in output_size, but got 1
m._C._nn.max_unpool2d(ones(2, 2), longs(2, 2), (4, 4))\
  # max_unpool2d: Input should be a 3d or 4d Tensor, but got a tensor with dim 2
m._C._nn.max_unpool2d(ones(1, 1, 2, 2), longs(1, 1, 2, 3), (4, 4))\
  # Expected shape of indices to be same as that of the input tensor ([1, 1, 2, 2])
m._C._nn.max_unpool2d(ones(1, 1, 0, 2), longs(1, 1, 0, 2), (4, 4))\
  # Expected input to have non-zero size for non-batch dimensions, but got [1, 1, 0,
m._C._nn.max_unpool3d(ones(1, 1, 2, 2, 2), longs(1, 1, 2, 2, 2), (4, 4, 4), (2, 2), \
(0, 0, 0))\
  # max_unpool3d: stride and padding should have 3 elements, got [2, 2] and [0, 0,
m._C._nn.max_unpool3d(ones(1, 1, 2, 2, 2), longs(1, 1, 2, 2, 2), (4, 4, 4), (2, 2, \
0), (0, 0, 0))\
  # max_unpool3d: strides should be greater than zero, but got stride: [2, 2, 0]
F.grid_sample(ones(1, 1, 2, 2), ones(1, 2, 2, 2, 3))\
  # expected grid to have size 2 in last dimension
F.grid_sample(ones(1, 1, 0, 2), ones(1, 2, 2, 2))  # sizes [1, 1, 0, 2] with dimension 2
F.grid_sample(ones(1, 1, 2, 2), doubles(1, 2, 2, 2))\
  # grid_sampler(): expected input and grid of the same dtype, but got Float and
m.affine_grid_generator(ones(1, 2, 3), (1, 1, 2), False)\
  # AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs, got size [1,
F.group_norm(ones(2, 3), 2)  # be divisible by num_groups, but got input of shape [2, 3]
F.group_norm(ones(2, 4), 2, ones(3))  # got weight of shape [3] and input of shape [2,
m.group_norm(ones(2), 1)  # group_norm: Expected at least 2 dimensions for input tensor
m.instance_norm(ones(1, 2, 3), None, None, None, None, False, 0.1, 1e-5, False)\
  # Expected running_mean and running_var to be defined when use_input_stats is
m.instance_norm(ones(2), None, None, None, None, True, 0.1, 1e-5, False)\
  # instance_norm: expected at least 2 dims, got [2] f32
F.nll_loss(ones(2, 3), ones(2))  # expected target dtype to be Long or Byte, but got
F.nll_loss(ones(2, 3), longs(2), doubles(3))  # nll_loss_forward: expected scalar type
m._C._nn.nll_loss(ones(2, 3, 4), longs(2))  # input tensor should be 1D or 2D, got [2,
m._C._nn.nll_loss(ones(2, 3), longs(2, 1))  # 0D or 1D target tensor expected,
m._C._nn.nll_loss(ones(3), longs(2))  # For 1D input, 1D target must have size 1, but
m._C._nn.nll_loss(ones(2, 3), longs(3))  # size mismatch (got input: [2, 3], target:
m._C._nn.nll_loss2d(ones(1, 2, 3, 3), longs(1, 3))  # (3D tensors) but got targets of
m._C._nn.nll_loss2d(ones(1, 2, 3), longs(1, 3, 3))  # supported (4D tensors), but got
m._C._nn.nll_loss2d(ones(1, 2, 3, 3), longs(1, 3, 4))\
  # size mismatch (got input: [1, 2, 3, 3] , target: [1, 3, 4]
F.nll_loss(T(1.0), T(0))  # Expected 1 or more dimensions (got 0)
F.nll_loss(ones(1, 2, 3, 3, 3), longs(1, 3, 3, 4))  # Expected target size [1, 3, 3, 3],
F.glu(T(1.0))  # glu does not support scalars because halving size must be even
F.glu(ones(3))  # glu: Halving dimension must be even, but dimension 0 is size 3
F.layer_norm(ones(2), ())  # to be at least 1-dimensional, i.e., containing at least one
F.layer_norm(ones(2, 3), (3,), ones(2))  # normalized_shape, but got weight of shape [2]
F.layer_norm(ones(2, 3), (3,), None, ones(2))  # of shape [2] and normalized_shape = [3]
F.pad(ones(2), (1,))  # Padding length must be divisible by 2
F.pad(ones(2), (1, 1, 1, 1))  # but got padding length 4 and input of dimension 1
F.pad(ones(2), (-3, 0))  # The input size 2, plus negative padding -3 and 0 resulted in
m._C._nn.reflection_pad1d(ones(2), (1, 1))  # reflection_pad1d: Expected 2D or 3D (batch
m._C._nn.reflection_pad1d(ones(1, 2), (1, 1, 1))  # size is expected to be 2, but got: 3
F.pad(ones(1, 2), (2, 1), mode='reflect')  # input dimension, but got: padding (2, 1) at
F.pad(ones(1, 2), (-1, -1), mode='reflect')  # input (size: 2) is too small. Calculated
m._C._nn._pad_circular(ones(2, 2, 2), (1, 1, 1, 1, 1, 1))\
  # 1 or 2 non-padded dimensions, which would be equivalent to padding of length 2
F.pad(ones(1, 2), (3, 1), mode='circular')  # Padding value causes wrapping around more
F.pad(ones(1, 1, 2), (-3, 0), mode='circular')  # Negative padding value is resulting in
F.pad(ones(1), (1, 1), mode="reflect")  # Padding size 2 is not supported for 1D input
F.pad(ones(1, 1, 2), (1, 1), mode='reflect', value=1)\
  # Padding mode "reflect" doesn't take in value argument
F.pad(ones(1, 1, 2), (1, 1), mode='mirror')  # Unrecognised padding mode mirror
F.pdist(ones(2))  # pdist only supports 2D tensors, got: 1D
F.pdist(longs(2, 2))  # pdist only supports floating-point dtypes, got Long
F.pixel_shuffle(ones(2, 2), 2)  # least 3 dimensions, but got input with 2 dimension(s)
F.pixel_shuffle(ones(4, 2, 2), 0)  # expects a positive upscale_factor, but got 0
F.pixel_shuffle(ones(3, 2, 2), 2)  # but input.size(-3)=3 is not divisible by 4
F.pixel_shuffle(ones(4, 2, 2), 2**32)  # upscale factor is too large
F.pixel_unshuffle(ones(1, 3, 2), 2)  # but input.size(-2)=3 is not divisible by 2
F.pixel_unshuffle(ones(1, 2, 3), 2)  # but input.size(-1)=3 is not divisible by 2
F.max_pool2d(ones(1, 1, 4, 4), (2, 2, 2))  # a single int, or a tuple of 2 ints, got [2,
F.avg_pool3d(ones(1, 0, 4, 4, 4), 2)  # length, but input has a shape of [1, 0, 4, 4, 4]
F.max_pool3d(ones(4, 4), 2)  # max_pool3d: non-empty 4D or 5D (batch mode) tensor
F.max_pool2d(ones(4, 4), 2)  # max_pool2d: Expected 3D or 4D (batch mode) tensor with
F.max_pool2d(ones(1, 1, 4, 4), 2, stride=0)  # max_pool2d: stride should not be zero
F.max_pool2d(ones(1, 1, 4, 4), 2, stride=-1)  # should be greater than zero, but got -1
F.max_pool2d(ones(1, 1, 4, 4), 2, dilation=0)  # should be greater than zero, but got 0
F.max_pool2d(ones(1, 1, 4, 4), 2, padding=-1)  # must be non-negative, but got pad: -1
m._C._nn.adaptive_avg_pool2d(ones(1, 4, 4), (2, 2, 2))\
  # adaptive_avg_pool2d: output_size must be 2 numbers, got [2, 2, 2]
F.adaptive_avg_pool2d(ones(4, 4), 2)  # adaptive_avg_pool2d(): Expected 3D or 4D tensor,
F.adaptive_avg_pool2d(ones(1, 4, 4), -1)  # than or equal to 0 but received [-1, -1]
m.adaptive_avg_pool1d(ones(1, 4), (1, 1))  # 'output_size' should contain one int (got
m.normal(ones(2), complexes(2))  # normal expects standard deviation to be non-complex
m.normal(ones(2), -ones(2))  # normal expects all elements of std >= 0.0
m.normal(ones(2), -1.0)  # normal expects std >= 0.0, but found std -1
"""


@pytest.mark.parametrize(("call", "phrase"), cases(TABLE))
def test_refused_as_by_pytorch(torch, call, phrase) -> None:
    check_refused_as_by(torch, call, phrase)
