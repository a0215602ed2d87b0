"""Arithmetic, reductions, linear algebra and random numbers: what they refuse."""

from __future__ import annotations

import pytest
from refusals import cases, check_refused_as_by, check_refused_otherwise

TABLE = """
m.relu(bools(2))  # relu: Boolean inputs not supported for relu
m.celu_(ones(2), 0)  # celu: ZeroDivisionError: alpha cannot be 0 for CELU
m.prelu(ones(2), doubles(1))  # prelu: Type promoting not supported. Got Float and
m.prelu(ones(2, 2), ones(2, 2))  # to be a scalar or 1D tensor, but got: ndim = 2
m.prelu(T(1.0), ones(2))  # prelu: Not allow zero-dim input tensor.
m.prelu(ones(2, 3), ones(2))  # size. Found parameter numbers = 2 and channel size = 3.
m.add(ones(2), ones(2), alpha=True)  # add: Boolean alpha only supported for Boolean
m.add(longs(2), longs(2), alpha=1.5)  # add: For integral input tensors, argument alpha
m.add(ones(2), ones(2), alpha=1j)  # add: For non-complex input tensors, argument alpha
bools(2) - bools(2)  # sub: Subtraction, the `-` operator, with two bool tensors is not
ones(2) - bools(2)  # sub: Subtraction, the `-` operator, with a bool tensor is not
-bools(2)  # neg: Negation, the `-` operator, on a bool tensor is not supported. If you
+bools(2)  # positive: The `+` operator, on a bool tensor is not supported.
m.div(longs(2), 0, rounding_mode='trunc')  # ZeroDivisionError (an integer divisor is 0)
m.addcdiv(longs(2), longs(2), longs(2))  # self + value * torch.trunc(tensor1 / tensor2)
m.lerp(ones(2), doubles(2), 0.5)  # lerp: expected dtype Float for `end` but got dtype
m.lerp(ones(2), ones(2), doubles(2))  # lerp: expected dtype Float for `weight` but got
m.div(ones(2), 2, rounding_mode='up')  # one of None, 'trunc', or 'floor' but found 'up'
longs(2) ** -1  # pow: Integers to negative integer powers are not allowed.
m.ops.aten._scaled_dot_product_flash_attention_for_cpu(ones(1, 2, 2, 2), ones(1, 2, \
2, 2), ones(1, 2, 2, 2), 0.5)\
  # scaled_dot_product_attention: the fused kernel has no dropout
m.searchsorted(ones(2), ones(2), side='up')  # can only be 'left' or 'right' but got up
m.searchsorted(ones(2), ones(2), side='left', right=True)\
  # torch.searchsorted(): side and right can't be set to opposites, got side of left
m.searchsorted(T(1.0), ones(2))  # should have positive dimension, but got 0 dimension
m.searchsorted(ones(2, 2), ones(3, 2))  # match, but we got boundaries tensor [2, 2] and
m.searchsorted(ones(2), ones(2), sorter=longs(3))  # but got boundary tensor [2] and got
m.searchsorted(ones(2), ones(2), sorter=ones(2))  # a tensor of long dtype but got dtype
m.bucketize(ones(2), ones(2, 2))  # tensor must be 1 dimension, but got dim(2)
m.histc(ones(2), 0)  # torch.histc(): bins must be > 0, but got 0
m.histc(ones(2), 3, 2, 1)  # torch.histc: max must be larger than min, got 1 and 2
m.bincount(longs(2), minlength=-1)  # bincount: minlength should be >= 0, got -1
m.bincount(longs(2, 2))  # only supports 1-d non-negative integral inputs, got [2, 2]
m.bincount(longs(2), ones(3))  # bincount: weights should be 1-d and have the same
ones(2).bernoulli_(1.5)  # bernoulli_ expects p to be in [0, 1], but got p=1.5
m.multinomial(ones(2, 2, 2), 1)  # multinomial: prob_dist must be 1 or 2 dim, got [2, 2,
m.multinomial(longs(2), 1)  # only supports floating-point dtypes for input, got: Long
m.multinomial(ones(2), 0)  # multinomial: cannot sample n_sample <= 0 samples, got 0
m.argmax(m.empty(0))  # for input.numel() == 0. Specify the reduction dim with the 'dim'
m.amax(m.empty(0))  # for input.numel() == 0. Specify the reduction dim with the 'dim'
m.aminmax(m.empty(0))  # aminmax(): cannot compute aminmax over an empty dimension as
m.std(longs(2))  # std: std and var only support floating point and complex dtypes, got
m._softmax(m.ones(2, dtype=m.half), 0, True)  # softmax: softmax with half to float
m.kthvalue(ones(2), 3)  # k out of range for dimension 0: k is 3, the dim has size 2
m.unique(m.empty(2, 0), dim=0)  # unique_dim: There are 0 sized dimensions, and they
m.empty(2, memory_format=m.preserve_format)  # empty: preserve_format needs a tensor to
m.empty_strided((2,), (1, 1))  # mismatch in length of strides and shape, got [1, 1] and
m.eye(-1)  # n must be greater or equal to 0, got -1
m.eye(2, -1)  # m must be greater or equal to 0, got -1
m.diff(T(1.0))  # diff expects input to be at least one-dimensional
m.diff(ones(2), prepend=ones(1, 1))  # diff expects prepend or append to be the same
m.diff(ones(2), -1)  # order must be non-negative but got -1
m.frexp(longs(2))  # torch.frexp() only supports floating-point dtypes, got Long
m.rrelu(ones(2), 2, 1)  # should be less than or equal to the upper bound, got 2 and 1
m.argmax(m.empty(0, 2), 0)  # argmax(): Expected reduction dim 0 to have non-zero size.
m.dist(longs(2), longs(2))  # norm(): input dtype should be either floating point or
m.einsum('......,i', ones(2), ones(2))  # einsum(): found '.' for operand 0 for which an
m.einsum('.i', ones(2))  # einsum(): found '.' for operand 0 that is not part of any
m.einsum('1', ones(2))  # einsum(): invalid subscript given at index 0 in the equation
m.einsum('i', ones(2), ones(2))  # einsum(): more operands were provided than specified
m.einsum('i,j', ones(2))  # einsum(): fewer operands were provided than specified in the
m.einsum('ij', ones(2))  # (2) does not match the number of dimensions (1) for operand 0
m.einsum('i->ii', ones(2))  # einsum(): output subscript i appears more than once in the
m.einsum('i->j', ones(2))  # einsum(): output subscript j does not appear in the
m.einsum('ii', ones(2, 3))  # repeated for operand 0 but the sizes don't match, 3 != 2
m.einsum('i,i', ones(2), ones(3))  # einsum(): subscript i has size 3 for operand 1
m.einsum('i')  # einsum(): must specify the equation string and at least one operand,
m.vander(ones(1, 1))  # vander: x must be a one-dimensional tensor, got [1, 1] f32
m.cartesian_prod(ones(1, 1))  # Expect a 1D vector, but got shape [1, 1]
m.combinations(ones(2, 2))  # Expect a 1D vector, but got shape [2, 2]
m.combinations(ones(2), -1)  # Expect a non-negative number, but got -1
m.trace(ones(2))  # trace: expected a matrix, but got tensor with dim 1
m.nanmean(longs(2))  # expected input to have floating point or complex dtype but got
m.gradient(ones(3, 3), spacing=[1.0])  # dim argument was not given, but got a list of
m.gradient(ones(3, 3), spacing=[1.0], dim=(0, 1))  # and dim arguments to have the same
m.ormqr(T(1.0), T(1.0), T(1.0))  # torch.ormqr: input must have at least 2 dimensions
m.complex(ones(2), longs(2))  # Expected both inputs to be Half, Float or Double tensors
m.constant_pad_nd(ones(2), (1,))  # Length of pad must be even but instead it equals 1
m.constant_pad_nd(ones(2), (1, 1, 1, 1))  # input. Pad length is 4 while the input has 1
m.cdist(ones(2, 2), ones(2, 2), p=-1)  # only supports non-negative p values, got -1
m.cdist(ones(2), ones(2, 2))  # cdist only supports at least 2D tensors, X1 got: 1D, X2
m.cdist(longs(2, 2), ones(2, 2))  # floating-point dtypes, X1 got: Long, X2 got: Float
m._C._VariableFunctions.cdist(ones(2, 2), ones(2, 2), 2.0, 5)\
  # possible modes: 0, 1, 2, but was: 5
m.cdist(ones(2, 2), doubles(2, 2))  # cdist: expected inputs of the same dtype, got
m.outer(ones(2, 2), ones(2))  # outer: Expected 1-D argument self, but got 2-D
m.outer(ones(2), ones(2, 2))  # outer: Expected 1-D argument vec2, but got 2-D
m.addr(ones(2, 2), ones(2, 2), ones(2))  # addr: Expected 1-D argument vec1, but got 2-D
m.addr(ones(2, 2), ones(2), ones(2, 2))  # addr: Expected 1-D argument vec2, but got 2-D
m.addr(ones(2, 2), ones(2), ones(2), beta=True)  # addr: Boolean beta only supported for
m.addr(ones(2, 2), ones(2), ones(2), alpha=1j)  # addr: alpha: value cannot be converted
m.addr(longs(2, 2), longs(2), longs(2), alpha=1.5)  # alpha must not be a floating
m.addbmm(ones(2, 2), ones(2, 2), ones(1, 2, 2))  # batch1 must be a 3D tensor, got [2,
m.addbmm(ones(2, 2), ones(1, 2, 2), ones(2, 2))  # batch2 must be a 3D tensor, got [2,
m.addbmm(ones(2, 2), ones(1, 2, 2), ones(2, 2, 2))  # number of batches, got 1 and 2
m.addbmm(ones(2, 2), ones(1, 2, 2), ones(1, 3, 2))  # matrix sizes for bmm (2x2 and 3x2)
m.inner(ones(2), ones(3))  # must match on both input tensors but got shapes [2] and [3]
m.tensordot(ones(2), doubles(2), dims=1)  # inputs should have same dtype, got Float and
m.tensordot(ones(2), ones(3), dims=1)  # first has size 2 in dim 0 and second has size 3
m.chain_matmul()  # chain_matmul(): Expected one or more matrices
m.chain_matmul(ones(2, 2), ones(2))  # Tensor dimension is 1, expected 2 instead
ones(2).uniform_(1, 0)  # expects to return a [from, to) range, but found from=1 > to=0
ones(2).normal_(0, -1)  # normal expects std >= 0.0, but found std -1
ones(2, dtype=m.uint8).random_(0, 300)  # to - 1 is out of bounds for Byte
ones(2).random_(2, 1)  # random_ expects 'from' to be less than 'to', but got from=2 >=
longs(2).exponential_()  # Exponential distribution is a continuous probability
ones(2).exponential_(0)  # exponential_ expects lambda > 0.0, but found lambda=0
ones(2).geometric_(1)  # geometric_ expects p to be in (0, 1), but got p=1
ones(2).cauchy_(0, 0)  # cauchy_ expects sigma > 0.0, but found sigma=0
longs(2).cauchy_()  # Cauchy distribution is a continuous probability distribution.
ones(2).log_normal_(0, 0)  # log_normal_ expects std > 0.0, but found std=0
ones(2).bernoulli_(longs(2))  # expected probabilities tensor to have floating type, got
m.randperm(-1)  # n must be non-negative, got -1
m.randperm(3000, dtype=m.half)  # n cannot be greater than 2049 for Half type
m.binomial(ones(2), doubles(2))  # binomial: Found dtype Double but expected Float
m.arange(0, 1, 0)  # step must be nonzero
m.arange(0, inf)  # unsupported range: 0 -> inf
m.arange(0, 1e30, 1e-5)  # invalid size, possible overflow?
m.arange(0, 2, dtype=m.bool)  # "arange" not implemented for 'Bool'
m.arange(0, 2, 0.5, dtype=m.int64)  # step must be nonzero, got 0.5
m.linspace(0, 1j, 3, dtype=m.float32)  # torch.linspace(): inferred dtype ComplexFloat
m.linspace(0, 1, -1)  # number of steps must be non-negative, got -1
m.linspace(ones(2), 1, 2)  # 0-dimensional start and end tensors, but got start with 1
m._pack_padded_sequence(ones(2, 2, 1), longs(3), False)\
  # Expected `len(lengths)` to be equal to batch_size, but got 3 (batch_size=2)
m.clamp(ones(2))  # torch.clamp: At least one of 'min' or 'max' must not be None
m.clamp(complexes(2), 0, 1)  # is not supported for complex types, got self [2] c64
m.where(ones(2), ones(2), ones(2))  # expected condition to be a boolean tensor, but got
m.heaviside(complexes(2), complexes(2))  # heaviside is not yet implemented for complex
m.heaviside(ones(2), doubles(2))  # heaviside is not yet implemented for tensors with
m.isclose(ones(2), doubles(2))  # Float did not match Double
m.isclose(ones(2), ones(2), rtol=-1)  # be greater than or equal to zero, but got -1
m.isclose(ones(2), ones(2), atol=-1)  # be greater than or equal to zero, but got -1
m.vander(ones(2), -1)  # vander: N must be non-negative, got -1
m.trapezoid(bools(2))  # trapezoid: received a bool input for `y`, but bool is not
m.trapezoid(bools(2), bools(2))  # trapezoid: received a bool input for `x` or `y`, but
m.trapezoid(ones(2), ones(3))  # trapezoid: There must be one `x` value for each sample
m.polygamma(-1, ones(2))  # polygamma: polygamma(n, x) does not support negative n. Got
m.imag(ones(2))  # imag is not implemented for tensors with non-complex dtypes.
m.hann_window(2, dtype=m.long)  # hann_window expects floating point dtypes, got: Long
m.hann_window(-1)  # requires non-negative window_length, got window_length=-1
m.complex(longs(2), longs(2))  # both inputs to be Half, Float or Double tensors but got
m.complex(ones(2), doubles(2))  # Expected object of scalar type Float but got scalar
m.linalg.householder_product(ones(2, 2), ones(2, 2))\
  # batch of input and at most as many elements as it has columns, got input [2, 2]
m.linalg.solve(m.eye(2), ones(2), left=False)  # is equivalent to B / A.squeeze(-1)
m.linalg.solve(m.eye(2), T(1.0))  # linalg.solve: B must have at least 1 dimension
m.kl_div(complexes(2), complexes(2))  # kl_div: complex inputs are not supported
m.kl_div(longs(2), longs(2))  # kl_div: expected floating-point input and target, got
m.bmm(ones(2, 2), ones(1, 2, 2))  # bmm: batch1 must be a 3D tensor, got [2, 2] f32
m.bmm(ones(1, 2, 2), ones(2, 2))  # bmm: batch2 must be a 3D tensor, got [2, 2] f32
m.bmm(ones(1, 2, 2), doubles(1, 2, 2))  # bmm: expected scalar type Float but found
m.mv(ones(2), ones(2))  # mv: vector + matrix @ vector expected, got 1, 1, 1
m.mv(ones(2, 2), ones(3))  # mv: size mismatch, got input (2), mat (2x2), vec (3)
m.mv(ones(2, 2), doubles(2))  # addmv input tensors must have the same dtype, but got
m.dot(ones(2, 2), ones(2))  # 1D tensors expected, but got 2D and 1D tensors
m.dot(ones(2), doubles(2))  # dot : expected both vectors to have same dtype, but found
m.dot(ones(2), ones(3))  # [2] and src [3] to have the same number of elements, but got
m.matmul(T(1.0), ones(2))  # to matmul need to be at least 1D, but they are 0D and 1D
m.matmul(ones(2, 2), ones(1, 3, 2))  # mat1 and mat2 shapes cannot be multiplied (2x2
m.matmul(ones(3, 2, 2), ones(3, 3, 2))  # two dimensions of batch2 tensor to be: [3, 2]
m.addmm(ones(2, 2, 2), ones(2, 2), ones(2, 2))  # number of dimensions in the tensor (3)
m.addmm(ones(3, 3), ones(2, 2), ones(2, 2))  # 1.  Target sizes: [2, 2].  Tensor sizes:
m.addmm(doubles(2, 2), ones(2, 2), ones(2, 2))  # mat2 must have the same dtype, but got
m.addmm(ones(2, 2), ones(2), ones(2, 2))  # mat1 must be a matrix, got 1-D tensor
m.addmm(ones(2, 2), ones(2, 2), ones(2))  # mat2 must be a matrix, got 1-D tensor
m.addmv(ones(2, 2), ones(2, 2), ones(2))  # vector + matrix @ vector expected, got 2, 2,
m.addmv(ones(2), ones(2, 2), ones(3))  # size mismatch, got input (2), mat (2x2), vec
m.addmv(ones(2), ones(2, 2), doubles(2))  # same dtype, but got Float, Double, and Float
m.baddbmm(ones(1, 2, 2), ones(2, 2), ones(1, 2, 2))\
  # baddbmm: batch1 must be a 3D tensor, got [2, 2] f32
m.baddbmm(ones(1, 2, 2), ones(1, 2, 2), ones(2, 2))\
  # baddbmm: batch2 must be a 3D tensor, got [2, 2] f32
m.baddbmm(ones(1, 2, 2), ones(1, 2, 2), ones(1, 3, 2))\
  # Expected size for first two dimensions of batch2 tensor to be: [1, 2] but got:
m.tensordot(ones(2), ones(2), dims=-1)  # tensordot expects dims >= 0, but got dims=-1
m.tensordot(ones(2), ones(2), dims=3)  # ndim_b, but got dims=3 for tensors with 1 and 1
m.broadcast_shapes((-1,))  # dimension with negative length! broadcast_shapes: -1 in (
m.broadcast_shapes((2,), (3,))  # should be broadcastable to [2]
m.add(ones(2), m.ones(2, device='meta'))  # add: Expected all tensors to be on the same
m.sum(m.ones((1,) * 65), 0)  # only tensors with up to 64 dims are supported
m.amax(m.empty(0, 2), 0)  # amax(): Expected reduction dim 0 to have non-zero size.
ones(2).addmm_(ones(2, 2), ones(2, 2))  # [2] doesn't match the broadcast shape [2, 2]
m.bincount(ones(2))  # "bincount" not implemented for 'Float'
m.cdist(ones(2, 2), ones(2, 3))  # X1 and X2 must have the same number of columns. X1: 2
m.linalg.matrix_power(ones(2, 3), 2)  # of square matrices, but they are 2 by 3 matrices
m.matrix_power(ones(2), -1)  # matrix_power: The input tensor A must have at least 2
m.linalg.matrix_power(ones(2, 3), -1)  # matrix_power: A must be batches of square
m.linalg.cholesky(ones(2, 3))  # must be batches of square matrices, but they are 2 by 3
m.bmm(ones(1, 2, 2), ones(1, 3, 2))  # two dimensions of batch2 tensor to be: [1, 2] but
m.addmm(ones(2, 2), ones(2, 2), ones(3, 2))  # and mat2 shapes cannot be multiplied (2x2
ones(2).add_(ones(3, 2))  # with shape [2] doesn't match the broadcast shape [3, 2]
m.topk(ones(2), 3)  # topk: selected index k out of range: k is 3, the dim has size 2
ones(2).sub_(complexes(2))  # sub: result type ComplexFloat can't be cast to the desired
m.quantile(ones(2), 2.0)  # quantile() q must be in the range [0, 1] but got 2
ones(2).resize_(2, memory_format=m.preserve_format)\
  # resize_: unsupported memory format preserve_format
m.addmm(doubles(2, 2), ones(2, 2), doubles(2, 2))  # mat1 and mat2 must have the same
m.randint_like(ones(2), ones(2))  # high must be a scalar tensor and on CPU, got [2] f32
m.arange(0, 2, 0.5, out=longs(1))  # step must be nonzero
m.linalg.solve_triangular(m.eye(2), ones(3, 2), upper=True)\
  # Incompatible shapes of A and B for the equation AX = B (2x2 and 3x2)
m.cholesky_solve(doubles(2, 2), m.eye(2))  # linalg.solve_triangular: Expected A and B
m.cholesky_solve(ones(2), m.eye(2))  # b should have at least 2 dimensions, but has 1
m.cholesky_solve(ones(2, 2), ones(2))  # u should have at least 2 dimensions, but has 1
m.linalg.cross(ones(3), ones(1, 3))  # linalg.cross: inputs must have the same number of
m.linalg.cross(ones(2), ones(2))  # inputs dimension -1 must have length 3. Got 2 and 2
m.cross(ones(2), ones(2))  # no dimension of size 3 in input
m.cov(ones(2, 2), fweights=longs(3))  # observations in the input but got 3 != 2
m.cov(ones(2, 2), fweights=ones(2))  # expected fweights to have integral dtype but got
m.cov(ones(2, 2), aweights=longs(2))  # have floating point dtype but got aweights with
m.cov(ones(2, 2), fweights=longs(2, 2))  # expected fweights to have one or fewer
m.cov(ones(2, 2), fweights=-longs(2))  # cov(): fweights cannot be negative
m.cov(ones(2, 2, 2))  # input to have two or fewer dimensions but got an input with 3
m.cov(bools(2, 2))  # cov(): bool dtype is not supported for input
m.corrcoef(ones(2, 2, 2))  # two or fewer dimensions but got an input with 3 dimensions
m.linalg.eigh(m.eye(2), UPLO='x')  # Expected UPLO argument to be 'L' or 'U', but got x
m.linalg.lu_factor(m.zeros(2, 2))  # linalg.lu_factor: U[1,1] is zero and using it on
m.linalg.lu_factor(m.eye(2), pivot=False)  # linalg.lu_factor: LU without pivoting is
m.linalg.inv(m.zeros(2, 2))  # linalg.inv: The diagonal element 1 is zero, the inversion
m.linalg.cholesky(m.zeros(2, 2))  # not positive-definite (the leading minor of order 1
m.linalg.pinv(ones(2))  # The input tensor A must have at least 2 dimensions, got [2]
m.quantile(m.empty(0), 0.5)  # quantile() input tensor must be non-empty
m.quantile(ones(2), ones(2, 2))  # quantile() q must be a scalar or 1D tensor
m.quantile(longs(2), 0.5)  # quantile() input tensor must be either float or double
m.quantile(ones(2), T(0.5).double())  # quantile() q tensor must be same dtype as the
m.quantile(ones(2), 0.5, interpolation='x')  # higher, midpoint or nearest, but got x
m.futures.Future().value()  # Future: the value is not there yet; use wait()
m.fx.wrap(1)  # Unsupported type for global function! Must be either a callable or
m.xpu.current_device()  # Taeda not compiled with XPU enabled: no GPU can be used
m.profiler.schedule(wait=0, warmup=0, active=1)(-1)\
  # Step must be non-negative. Got -1.
m.profiler.schedule(wait=-1, warmup=0, active=1)  # wait=-1, warmup=0 and repeat=0 to be
m.cov(ones(2, 2), aweights=-ones(2))  # cov(): aweights cannot be negative
"""

OWN = """
m.ones(2, layout=m.sparse_coo)\
  # NotImplementedError: ones: not implemented for sparse types, got layout sparse_coo
m.trapezoid(ones(2), T(1.0))  # RuntimeError: trapezoid: There must be one `x` value for
m.ops.aten._local_scalar_dense(ones(2))\
  # RuntimeError: _local_scalar_dense: expected a tensor with one element, got [2]
"""


@pytest.mark.parametrize(("call", "phrase"), cases(TABLE))
def test_refused_as_by_pytorch(torch, call, phrase) -> None:
    check_refused_as_by(torch, call, phrase)


@pytest.mark.parametrize(("call", "phrase"), cases(OWN))
def test_refused_in_our_own_way(torch, call, phrase) -> None:
    check_refused_otherwise(torch, call, phrase)
