"""Views, indexing and what moves elements: what they refuse."""

from __future__ import annotations

import pytest
import taeda
from refusals import cases, check_refused_as_by, check_refused_otherwise

TABLE = """
m.trapezoid(T(1.0))  # Dimension specified as -1 but tensor has no dimensions
m.fft.fftn(T(1.0), dim=(0,))  # Dimension specified as 0 but tensor has no dimensions
m.tensordot(T(1.0), T(1.0), ([0], [0]))  # Dimension specified as 0 but tensor has no
m.histc(T([inf]), 3)  # torch.histc: range of [inf, inf] is not finite
m.bernoulli(T([2.0]))  # bernoulli: expected every p in [0, 1], got 2
m.poisson(T([-1.0]))  # poisson: expected rates >= 0, got -1
m.multinomial(T([-1.0, 1.0]), 1, replacement=True)  # either `inf`, `nan` or element < 0
m.multinomial(T([0.0, 0.0]), 1, replacement=True)  # (sum of probabilities <= 0)
m.empty_permuted((2, 2), (0,))  # len(size) = 2 is not equal to len(physical_layout) = 1
m.empty_permuted((2, 2), (0, 2))  # between 0 and 1, but got 2 at index 1). NB: negative
m.empty_permuted((2, 2), (0, 0))  # Duplicate dim not allowed
m._C._VariableFunctions.einsum('i', [])  # einsum(): must provide at least one operand
m._C._VariableFunctions.einsum('i,i', [ones(2), ones(2)], path=[0])\
  # einsum(): expected contraction path given in path parameter to have size 2*1
m._C._VariableFunctions.einsum('i,i', [ones(2), ones(2)], path=[0, 0])\
  # einsum(): invalid contraction path
ones(2).fill_(ones(2))  # only supports 0-dimension value tensor but got tensor with 1
m.index_select(ones(2, 2), 0, longs(2, 2))  # index_select(): Index is supposed to be a
m.index_select(T(1.0), 0, T([0, 0]))  # to scalar can have only 1 value, got 2 value(s)
m.index_add(ones(2, 2), 0, longs(1, 1), ones(1, 2))\
  # index_add(): Index is supposed to be a vector, but got dim: 2 with type: Long
m.index_add(ones(2, 2), 0, ones(1), ones(1, 2))  # dtype int32/int64 for index but got:
m.index_add(ones(2, 2), 0, T([0]), doubles(1, 2))  # index_add(): self (Float) and
m.index_add(ones(2, 2), 1, T([0]), ones(1))  # index_add(): Indexing dim 1 is out of
m.index_add(ones(2, 2), 0, T([0]), ones(2, 2))  # to source.size(dim): (2), for dim: 0
m.index_add(ones(2, 2), 0, T([0]), ones(1, 3))  # Got self.shape = [2, 2] source.shape
m.index_copy(ones(2, 2), 0, longs(1, 1), ones(1, 2))\
  # index_copy_(): Index should have dimension 1 or 0 (got 2)
m.index_copy(ones(2, 2), 0, ones(1), ones(1, 2))  # long tensor for index, but got Float
m.index_fill(ones(2, 2), 0, ones(1), 1)  # index_fill_(): Expected dtype int32/int64 for
m.index_fill(ones(2, 2), 0, longs(1, 1), 1)  # has to be a vector/scalar, got [1, 1] i64
m.index_fill(ones(2, 2), 0, T([0]), 1j)  # index_fill_(): Converting complex Scalar to
m.index_fill(ones(2, 2), 0, T([0]), ones(2))  # got value tensor with 1 dimension(s).
m.index_reduce(ones(2, 2), 0, T([0]), ones(1, 2), 'sum')\
  # index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got
ones(2, 2)[longs(2), longs(3)]  # could not be broadcast together with shapes [2], [3]
ones(2).index_put_((T([0]),), longs(1))  # match, got Float for the destination and Long
m.index_put(ones(2), (T([0]), T([0])), ones(1))  # for tensor of dimension 1 (got 2)
m.cat([T(1.0), T(2.0)])  # zero-dimensional tensor (at position 0) cannot be
m.cat([ones(2, 2), ones(2)])  # Tensors must have same number of dimensions: got 2 and 1
m.stack([])  # stack expects a non-empty TensorList
m.cat([ones(2)], out=longs(2))  # torch.cat(): input types can't be cast to the desired
m.hstack([])  # hstack expects a non-empty TensorList
m.block_diag(ones(1, 1, 1))  # must have 2 or fewer dimensions. Input has 3 dimensions
m.cdist(ones(2, 2), ones(2, 2), compute_mode='fast')\
  # fast is not a valid value for compute_mode
m.tensordot(ones(2, 2), ones(2, 2), dims=([0], [0, 1]))\
  # both dimension lists should have same length, got [0] and [0, 1]
m.linalg.multi_dot([ones(2, 2)])  # multi_dot(): expected at least 2 tensors but got 1
m.linalg.multi_dot([ones(2, 2), ones(2, 2, 2), ones(2, 2)])\
  # multi_dot(): tensor 1 must be 2D but got 3D
m.linalg.multi_dot([ones(2, 2), doubles(2, 2)])  # tensor 0 is Float and tensor 1 Double
m.tril_indices(-1, 2)  # row must be non-negative, got -1
m.tril_indices(2, -1)  # col must be non-negative, got -1
m.flip(ones(2), (0, 0))  # dim 0 appears multiple times in the list of dims
m.flipud(T(1.0))  # flipud: Input must be >= 1-d., got [] f32
m.fliplr(ones(2))  # fliplr: Input must be >= 2-d., got [2] f32
m.rot90(ones(2, 2), 1, (0,))  # expected total rotation dims == 2, but got dims = 1
m.rot90(ones(2), 1, (0, 1))  # expected total dims >= 2, but got total dims = 1
m.rot90(ones(2, 2), 1, (0, 0))  # rotation dims to be different, but got dim0 = 0 and
m.roll(ones(2), ())  # roll: `shifts` required
m.roll(ones(2), (1, 1), (0,))  # shifts and dimensions must align. shifts: 2, dims:1
ones(2, 2).repeat(2)  # Number of dimensions of repeat dims can not be smaller than
ones(2).repeat(-1)  # Trying to create tensor with negative dimension -2: repeats [-1]
m.repeat_interleave(longs(2, 2))  # only accept 1D vector as repeat, got [2, 2] i64
m.repeat_interleave(ones(2))  # repeat_interleave: repeats has to be Long or Int tensor,
m.repeat_interleave(T([-1]))  # repeat_interleave: repeats can not be negative, got -1
m.repeat_interleave(T([1, 2]), output_size=4)  # output_size, expected 3 but got 4
m.repeat_interleave(ones(2), longs(2, 2))  # repeats must be 0-dim or 1-dim tensor, got
m.repeat_interleave(ones(2), longs(3))  # but got repeats.size(0) = 3 and input.size(0)
m.repeat_interleave(ones(2), -1)  # repeats must be non-negative, got -1
m.repeat_interleave(ones(2), 2, output_size=5)  # output_size, expected 4 but got 5
m.repeat_interleave(ones(2), 2**62)  # integer multiplication overflow
m.tril(ones(2))  # tril: input tensor must have at least 2 dimensions
m._pack_padded_sequence(ones(0, 2), T([]), False)  # Cannot pack empty tensors
m._pack_padded_sequence(ones(2, 2, 1), T([1, 0]), False)\
  # samples has to be greater than 0, but found an element in 'lengths' that is <= 0
m.gather(ones(2, 2), 0, longs(2))  # gather: Index tensor must have the same number of
m.gather(ones(2), 0, T([0]), out=doubles(1))  # to have dtype float, but got double
m.scatter(ones(2), 0, T([0]), doubles(1))  # scatter(): Expected self.dtype to be equal
m.scatter_reduce(complexes(2), 0, T([0]), complexes(1), reduce='amax')\
  # scatter_reduce: complex numbers have no order
m.scatter(ones(2), 0, T([0]), ones(1), reduce='max')\
  # reduce argument must be either add or multiply.
ones(2).masked_fill(ones(2), 1.0)  # masked_fill_ only supports boolean masks, but got
ones(2).masked_fill(bools(2), ones(2))  # supports a 0-dimensional value tensor, but got
ones(2).masked_fill(bools(2), T(1j))  # value cannot be converted to type Float without
m.channel_shuffle(ones(2, 2), 2)  # input with > 2 dims, but got input with sizes [2, 2]
m.channel_shuffle(ones(1, 2, 2), 0)  # channels in must be positive. Value of groups:0
m.channel_shuffle(ones(1, 3, 2), 2)  # must be divisible by groups. Got 3 channels and 2
m.flatten(ones(2, 2), 1, 0)  # cannot come after end_dim, got start_dim 1, end_dim 0
m.unflatten(ones(2), 0, ())  # unflatten: sizes must be non-empty
ones(4).unflatten(0, (-1, -1))  # only one dimension can be inferred
ones(4).unflatten(0, (3, 2))  # [3, 2] don't multiply up to the size of dim 0 (4) in the
ones(2, 2).expand(2)  # expand([2, 2], size=[2]): the number of sizes provided (1)
ones(2).expand(-1, 2)  # (-1) isn't allowed in a leading, non-existing dimension 0
ones(2).sum_to_size(3)  # size {[3]} is not expandable to size {[2]}.
m.diff(ones(2, 2), prepend=ones(3, 1))  # diff expects the shape of tensor to prepend
m.as_strided_scatter(ones(4), ones(2), (2,), ())  # mismatch in length of strides
m.ops.aten.index.Tensor(ones(1), [])  # at least one index must be provided
ones(4).as_strided((2,), (1, 1))  # mismatch in length of strides and shape, got [1, 1]
ones(2, 2).permute(0)  # dimensions i.e. input.dim() = 2 is not equal to len(dims) = 1
ones(2, 2).permute(0, 0)  # permute(): duplicate dims are not allowed.
m.t(ones(2, 2, 2))  # t() expects a tensor with <= 2 dimensions, but self is 3D
ones(2).adjoint()  # is only supported on matrices or batches of matrices. Got 1-D
ones(2, 2).movedim((0, 1), (0,))  # ([0, 1] dims) should contain the same number of dims
ones(2, 2).movedim((0, 0), (0, 1))  # movedim: repeated dim in `source` ([0, 0])
ones(2, 2).movedim((0, 1), (0, 0))  # movedim: repeated dim in `destination` ([0, 0])
m.squeeze(ones(1, 1), (0, 0))  # dim 0 appears multiple times in the list of dims
m.select(T(1.0), 0, 0)  # select() cannot be applied to a 0-dim tensor.
m.ops.aten.slice(T(1.0), 0, 0, 1)  # slice() cannot be applied to a 0-dim tensor.
m.narrow(T(1.0), 0, 0, 1)  # narrow() cannot be applied to a 0-dim tensor.
m.narrow(ones(2), 0, 3, 1)  # out of range (expected to be in range of [-2, 2], but got
m.narrow(ones(2), 0, ones(1), 1)  # start must be an 0-dim integral Tensor.
m.diagonal(ones(2, 2), 0, 1, 1)  # diagonal dimensions cannot be identical 1, 1
ones(2).unfold(0, -1, 1)  # size is -1 but must be >= 0
ones(2, 3).view(m.float64)  # self.size(-1) must be divisible by 2 to view Float as
complexes(2).conj().view(m.float32)  # torch.Tensor.view is not supported for conjugate
complexes(2).conj().imag.view(m.int32)  # torch.Tensor.view is not supported for tensors
T(1.0).view(m.float64)  # self.dim() cannot be 0 to view Float as Double (different
ones(2, 2).t().view(m.float64)  # self.stride(-1) must be 1 to view Float as Double
m.view_as_real(ones(2))  # view_as_real is only supported for complex tensors
m.view_as_real(complexes(2).conj())  # view_as_real doesn't work on unresolved
m.view_as_complex(longs(2))  # and double tensors, but got a tensor of scalar type: Long
m.view_as_complex(T(1.0))  # Input tensor must have one or more dimensions
m.view_as_complex(ones(3))  # Tensor must have a last dimension of size 2, got [3] f32
m.view_as_complex(ones(2, 2, 2)[..., 0])  # have a last dimension with stride 1, got [4,
m.view_as_complex(ones(5)[1:3])  # must have a storage_offset divisible by 2, got 1
m.view_as_complex(ones(5, 3)[:, :2])  # by 2 for all but last dimension, got [3, 1]
m.split(T(1.0), 1)  # split expects at least a 1-dimensional tensor
m.split(ones(2), 0)  # split_size can only be 0 if dimension size is 0, but got
m.split(T(1.0), [1])  # split expects at least a 1-dimensional tensor
m.split(ones(2), [-1, 3])  # have only non-negative entries, but got split_sizes=[-1, 3]
m.unbind(T(1.0))  # Dimension specified as 0 but tensor has no dimensions
m.chunk(T(1.0), 1)  # chunk expects at least a 1-dimensional tensor
m.chunk(ones(2), 0)  # chunk expects `chunks` to be greater than 0, got: 0
m.tensor_split(T(1.0), 1)  # least a 1-dimensional tensor, but got a tensor with 0 dims
m.tensor_split(ones(2), 0)  # number of sections must be larger than 0, got 0
m.tensor_split(ones(2), m.empty(1, device='meta', dtype=m.long))\
  # tensor_split expected tensor_indices_or_sections to be on cpu, but it's on meta
m.tensor_split(ones(2), ones(1))  # tensor_split expected tensor_indices_or_sections to
m.tensor_split(ones(2), longs(1, 1))  # one-dimensional tensor, but got a tensor with 2
m.hsplit(T(1.0), 1)  # with at least 1 dimension, but got a tensor with 0 dimensions!
m.hsplit(ones(3), 2)  # to split along dimension 0, but the size of the dimension 3 is
m.select_scatter(ones(2, 2), ones(3), 0, 0)  # of self. src size = [3], slice size = [2]
m.diagflat(ones(2)).diag_embed(0, 0, 0)  # diagonal dimensions cannot be identical 0, 0
m.diag(ones(1, 1, 1))  # diag(): Supports 1D or 2D tensors. Got 3D
m.linalg.svd(T([[nan, 1.0], [1.0, 1.0]]))  # matrix contained non-finite values.
m.nonzero(ones(2), out=ones(2))  # Expected out tensor to have scalar type Long but got
m.nonzero_static(ones(2), size=-1)  # nonzero_static: 'size' must be an non-negative
ones(2).masked_scatter(bools(2), doubles(2))  # source to have same dtypes but got Float
ones(2).masked_scatter(ones(2), ones(2))  # boolean masks, but got mask with dtype Float
ones(2).masked_scatter_(bools(2, 2), ones(4))  # output with shape [2] doesn't match the
ones(2).masked_scatter(bools(2), ones(1))  # masked_scatter_: expected self and source
m.take(ones(2), ones(1))  # take(): Expected a long tensor for index, but got Float
m.take(m.empty(0), T([0]))  # take(): tried to take from an empty tensor
ones(2).put_(ones(1), ones(1))  # put_(): Expected a long tensor for index, but got
ones(2).put_(T([0]), doubles(1))  # dtype, but got self.dtype = Float and source.dtype =
ones(2).put_(T([0]), ones(2))  # elements, but got source.numel() = 2, index.numel() = 1
m.empty(0).put_(T([0]), ones(1))  # put_(): Tried to put elements into an empty tensor
m.take_along_dim(ones(2), ones(2), 0)  # dtype of indices should be Long but got Float
m.take_along_dim(ones(2, 2), longs(2), 0)  # but got 2 dimensions for input, and 1
m.einsum(ones(2), [99])  # in subscript list is not within the valid range [0, 52), got
m.nonzero(ones(2), out=longs(1), as_tuple=True)  # nonzero: out is not taken together
m.unravel_index(ones(2), (2,))  # 'indices' to be integer dtype, but got taeda.float32
m.unravel_index(longs(2), (-2,))  # 'shape' cannot have negative values, but got (-2,)
(p := nn.Parameter(m.ones(1, device='meta')), setattr(p, 'grad', m.ones(1, \
device='meta')), utils.clip_grad_norm_([p], 1.0, foreach=True))\
  # foreach=True was passed, but can't use the foreach API on meta tensors
m.searchsorted(ones(2), ones(2), sorter=T([0, 5]))  # range: 5 for a dimension of size 2
m.bincount(T([-1]))  # bincount only supports 1-d non-negative integral inputs. Got -1
m._fused_adamw_([ones(2)], [ones(2)], [], [], [], [], lr=0.1, beta1=0.9, beta2=0.9, \
weight_decay=0.0, eps=1e-8, amsgrad=False, maximize=False)\
  # _fused_adamw_: expected one tensor per parameter (1), got 0
m.index_select(ones(2, 2), 0, ones(2))  # index_select(): Expected dtype int32/int64 for
m.index_add(ones(2, 2), 0, T([5]), ones(1, 2))  # of bounds for dimension 0 with size 2
m.cat([])  # torch.cat(): expected a non-empty list of Tensors
m._pack_padded_sequence(ones(2, 2, 1), T([1, 2]), False)\
  # `lengths` array must be sorted in decreasing order when `enforce_sorted` is
m.gather(ones(2, 2), 0, ones(2, 2))  # gather(): Expected dtype int32/int64 for index
m.scatter(ones(2, 2), 0, longs(1, 3), ones(1, 3))  # 3] to be no larger than self [2, 2]
m.scatter(ones(2), 0, T([5]), 1.0)  # 5 is out of bounds for dimension 0 with size 2
m.add(ones(3, 4), ones(2, 5))  # a (4) must match the size of tensor b (5) at non-singl
ones(2).expand(-3)  # (2) at non-singleton dimension 0.  Target sizes: [-3].  Tensor
m.narrow(ones(2), 0, 0, -1)  # narrow(): length must be non-negative.
m.narrow(ones(2), 0, 1, 2)  # start (1) + length (2) exceeds dimension size (2).
ones(2).unfold(0, 3, 1)  # maximum size for tensor at dimension 0 is 2 but size is 3
ones(2).unfold(0, 1, 0)  # step is 0 but must be > 0
m.split(ones(2), -1)  # split expects split_size be non-negative, but got split_size=-1
m.split(ones(2), [1, 2])  # exactly to 2 (input tensor's size at dimension 0), but got
m.take(ones(2), T([2]))  # out of range: tried to access index 2 on a tensor of 2
ones(2).as_strided((2,), (-1,))  # are not supported at the moment, got strides: [-1]
ones(2).copy_(m.ones(2, device='meta'))  # Cannot copy out of meta tensor [2] f32 meta;
(p := nn.Parameter(ones(1)), setattr(p, 'grad', T([nan])), \
utils.clip_grad_norm_([p], 1.0, error_if_nonfinite=True))\
  # The total norm of order 2.0 for gradients from `parameters` is non-finite, so it
m.ops.aten.expand.default(ones(1), [-5])  # expand: invalid size -5 at dimension 0
m.ones(2).index_put_((T([0, 1]),), ones(3))  # shape mismatch: value tensor of shape [3]
ones(2, 2).t().contiguous(memory_format=m.preserve_format)\
  # preserve memory format is unsupported by the contiguous operator
m.linalg.eig(T([[nan, 1.0], [1.0, 1.0]]))  # linalg.eig: input tensor should not contain
m.lu_unpack(m.eye(2), T([0, 1], dtype=m.int32))  # between 1 and LU.size(-2) inclusive.
m.lu_unpack(m.eye(2), T([1, 2]))  # is expected to be a contiguous tensor of torch.int32
m.quantile(ones(2), T([2.0]))  # quantile() q values must be in the range [0, 1]
(f := m.futures.Future(), f.set_result(1), f.set_result(2))\
  # Future can only be marked completed once
"""

OWN = """
m._fused_sgd_([ones(2)], [ones(3)], [], weight_decay=0.0, momentum=0.0, lr=0.1, \
dampening=0.0, nesterov=False, maximize=False, is_first_step=False)\
  # RuntimeError: expected a tensor of the parameter's shape [2], got [3]
m._fused_sgd_([ones(2), doubles(2)], [ones(2), doubles(2)], [], weight_decay=0.0, \
momentum=0.0, lr=0.1, dampening=0.0, nesterov=False, maximize=False, \
is_first_step=False)\
  # RuntimeError: _fused_sgd_: params must all have one dtype, found Double
m._pack_padded_sequence(ones(2, 2, 1), T([3, 2]), False)\
  # RuntimeError: Expected the longest length (3) to be at most the padded size 2
m.scatter_reduce(ones(2), 0, T([0]), ones(1), reduce='max')\
  # RuntimeError: reduce argument must be either sum, prod, mean, amax or amin, got
ones(2).__setitem__(0, [1, 2])  # RuntimeError: copy_: the number of sizes provided (0)
m.ops.aten.set_.source_Tensor(ones(2), longs(2))\
  # RuntimeError: a Tensor of type Float but got a type Long for argument 1 'source'
m._fused_sgd_([m.ones(2, device='meta')], [ones(2)], [], weight_decay=0.0, \
momentum=0.0, lr=0.1, dampening=0.0, nesterov=False, maximize=False, \
is_first_step=False)\
  # RuntimeError: _fused_sgd_: expected CPU tensors, got [2] f32 meta
sub('utils._pytree').tree_structure(collections.deque([1], \
maxlen=1)).flatten_up_to(collections.deque([1], maxlen=2))\
  # ValueError: expected context 1, got 2
"""


@pytest.mark.parametrize(("call", "phrase"), cases(TABLE))
def test_refused_as_by_pytorch(torch, call, phrase) -> None:
    check_refused_as_by(torch, call, phrase)


@pytest.mark.parametrize(("call", "phrase"), cases(OWN))
def test_refused_in_our_own_way(torch, call, phrase) -> None:
    check_refused_otherwise(torch, call, phrase)


def test_more_views_than_memory_holds_are_refused() -> None:
    many = 2**45
    wide = taeda.ones(1).expand(many)
    for call in (
        lambda: taeda.empty(0, 2).vsplit(many),
        lambda: taeda.ones(3).tensor_split(many),
        lambda: taeda.empty(0).chunk(many),
        lambda: wide.split(1),
        lambda: wide.unbind(),
    ):
        with pytest.raises(RuntimeError, match="not enough memory"):
            call()
    assert len(taeda.ones(3).chunk(2**63 - 1)) == 3
    assert len(taeda.ones(3).split(2**63 - 1)) == 1
