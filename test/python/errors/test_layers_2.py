"""Layers, losses and their functions: what they refuse (part 2)."""

from __future__ import annotations

import pytest
from refusals import cases, check_refused_as_by, check_refused_otherwise

TABLE = """
m.rms_norm(longs(2), (2,))  # "rms_norm" not implemented for 'Long'
m.rnn_tanh(ones(1, 1, 2), ones(1, 1, 2), [ones(2, 2)], True, 1, 0.0, False, False, \
False)\
  # rnn: expected 4 parameters per layer and direction for 1 of them, got 1
m.rnn_tanh(ones(1, 1, 3), ones(1, 1, 2), [ones(2, 2)] * 2, False, 1, 0.0, False, \
False, False)\
  # input.size(-1) must be equal to input_size. Expected 2, got 3
m.rnn_tanh(ones(1, 1, 2), ones(1, 2), [ones(2, 2)] * 2, False, 1, 0.0, False, False, \
False)\
  # rnn: expected 3-D hidden states, got [1, 2] f32
m.rnn_tanh(m.empty(0, 1, 2), ones(1, 1, 2), [ones(2, 2)] * 2, False, 1, 0.0, False, \
False, False)\
  # Expected sequence length to be larger than 0 in RNN
m.lstm(ones(1, 1, 2), [ones(1, 1, 2)], [ones(8, 2)] * 2, False, 1, 0.0, False, \
False, False)\
  # lstm expects two hidden states
m.rnn_tanh_cell(ones(2), ones(2), ones(2, 2), ones(2, 2))\
  # rnn cell: expected 2-D input and hidden state, got [2] f32 and [2] f32
m.rnn_tanh_cell(ones(2, 3), ones(2, 2), ones(2, 2), ones(2, 2))\
  # input has inconsistent input_size: got 3 expected 2
m.rnn_tanh_cell(ones(2, 2), ones(3, 2), ones(2, 2), ones(2, 2))\
  # Input batch size 2 doesn't match hidden0 batch size 3
m.rnn_tanh_cell(ones(2, 2), ones(2, 3), ones(2, 2), ones(2, 2))\
  # hidden0 has inconsistent hidden_size: got 3, expected 2
m._pad_packed_sequence(ones(3, 1), T([2, 1]), False, 0.0, 1)\
  # sequence in input, but got total_length=1 and max sequence length being 2
m._C._nn.im2col(ones(1, 1, 4, 4), (2,), (1, 1), (0, 0), (1, 1))\
  # It is expected kernel_size equals to 2, but got size 1
F.unfold(ones(1, 1, 4, 4), 0)  # kernel_size should be greater than zero, but got [0, 0]
F.unfold(ones(1, 1, 4, 4), 5)  # im2col: Given spatial size [4, 4], kernel_size=[5, 5],
F.unfold(ones(4, 4), 2)  # im2col: Expected 3D or 4D (batch mode) tensor, got [4, 4] f32
m._C._nn.col2im(ones(1, 4, 9), (4,), (2, 2), (1, 1), (0, 0), (1, 1))\
  # It is expected output_size equals to 2, but got size 1
F.fold(ones(9), (4, 4), 2)  # 2D or 3D (batch mode) tensor for input with possibly 0
F.fold(ones(1, 3, 9), (4, 4), 2)  # the product of kernel_size, but got input.size(1)=3
F.fold(ones(1, 4, 8), (4, 4), 2)  # Given output_size=[4, 4], kernel_size=[2, 2],
m.ops.aten.upsample_nearest2d_backward(ones(1, 1, 4, 4), [4, 4], [1, 1, 2])\
  # It is expected input_size equals to 4, but got size 3
m._C._nn.upsample_nearest2d(ones(1, 0, 2, 2), (4, 4))\
  # Non-empty 4D data tensor expected but got a tensor with sizes [1, 0, 2, 2]
m.ops.aten.upsample_nearest2d_backward(ones(1, 1, 3, 4), [4, 4], [1, 1, 2, 2])\
  # Expected grad_output to have the same shape as output; output has [1, 1, 4, 4]
m._C._nn.upsample_nearest2d(ones(1, 1, 2, 2), None, (2.0,))\
  # upsample: expected 2 factors for an input of rank 4, got 1 for [1, 1, 2, 2] f32
m.meshgrid()  # meshgrid expects a non-empty TensorList
m.meshgrid(ones(1, 1))  # Expected 0D or 1D tensor in the tensor list but got: [1, 1]
m.meshgrid(ones(1), doubles(1))  # torch.meshgrid expects all tensors to have the same
m.meshgrid(ones(1), m.empty(1, device='meta'))  # torch.meshgrid expects all tensors to
m.meshgrid(ones(1), ones(1), indexing='yx')  # torch.meshgrid: indexing must be one of
m.linalg.norm(longs(2, 2), 'fro')  # linalg.matrix_norm: Expected a floating point or
m.linalg.matrix_norm(ones(2, 2), 'fro', (0,))  # dim must be a 2-tuple. Got [0]
m.linalg.norm(ones(1, 1, 1), 2)  # not specified but ord is, the input must be 1D or 2D;
m.linalg.norm(ones(2), 'fro')  # linalg.norm: order fro needs a matrix or two dims, got
m.cosine_embedding_loss(ones(2, 2), ones(2, 2), ones(2, 2))\
  # 0D or 1D target tensor expected, multi-target not supported
m.cosine_embedding_loss(ones(2), ones(2, 2), ones(2))\
  # 1D target tensor expects 2D input tensors, but found inputs with sizes [2] and
F.binary_cross_entropy(2 * ones(2), ones(2))  # of input should be between 0 and 1
F.binary_cross_entropy(ones(2), doubles(2))  # binary_cross_entropy: Found dtype Double
F.smooth_l1_loss(ones(2), ones(2), beta=-1)  # smooth_l1_loss does not support negative
F.huber_loss(ones(2), ones(2), delta=0)  # support non-positive values for delta. Got 0
F.one_hot(ones(2))  # one_hot is only applicable to index tensor of type LongTensor, got
F.one_hot(m.empty(0, dtype=m.long))  # one_hot: Can not infer total number of classes
F.one_hot(T([-1]))  # one_hot: Class values must be non-negative, got -1
F.one_hot(T([0]), 0)  # one_hot: num_classes should be positive, got 0
F.one_hot(T([3]), 2)  # Class values must be smaller than num_classes, got 3 for 2
F.linear(T(1.0), ones(2, 2))  # to linear need to be at least 1D, but they are 0D and 2D
F.linear(ones(2), ones(2, 2, 2))  # linear: weight must have one or two dims, got [2, 2,
F.linear(ones(2, 2), doubles(2, 2))  # mat1 and mat2 must have the same dtype, but got
F.linear(ones(2, 2), ones(2, 2), doubles(2))  # mat2 must have the same dtype, but got
m.ops.aten.max_pool2d_with_indices_backward(ones(1, 2, 2), ones(1, 4, 4), [2, 2], \
[2, 2], [0, 0], [1, 1], False, longs(1, 1, 1))\
  # max_pool2d_backward: expected gradient of shape [1, 1, 1], got [1, 2, 2]
F.max_pool1d(ones(2), 1)  # max_pool1d: Expected 2D or 3D (batch mode) tensor with
m.adaptive_max_pool1d(ones(2), 1)  # adaptive_max_pool1d(): Expected 2D or 3D tensor,
F.multi_margin_loss(ones(2, 0), longs(2))  # optional 0-dim batch size, but got: [2, 0]
F.multi_margin_loss(ones(2, 2), ones(2))  # multi_margin_loss: expected scalar type Long
F.multi_margin_loss(ones(2, 2), longs(2), p=3)  # only p == 1 and p == 2 supported
F.multi_margin_loss(ones(2, 2), longs(2), weight=ones(3))\
  # inconsistent weight size, expected 2 but got [3]
F.multi_margin_loss(ones(2, 2), longs(2), weight=doubles(2))\
  # multi_margin_loss: expected weight of type Float, got Double
m.ops.aten.multilabel_margin_loss_backward(ones(()), ones(2), longs(2), 1, ones(3))\
  # multilabel_margin_loss_backward: expected is_target of size [2], got [3]
m.norm(ones(2), p='x')  # only valid string values are 'fro' and 'nuc', found x
F.l1_loss(ones(2), ones(2), reduction='x')  # x is not a valid value for reduction
F.nothing  # module 'taeda.nn.functional' has no attribute 'nothing'
F.hardtanh(ones(2), 1, -1)  # min_val cannot be greater than max_val
F.multi_head_attention_forward(ones(2), ones(2), ones(2), 4, 2, None, None, None, \
None, False, 0.0, ones(4, 4), None)\
  # query should be unbatched 2D or batched 3D tensor but received 1-D query tensor
F.multi_head_attention_forward(*[ones(2, 1, 4)] * 3, 4, 2, ones(12, 4), None, None, \
None, False, 0.0, ones(4, 4), None, attn_mask=ones(3, 3))\
  # The shape of the 2D attn_mask is taeda.Size([3, 3]), but should be (2, 2).
F.multi_head_attention_forward(*[ones(2, 1, 4)] * 3, 4, 2, ones(12, 4), None, None, \
None, False, 0.0, ones(4, 4), None, is_causal=True)\
  # Need attn_mask if specifying the is_causal hint: the hint only describes
F.dropout1d(ones(2, 2, 2, 2))  # dropout1d: Expected 2D or 3D input, but received a 4D
F.binary_cross_entropy(ones(2), ones(3))  # Using a target size (taeda.Size([3])) that
F.l1_loss(ones(2), ones(2), weight=ones(3))  # Weights and input must have the same
F.gaussian_nll_loss(ones(2), ones(2), -ones(2))  # var has negative entry/entries
F.gaussian_nll_loss(ones(2), ones(2), ones(2), reduction='x')\
  # x is not valid
F.gaussian_nll_loss(ones(2, 3), ones(2, 3), ones(2, 2))  # var is of incorrect size
F.binary_cross_entropy_with_logits(ones(2), ones(3))\
  # Target size (taeda.Size([3])) must be the same as input size (taeda.Size([2]))
F.margin_ranking_loss(ones(2), ones(2, 2), ones(2))\
  # input tensors should have same dimension but got sizes: input1: taeda.Size([2]),
F.multi_margin_loss(ones(2, 2), longs(2), weight=ones(2, 2))\
  # weight must be one-dimensional
F.triplet_margin_with_distance_loss(ones(2, 2), ones(2, 2), ones(2, 2), margin=0)\
  # margin must be greater than 0, got 0
F.triplet_margin_with_distance_loss(ones(2, 2), ones(2, 2), ones(2, 2), reduction='x')\
  # x is not a valid value for reduction
F.triplet_margin_with_distance_loss(ones(2), ones(2, 2), ones(2, 2))\
  # expected to have the same number of dimensions, but got: anchor 1D, positive 2D,
F.group_norm(ones(2), 1)  # Expected at least 2 dimensions for input tensor but received
F.local_response_norm(ones(2, 2), 2)  # Expected 3D or higher dimensionality input (got
F.batch_norm(ones(2, 3), None, None, training=True, eps=0)\
  # batch_norm eps must be positive during training, but got 0
F.batch_norm(ones(2, 3), ones(3), ones(3), eps=-1)  # must be non-negative, but got -1
F.instance_norm(ones(1, 2, 1))  # when training, got input size taeda.Size([1, 2, 1])
F.max_unpool2d(ones(1, 1, 2, 2), longs(1, 1, 2, 2), 2, output_size=(4,))\
  # should be a sequence containing 2 or 4 elements, but it has a length of '1'
F.max_unpool2d(ones(1, 1, 2, 2), longs(1, 1, 2, 2), 2, output_size=(-1, 4))\
  # invalid output_size "(-1, 4)" (dim 0 must be between 2 and 6)
F.fractional_max_pool2d(ones(1, 4, 4), 2)  # fractional_max_pool2d requires specifying
F.fractional_max_pool2d(ones(1, 4, 4), 2, output_ratio=(0.5, 0.5, 0.5))\
  # be a single Int or tuple of Ints. It takes one or 2, got (0.5, 0.5, 0.5)
F.embedding_bag(longs(2, 2), ones(2, 2), per_sample_weights=ones(2, 2), mode='mean')\
  # per_sample_weights is only supported for mode='sum' (got mode='mean')
F.embedding_bag(longs(2, 2), ones(2, 2), per_sample_weights=ones(3, 2), mode='sum')\
  # (taeda.Size([3, 2])) must have the same shape as the input (taeda.Size([2, 2]))
F.embedding_bag(longs(2, 2), ones(2))  # be a 2D Tensor, but got Tensor of dimension 1
F.embedding_bag(longs(2, 2), ones(2, 2), mode='x')  # mode has to be one of sum, mean or
F.embedding_bag(longs(2, 2), ones(2, 2), mode='max', scale_grad_by_freq=True)\
  # max mode does not support scaling the gradient by frequency
F.embedding_bag(longs(2, 2), ones(2, 2), mode='max', sparse=True)\
  # max mode does not support sparse weights
F.embedding(longs(2), ones(2, 2), padding_idx=5)  # Padding_idx must be within
F.embedding_bag(longs(2, 2), ones(2, 2), T([0]))  # if input is 2D, then offsets has to
F.embedding_bag(longs(2, 2, 2), ones(2, 2))  # input has to be 1D or 2D Tensor, but got
F.embedding_bag(longs(2), ones(2, 2))  # offsets has to be a 1D Tensor but got None
F.embedding_bag(longs(2), ones(2, 2), longs(1, 1))  # offsets has to be a 1D Tensor
F.interpolate(ones(2, 2), 2)  # Input Error: Only 3D, 4D and 5D input Tensors supported
F.interpolate(ones(1, 1, 2, 2), (2, 2, 2))  # of (2, 2, 2). Please provide input tensor
F.interpolate(ones(1, 1, 2), 2, antialias=True)  # and lanczos modes and requires a 4-D
F.interpolate(ones(1, 1, 2, 2), 4, mode='lanczos')  # Lanczos mode requires
F.interpolate(ones(1, 1, 2, 2), 4, scale_factor=2)  # only one of size or scale_factor
F.interpolate(ones(1, 1, 2, 2))  # either size or scale_factor should be defined
F.interpolate(ones(1, 1, 2, 2), 4, mode='linear')  # 4D input, but linear mode needs 3D
F.interpolate(ones(1, 1, 2), 4, align_corners=True)\
  # align_corners option can only be set with the interpolating modes: linear |
F.interpolate(ones(1, 1, 2), (2.5,))  # int], but got size with types [<class 'float'>]
F.interpolate(ones(1, 1, 2), 4, recompute_scale_factor=True)\
  # recompute_scale_factor is not meaningful with an explicit size.
F.affine_grid(longs(1, 2, 3), (1, 1, 2, 2))  # floating point type, but got taeda.int64
F.affine_grid(ones(1, 2, 3), (1, 1, 2))  # transforms, respectively. Got size (1, 1, 2).
F.affine_grid(ones(1, 2, 4), (1, 1, 2, 2))  # batch of 2D affine matrices of shape Nx2x3
F.affine_grid(ones(1, 2, 3), (1, 1, 0, 2))  # positive output size. Got (1, 1, 0, 2)
F.grid_sample(ones(1, 1, 2, 2), ones(1, 2, 2, 2), mode='x')\
  # expected mode to be one of ['bilinear', 'nearest', 'bicubic'], but got: 'x'
F.linear_cross_entropy(ones(2, 2), ones(3), longs(2))\
  # expected linear_weight with dimensionality at least 2, got 1
F.linear_cross_entropy(ones(2, 2), ones(3, 4), longs(2))\
  # equal input and linear_weight last dimensions (in_features), got 2 and 4,
F.linear_cross_entropy(ones(2, 2), ones(3, 2), longs(2), linear_bias=ones(4))\
  # expected linear_bias shape (3,), got (4,)
F.linear_cross_entropy(ones(2), ones(3, 5, 2), longs(2))\
  # K-dimensional loss defined by linear_weight shape (3, 5, 2) requires batched
F.linear_cross_entropy(ones(2, 2), ones(3, 2), ones(2, 3), ignore_index=1)\
  # ignore_index cannot be specified when target contains probabilities
F.mse_loss(ones(2), ones(2), reduction='x', weight=ones(2))\
  # Invalid reduction mode: x. Expected one of 'none', 'mean', 'sum'.
F.max_unpool1d(ones(1, 1, 1), longs(1, 1, 1), 1, 1, 1, output_size=(-1,))\
  # must contain non-negative spatial dimensions, but got output_size[0]=-1
F.bilinear(ones(2, 3), ones(2, 2), ones(1, 2, 2))  # weight size: got 3 but expected 2
F.conv2d(ones(1, 2, 4, 4), ones(3, 1, 2, 2), groups=2)\
  # Given groups=2, expected weight to be divisible by 2 at dimension 0, but got
F.conv2d(ones(1, 1, 4, 4), ones(1, 1, 2, 2), ones(2))\
  # Given weight of size [1, 1, 2, 2], expected bias to be 1-dimensional with 1
m.ctc_loss(ones(2, 1, 3), longs(1, 2), [3], [2])  # value at most 2, but got value 3
m.ctc_loss(ones(2, 1, 3), longs(1, 2), [2], [2], blank=3)\
  # blank must be in label range, got 3 with 3 classes
m.embedding_renorm_(ones(2, 2), ones(2), 1.0, 2.0)  # for argument #1 'indices' to have
m.embedding_bag(ones(2, 2), longs(2), T([1]))  # start from position 0. However, got 1
F.grid_sample(ones(1, 1, 2, 2), ones(1, 2, 2, 3))  # but got grid with sizes [1, 2, 2,
F.grid_sample(ones(1, 1, 2, 2), ones(2, 2, 2, 2))  # 1, 2, 2] and grid with sizes [2, 2,
F.grid_sample(ones(1, 1, 2, 2, 2), ones(1, 2, 2, 2, 3), mode='bicubic')\
  # grid_sampler(): bicubic interpolation only supports 4D input
F.pdist(ones(2, 2), -1)  # pdist only supports non-negative p values, got -1
F.max_pool2d(ones(1, 1, 4, 4), 0)  # max_pool2d: stride should not be zero
F.max_pool2d(ones(1, 1, 4, 4), 2, padding=2)  # got pad=2, kernel_size=2 and dilation=1
m.normal(0.0, -1.0, (2,))  # normal expects std >= 0.0, but found std -1
m._C._nn.upsample_nearest2d(ones(1, 1, 2, 2), (0, 4))\
  # Input and output sizes should be greater than 0, but got input [2, 2] and output
m.linalg.matrix_norm(ones(2, 2), 'x')  # linalg.matrix_norm: Order x not supported.
F.multi_margin_loss(T(1.0), T([0, 1]))  # size). Expected target size [1], but got [2].
F.multi_margin_loss(ones(2, 2), T([0, 5]))  # target out of range: 5 with 2 classes
F.multilabel_margin_loss(ones(2, 2), longs(2, 3))  # size: [2, 3] for input of size: [2,
F.cross_entropy(ones(2, 3), ones(2, 3), ones(2))  # all 3 classes or no classes but got
m.ctc_loss(ones(2), longs(2), [2], [2])  # log_probs [steps, batch, classes], got [2, 1]
m.ops.aten._embedding_bag_per_sample_weights_backward(ones(1, 2), ones(2, 2), \
longs(2), T([0]), longs(2), 1)\
  # embedding_bag_backward: per_sample_weights only supported for mode='sum'
m.native_group_norm(ones(1, 2, 2), None, None, 1, 2, 2, 0, 1e-5)\
  # Expected num groups to be greater than 0, got 0
_C._nn.multi_margin_loss(ones(2, 2), longs(2), 3)  # p == 1 and p == 2 supported, got p
_C._nn.glu(T(1.0))  # glu: glu does not support 0-dimensional tensors
_C._nn.max_pool2d_with_indices(ones(1, 1, 4, 4), (2, -1))\
  # max_pool2d: kernel size should be greater than zero, but got -1
F.unfold(ones(1, 0, 4, 4), 2)  # im2col: Expected 3D or 4D (batch mode) tensor with
"""

OWN = """
m.ops.aten._pdist_forward(ones(2, 2, 2))\
  # RuntimeError: _pdist_forward: expected a matrix, got [2, 2, 2]
m.ops.aten._pdist_backward(ones(3), ones(2, 2), 2.0, ones(1))\
  # RuntimeError: _pdist_backward: expected grad with 1 elements
m.ctc_loss(ones(2, 1, 3), ones(1, 2), [2], [2])\
  # RuntimeError: ctc_loss: expected targets of type Long or Int, got Float
m.embedding_bag(ones(2, 2), longs(2, 2), T([0]))\
  # RuntimeError: 1D or 2D Tensor, the latter in nn.functional alone, but got Tensor of
m._foreach_norm([ones(2)], -inf)\
  # NotImplementedError: _foreach_norm: order -inf is not implemented
F.fractional_max_pool2d(ones(1, 4, 4), (2, 0), output_size=0)\
  # RuntimeError: fractional_max_pool2d(): kernel_size must be positive, got [2, 0]
F.pad(ones(1, 1, 2), (-2, 1), mode='circular')\
  # RuntimeError: negative padding [-2, 1] leaves nothing to repeat of dimension 2
F.adaptive_avg_pool2d(ones(1, 0, 4), 1)\
  # RuntimeError: size for non-batch dimensions, but input has sizes [1, 0, 4] with
m.rnn_tanh(ones(1, 2), ones(1, 1, 2), [ones(2, 2)] * 2, False, 1, 0.0, False, False, \
False)\
  # RuntimeError: rnn: expected 3-D input, got [1, 2] f32
m.rnn_tanh(ones(1, 1, 2), ones(1, 3, 2), [ones(2, 2)] * 2, False, 1, 0.0, False, \
False, False)\
  # RuntimeError: Expected hidden size (1, 1, 2), got [1, 3, 2]
m.ops.aten._embedding_bag_dense_backward(ones(2), longs(2), longs(1), longs(1), \
longs(1), 2, False, 0, None)\
  # RuntimeError: a gradient [bags, width] and a bag for every index, got [2] f32
m.grid_sampler_2d(ones(1, 1, 2, 2), ones(1, 2, 2, 2), 5, 0, False)\
  # RuntimeError: grid_sampler(): unknown mode 5 or padding mode 0
m.rnn_tanh(ones(1, 1, 2, dtype=m.complex64), complexes(1, 1, 2), [complexes(2, 2)] * \
2, False, 1, 0.0, False, False, False)\
  # NotImplementedError: rnn: not implemented for 'ComplexFloat'
"""


@pytest.mark.parametrize(("call", "phrase"), cases(TABLE))
def test_refused_as_by_pytorch(torch, call, phrase) -> None:
    check_refused_as_by(torch, call, phrase)


@pytest.mark.parametrize(("call", "phrase"), cases(OWN))
def test_refused_in_our_own_way(torch, call, phrase) -> None:
    check_refused_otherwise(torch, call, phrase)
