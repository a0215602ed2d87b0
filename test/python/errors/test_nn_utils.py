"""Utilities and attention of nn: what they refuse."""

from __future__ import annotations

import pytest
from refusals import cases, check_refused_as_by, check_refused_otherwise

TABLE = """
utils.rnn.pad_sequence([T(1.0)])  # pad_sequence: expected (length, ...), got 0-d
flex.BlockMask.from_kv_blocks(ones(1), ones(1))  # BlockMask must have at least 2
bias.causal_upper_left(2, 2, 2)  # causal_upper_left only supports 2D tensors
F.scaled_dot_product_attention(ones(1, 1, 2, 2), ones(1, 1, 2, 2), ones(1, 1, 2, 2), \
bias.causal_upper_left(2, 2), is_causal=True)\
  # CausalBias should not be used with causal=True
flex.flex_attention(ones(2, 2), ones(2, 2), ones(2, 2))\
  # NYI: query, key, and value must be 4D tensors
flex.flex_attention(ones(1, 3, 16, 16), ones(1, 2, 16, 16), ones(1, 2, 16, 16), \
enable_gqa=True)\
  # of query heads to be a multiple of kv heads for GQA but got Hq=3 and Hkv=2.
flex.flex_attention(ones(2, 1, 16, 16), ones(3, 1, 16, 16), ones(3, 1, 16, 16))\
  # to have the same batch size, or non-none block_mask, but got Bq=2, and Bkv=3.
flex.flex_attention(ones(1, 1, 16, 16), ones(1, 1, 16, 16), ones(1, 1, 16, 16), \
return_lse=True, return_aux=flex.AuxRequest())\
  # Cannot specify both return_lse and return_aux
flex.flex_attention(ones(1, 1, 16, 16), ones(1, 1, 16, 16), ones(1, 1, 16, 16), \
block_mask=flex.create_block_mask(lambda b, h, q, k: q >= k, 1, 1, 512, 512, \
device='cpu'))\
  # block_mask was created for block_mask.shape=(1, 1, 512, 512) but got q_len=16
utils.fuse_conv_bn_eval(nn.Conv1d(1, 1, 1).eval(), nn.BatchNorm1d(1, \
track_running_stats=False).eval())\
  # Only support fusing batch norms with running statistics
utils.fuse_linear_bn_eval(nn.Linear(2, 2).eval(), nn.BatchNorm1d(3).eval())\
  # To fuse, linear.out_features == bn.num_features or bn.num_features == 1
utils.skip_init(int, 1)  # Expected a Module; got <class 'int'>
utils.skip_init(nn.ReLU)  # Module must support a 'device' arg to skip initialization
utils.parametrizations.orthogonal(nn.Linear(2, 2), 'x')\
  # out_features=2, bias=True)' has no parameter or buffer with name 'x'
utils.parametrizations.orthogonal(nn.Linear(2, 2), 'bias')\
  # Expected a matrix or batch of matrices. Got a tensor of 1 dimensions.
utils.parametrizations.orthogonal(nn.Linear(2, 2), orthogonal_map='x')\
  # orthogonal_map has to be one of ('matrix_exp', 'cayley', 'householder'). Got: x
utils.parametrizations.orthogonal(nn.Linear(2, 3, dtype=m.complex64), \
orthogonal_map='householder')\
  # The householder parametrization does not support complex tensors.
setattr(utils.parametrizations.orthogonal(nn.Linear(2, 3)), 'weight', ones(2, 2))\
  # of matrices of shape taeda.Size([3, 2]). Got a tensor of shape taeda.Size([2,
utils.parametrizations.spectral_norm(nn.Linear(2, 2), dim=5)\
  # Dimension out of range (expected to be in range of [-2, 1] but got 5)
utils.parametrizations.spectral_norm(nn.Linear(2, 2), n_power_iterations=0)\
  # Expected n_power_iterations to be positive, but got n_power_iterations=0
utils.parametrizations.weight_norm(nn.Linear(2, 2), 'x')\
  # Module 'Linear(in_features=2, out_features=2, bias=True)' does not have a
utils.parametrize.register_parametrization(nn.Linear(2, 2), 'weight', type('P', \
(nn.Module,), {'forward': lambda s, x: 1})())\
  # Registering a parametrization must return a tensor. Got int.
utils.parametrize.register_parametrization(nn.Linear(2, 2), 'weight', type('P', \
(nn.Module,), {'forward': lambda s, x: x, 'right_inverse': lambda s, x: 1})())\
  # 'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...).
utils.parametrize.register_parametrization(nn.Linear(2, 2), 'weight', type('P', \
(nn.Module,), {'forward': lambda s, x: x, 'right_inverse': lambda s, x: \
x.double()})())\
  # one tensor, it may not change the dtype: taeda.float32 became taeda.float64
utils.parametrize.register_parametrization(nn.Linear(2, 2), 'weight', type('P', \
(nn.Module,), {'forward': lambda s, x: x, 'right_inverse': lambda s, x: (1,)})())\
  # 'right_inverse' must return a Tensor or a Sequence of tensors. Got element 0 of
pickle.dumps(utils.parametrize.register_parametrization(nn.Linear(2, 2), 'weight', \
nn.ReLU()))\
  # Serialization of parametrized modules is only supported through state_dict()
utils.parametrize.ParametrizationList([], ones(2))  # ParametrizationList requires one
setattr(utils.parametrize.register_parametrization(nn.Linear(2, 2), 'weight', \
nn.ReLU()), 'weight', ones(2, 2))\
  # parametrization ReLU does not implement right_inverse.
(l := utils.parametrize.register_parametrization(nn.Linear(2, 2), 'weight', \
type('P', (nn.Module,), {'forward': lambda s, x, y: x, 'right_inverse': lambda s, x: \
(x, x)})()), utils.parametrize.remove_parametrizations(l, 'weight', \
leave_parametrized=False))\
  # Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is
(l := utils.parametrize.register_parametrization(nn.Linear(2, 2), 'weight', \
type('P', (nn.Module,), {'forward': lambda s, x, y: x, 'right_inverse': lambda s, x: \
(x, x)})()), setattr(l.parametrizations.weight[0].__class__, 'right_inverse', lambda \
s, x: (x,)), setattr(l, 'weight', ones(2, 2)))\
  # 'right_inverse' must return a sequence of tensors of length 2. Got tuple
(l := utils.parametrize.register_parametrization(nn.Linear(2, 2), 'weight', \
type('P', (nn.Module,), {'forward': lambda s, x, y: x, 'right_inverse': lambda s, x: \
(x, x)})()), setattr(l.parametrizations.weight[0].__class__, 'right_inverse', lambda \
s, x: (x, x.double())), setattr(l, 'weight', ones(2, 2)))\
  # `right_inverse` has dtype taeda.float64 while `original` has dtype taeda.float32
prune.l1_unstructured(nn.Linear(2, 2), 'weight', 1, importance_scores=ones(3))\
  # have the same shape as the pruned tensor, got taeda.Size([3]) vs taeda.Size([2,
prune.BasePruningMethod()  # Can't instantiate abstract class BasePruningMethod with
prune.global_unstructured(1, prune.L1Unstructured, amount=1)\
  # global_unstructured(): parameters is not an Iterable
prune.global_unstructured([(nn.Linear(2, 2), 'weight')], prune.L1Unstructured, \
importance_scores=1, amount=1)\
  # global_unstructured(): importance_scores must be of type dict
prune.PruningContainer().add_pruning_method(1)  # <class 'int'> is not a
(c := prune.PruningContainer(), setattr(c, '_tensor_name', 'a'), d := \
prune.Identity(), setattr(d, '_tensor_name', 'b'), c.add_pruning_method(d))\
  # Can only add pruning methods acting on the parameter named 'a' to
prune.random_unstructured(nn.Linear(2, 2), 'weight', 9)\
  # amount=9 should be smaller than the number of parameters to prune=4
prune.random_structured(nn.Linear(2, 2), 'bias', 1, 0)\
  # to multidimensional tensors. Found tensor of shape taeda.Size([2]) with 1 dims
prune.random_structured(nn.Linear(2, 2), 'weight', 1, 5)\
  # Invalid index 5 for tensor of size taeda.Size([2, 2])
prune.custom_from_mask(nn.Linear(2, 2), 'weight', ones(3))\
  # mask has shape taeda.Size([3]), the tensor taeda.Size([2, 2])
(l := nn.Linear(2, 2), [prune.random_structured(l, 'weight', 1, d) for d in (0, 7)])\
  # Index is out of bounds for a tensor of rank 2
(c := prune.PruningContainer(), setattr(c, '_tensor_name', 'a'), d := \
prune.Identity(), setattr(d, '_tensor_name', 'a'), setattr(d, 'PRUNING_TYPE', 'x'), \
c.add_pruning_method(d), c.compute_mask(ones(2, 2), ones(2, 2)))\
  # Unrecognized PRUNING_TYPE x
(l := prune.identity(nn.Linear(2, 2), 'weight'), h := \
next(iter(l._forward_pre_hooks.values())), l._forward_pre_hooks.__setitem__(99, h), \
prune.identity(l, 'weight'))\
  # hooks to the same tensor weight of module Linear(in_features=2, out_features=2,
utils.rnn.pad_sequence(1)  # for input sequences, but got arg of type: <class 'int'>
utils.rnn.PackedSequence(1)  # Expected data to be a list or tuple of length 2
utils.rnn.PackedSequence(ones(1), m.ones(1, device='meta'))\
  # batch_sizes should always be on CPU: use pack_sequence or pack_padded_sequence
utils.remove_spectral_norm(nn.Linear(2, 2))  # in Linear(in_features=2, out_features=2,
utils.spectral_norm(nn.Linear(2, 2), n_power_iterations=0)\
  # Expected n_power_iterations to be positive, but got n_power_iterations=0
utils.spectral_norm(nn.Linear(2, 2, bias=False), 'bias')\
  # `SpectralNorm` cannot be applied as parameter `bias` is None
utils.spectral_norm(utils.spectral_norm(nn.Linear(2, 2)))\
  # Cannot register two spectral_norm hooks on the same parameter weight
utils.remove_weight_norm(nn.Linear(2, 2))  # 'weight' not found in Linear(in_features=2,
utils.weight_norm(nn.LazyLinear(2))  # The module passed to `WeightNorm` can't have
utils.weight_norm(utils.weight_norm(nn.Linear(2, 2)))\
  # Cannot register two weight_norm hooks on the same parameter weight
utils.stateless.functional_call(nn.Linear(2, 2), {}, 1, kwargs=1)\
  # kwargs should be a dict, got int
(l := nn.Sequential(a := nn.Linear(2, 2), b := nn.Linear(2, 2)), setattr(a, \
'weight', b.weight), utils.stateless.functional_call(l, {'0.weight': ones(2, 2), \
'1.weight': ones(2, 2) * 2}, ones(2)))\
  # functional_call got multiple values for keys ['0.weight', '1.weight'], which are
flex.BlockMask((128, 128), longs(1, 1, 1), longs(1, 1, 1, 1), longs(1, 1, 1), None, \
None, None, None, None, (128, 128), None)\
  # full_kv_num_blocks and full_kv_indices must be both provided or omitted
prune.global_unstructured([(nn.Linear(2, 2), 'weight')], prune.RandomStructured, \
amount=1)\
  # `pruning_method`. Found method <class 'taeda.nn.utils.prune.RandomStructured'>
utils.vector_to_parameters(1, [ones(1)])  # expected torch.Tensor, but got: int
utils.fuse_conv_bn_eval(nn.Conv1d(1, 1, 1), nn.BatchNorm1d(1))\
  # Fusion only for eval!
utils.parametrize.register_parametrization(nn.Linear(2, 2), 'weight', type('P', \
(nn.Module,), {'forward': lambda s, x: x[0]})())\
  # unless the `unsafe` flag is enabled: taeda.Size([2, 2]) became taeda.Size([2])
utils.parametrize.remove_parametrizations(nn.Linear(2, 2), 'weight')\
  # Module Linear(in_features=2, out_features=2, bias=True) does not have a
prune.remove(nn.Linear(2, 2), 'weight')  # module Linear(in_features=2, out_features=2,
prune.random_unstructured(nn.Linear(2, 2), 'weight', 1.5)\
  # amount=1.5 should either be a float in the range [0, 1] or a non-negative
utils.rnn.pad_packed_sequence(utils.rnn.pack_padded_sequence(ones(2, 1, 1), [2]), \
total_length=1)\
  # sequence in input, but got total_length=1 and max sequence length being 2
utils.stateless.functional_call(nn.Linear(2, 2), {'x': ones(1)}, ones(2), strict=True)\
  # Error(s) in reparametrizing for Linear:
(sub('utils'), utils.parametrizations)[0].set_module(1, 1)\
  # The mod argument should be a string
"""

OWN = """
flex.create_block_mask(lambda b, h, q, k: q >= k, 1, 1, 128, 128, device='cpu', \
compute_dq_write_order=True)\
  # NotImplementedError: create_block_mask: compute_dq_write_order
bias.CausalBias('x', 2, 2)  # AssertionError: variant must be a CausalVariant, got str
utils.parameters_to_vector([ones(1), m.ones(1, device='meta')])\
  # TypeError: Found two parameters on different devices, this is currently not
prune.BasePruningMethod.compute_mask(None, ones(2), ones(2))\
  # NotImplementedError: compute_mask
prune.Identity().apply_mask(nn.Linear(2, 2))\
  # AssertionError: Module Linear(in_features=2, out_features=2, bias=True) has to
prune.Identity().remove(nn.Linear(2, 2))\
  # AssertionError: Module Linear(in_features=2, out_features=2, bias=True) has to
"""


@pytest.mark.parametrize(("call", "phrase"), cases(TABLE))
def test_refused_as_by_pytorch(torch, call, phrase) -> None:
    check_refused_as_by(torch, call, phrase)


@pytest.mark.parametrize(("call", "phrase"), cases(OWN))
def test_refused_in_our_own_way(torch, call, phrase) -> None:
    check_refused_otherwise(torch, call, phrase)
