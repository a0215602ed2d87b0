"""Arguments, creation and exchange of tensors: what they refuse."""

from __future__ import annotations

import pytest
from refusals import cases, check_refused_as_by, check_refused_otherwise

TABLE = """
m.classes.nothing.Cls  # it does not exist! Ensure that it is registered
ones(2, 2).contiguous(memory_format=m.channels_last)\
  # required rank 4 tensor to use channels_last format, got rank 2
m.empty(1, device='meta').item()  # Tensor.item() cannot be called on meta tensors: they
bool(m.empty(0))  # Boolean value of Tensor with no values is ambiguous
m.full_like(ones(2), 1, memory_format=m.contiguous_format).set_(longs(2))\
  # Could not set tensor of type float32 to a tensor of type int64
ones(2).set_(ones(4).untyped_storage(), 0, (2, 2), (1,))\
  # mismatch in length of strides and shape: [1] and [2, 2]
ones(2).imag  # imag is not implemented for tensors with non-complex dtypes.
m.device('cpu:1', 1)  # not include an index because index was passed explicitly: cpu:1
m.device('cpu', -2)  # Device index must not be negative
m.zeros(2, dtype=m.float64, out=ones(2))  # dtype Double does not match dtype of out
m.zeros(2, device='meta', out=ones(2))  # device meta does not match device of out
m.Generator('meta')  # Generator: no generator for device meta (the CPU, CUDA
m.Generator().manual_seed('x')  # manual_seed expected a long, but got str
m.Generator().manual_seed(2**70)  # Overflow when unpacking long long
T(1.0)[0:1]  # slice() cannot be applied to a 0-dim tensor.
ones(2).__setitem__(0, 'x')  # can't assign a str to a float32 tensor
iter(T(1.0))  # iteration over a 0-d tensor
ones(2).__contains__('x')  # Tensor.__contains__ only supports Tensor or scalar, but you
m.Tensor([1, [2]])  # must be real number, not list
m.Tensor(1, 2, 'x')  # expected tuple of ints, but found element of type str at pos 2
m.FloatTensor(longs(2))  # expected FloatTensor (got LongTensor)
m.tensor([[1, 2], 3])  # not a sequence at dim 1
(l := [0], l.append(l), m.tensor(l))  # self-referential lists are incompatible
m.tensor([ones(2), ones(3)])  # to Python scalars (expected shape [], got [2])
m.tensor(1, device=1.5)  # argument 'device' must be taeda.device, not float
m.iinfo()  # iinfo() missing 1 required argument: 'type'
m.UntypedStorage(-1)  # UntypedStorage: negative size -1
m.UntypedStorage(2)[0:2:2]  # slices of storages must have step 1, got 2
m.UntypedStorage(2).resize_(-1)  # resize_: negative size -1
m.UntypedStorage(2).copy_(1)  # copy_(): incompatible function arguments
m.UntypedStorage(2).copy_(m.UntypedStorage(3))  # match, self was 2 bytes but src was 3
m.from_numpy(numpy.ones(2)).untyped_storage().resize_(64)\
  # Trying to resize storage that is not resizable
ones(2).set_(ones(2).untyped_storage(), -1, (1,))  # Tensor: invalid storage offset -1
ones(2).mT  # tensor.mT is only supported on matrices or batches of matrices. Got 1-D
ones(2).mH  # tensor.mH is only supported on matrices or batches of matrices. Got 1-D
ones(2, 2, 2).H  # tensor.H is only supported on matrices (2-D tensors). Got 3-D tensor.
ones(2).type('x')  # invalid type: 'x'
ones(2).cuda('cpu')  # Invalid device, must be cuda device
m.Tensor._make_subclass(int, ones(2))  # cls must be a subclass of Tensor
ones(2).as_subclass(int)  # cls must be a subclass of Tensor
complexes(2).conj().__dlpack__()  # Can't export tensors with the conjugate bit
m.empty(2, device='meta').__dlpack__()  # DLPack: only CPU tensors can be exported, got
complexes(2).conj().numpy()  # Can't call numpy() on Tensor that has conjugate bit set.
complexes(2).conj().imag.numpy()  # Can't call numpy() on Tensor that has negative bit
m.empty(2, device='meta').numpy()  # can't convert meta device type tensor to numpy. Use
ones(2).bfloat16().numpy()  # Got unsupported ScalarType BFloat16
m.from_numpy(numpy.zeros(2, dtype=[('a', 'f4'), ('b', 'i1')])['a'])\
  # given numpy array strides not a multiple of the element byte size. Copy the
m.frombuffer(1, dtype=m.float32)  # object does not implement Python buffer protocol.
m.frombuffer(b'1234')  # frombuffer() missing 1 required keyword argument: 'dtype'
m.return_types.nothing  # module 'taeda.return_types' has no attribute 'nothing'
m._C._pop_torch_function_stack()  # the stack of modes is empty
made(m.overrides.TorchFunctionMode)().__torch_function__(1, ())\
  # Made does not define __torch_function__
m.asarray(1, copy=False)  # can't alias arbitrary sequence into a tensor.
m.asarray(ones(2), dtype=m.float64, copy=False)  # can't alias tensor with dtype
ones(2).reinforce(1)  # reinforce() was removed; use distributions' log_prob
ones(1, dtype=m.complex64).new(1, 'x')  # expected sizes, or data alone, got 2 arguments
m.empty_strided((2,), (-1,))  # empty_strided: strides must not be negative, got [-1]
m.max(ones(2), 0, out=(ones(1), longs(1), 1))  # expected tuple of 2 elements but got 3
m.Size([1]) + 'x'  # can only concatenate tuple (not str) to taeda.Size
m.Tensor([1], [2])  # new() received an invalid combination of arguments - got 2
m.tensor(functools.reduce(lambda a, _: [a], range(200), 1))\
  # too many dimensions 'list'
m.sum(ones(1), 0, False, 3, 4)  # sum() takes from 2 to 3 positional arguments but 5
m.accelerator.synchronize()  # Cannot access accelerator device when none is available.
ones(2).pin_memory()  # Cannot access accelerator device when none is available.
ones(2).item()  # a Tensor with 2 elements cannot be converted to Scalar
bool(ones(2))  # Boolean value of Tensor with more than one value is ambiguous
m.embedding_bag(ones(2, 2), longs(2), T([0]), padding_idx=5)\
  # embedding_bag() got an unexpected keyword argument 'padding_idx'
F.fractional_max_pool2d(ones(4, 4), 2, output_size=2)\
  # Dimension out of range (expected to be in range of [-2, 1], but got -3)
ones(2)[None, longs(1), longs(1)]  # too many indices for tensor of dimension 1
m.randint(ones(2), (2,))  # randint(): argument 'high' (position 1) must be int, not
ones(2).masked_fill(bools(2), 1j)  # value cannot be converted to type double without
m.device('x')  # Expected one of cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep,
m.device('cuda:-1')  # Invalid device string: 'cuda:-1'
m.device([])  # device(): argument 'type' (position 1) must be str, not list
m.Generator().set_state(ones(2))  # RNG state must be a torch.ByteTensor
m.Generator().set_state(m.zeros(3, dtype=m.uint8))  # state of 5056 or 5048 bytes, got 3
m.rand(2, generator=1)  # rand() received an invalid combination of arguments - got
T(1.0)[0]  # invalid index of a 0-dim tensor. Use `tensor.item()` in Python or
ones(2)[1.5]  # ellipsis (`...`), None and long or byte Variables are valid indices (got
ones(2)['x']  # new(): invalid data type 'str'
ones(2)[0:1:-1]  # step must be greater than zero
ones(2).__delitem__(0)  # Tensor does not support deleting items
len(T(1.0))  # len() of a 0-d tensor
m.tensor([[1], [1, 2]])  # expected sequence of length 1 at dim 1 (got 2)
m.tensor(['x'])  # new(): too many dimensions 'str'
m.tensor([None])  # Could not infer dtype of NoneType
m.tensor(['x'], dtype=m.int64)  # new(): too many dimensions 'str'
m.tensor(2**70)  # Overflow when unpacking long long
m.tensor([300], dtype=m.uint8)  # value cannot be converted to type uint8 without
m.ones((1, 'x'))  # ones(): argument 'size' failed to unpack the object at pos 2 with
m.Size([1, 'x'])  # taeda.Size() takes an iterable of 'int' (item 1 is 'str')
m.add(ones(1), 1, 2, 3, 4)  # add() received an invalid combination of arguments - got
m.add(ones(1), bad=1)  # add() missing 1 required positional arguments: "other"
m.abs(ones(1), ones(1), ones(1))  # abs() takes 1 positional argument but 3 were given
m.iinfo(m.float32)  # an integer input type. Use taeda.finfo to handle 'torch.iinfo'
m.UntypedStorage(2)[5]  # index 5 out of range for storage of size 2
ones(2).type(1)  # type(): dtype must be a type, str, or dtype object, got int
m.from_dlpack(1)  # from_dlpack received an invalid capsule. Note that DLTensor capsules
m.from_numpy(1)  # expected np.ndarray (got int)
m.from_numpy(numpy.array(['x']))  # only supported types are: float64, float32, float16,
m.from_numpy(numpy.ones(4, dtype='i1').view('i4,i1' if 0 else 'i1')[::-1])\
  # At least one stride in the given numpy array is negative, and tensors with
m.from_numpy(numpy.ones(2, dtype='>f4'))  # given numpy array has byte order different
m.frombuffer(b'123', dtype=m.float32)  # buffer length (3 bytes) after offset (0 bytes)
m.frombuffer(b'', dtype=m.float32)  # buffer length (0) and count (-1) must not be 0
m.frombuffer(b'1234', dtype=m.float32, offset=8)  # than buffer length (4 bytes) minus 1
m.frombuffer(b'1234', dtype=m.float32, count=3)  # length (3 * 4 bytes) after offset (0
m.overrides.handle_torch_function(m.add, (made(object, \
__torch_function__=classmethod(lambda c, f, t, a=(), k=None: NotImplemented))(),))\
  # no implementation found for 'taeda.add' on types that implement
ones(2).cuda()  # Taeda not compiled with CUDA enabled
m.stack((ones(1), 2))  # expected Tensor as element 1 in argument 0, but got int
m.einsum(1, ones(1))  # only integer tensors of a single element can be converted to an
m.randint(0, 2**70, (3,))  # Overflow when unpacking long long
float(ones(2))  # only one element tensors can be converted to Python scalars
m.func.vmap(lambda x: x, in_dims=(0, 1))(ones(2))  # in_dims is not compatible
m.func.vmap(lambda x: x, in_dims=0, chunk_size=-1)(ones(2))\
  # vmap: chunk_size should be None or greater than 0. (got -1)
m.func.vmap(lambda x: 1)(ones(2))  # must only return Tensors, got type <class 'int'>.
m.func.vmap(lambda x: x, randomness='x')(ones(2))  # 'error', 'different', or 'same'.
m.func.vmap(lambda x: x)(1)  # Got in_dim=0 for an input but the input is of type
m.func.vmap(lambda x: x)()  # got no inputs. Maybe you forgot to add inputs
m.func.vmap(lambda x: x, in_dims=5)(ones(2))  # 1 so expected in_dim to satisfy -1 <=
m.func.vmap(lambda x, y: x)(ones(2), ones(3))  # the mapped dimension, got sizes [2, 3]
m.func.grad(lambda x: x.sum(), argnums=5)(ones(2))  # Got argnum=5, but only 1
m.func.grad(lambda x: 1)(ones(2))  # f(*args) to return a Tensor, got <class 'int'>
m.func.grad(lambda x: x)(ones(2))  # Tensor, got tensor with 1 dims. Maybe you wanted to
m.func.grad(lambda x: x.sum(), has_aux=True)(ones(2))\
  # output of function f should be a tuple: (output, aux) if has_aux is True
m.func.vjp(lambda x: x, ones(2))[1]((ones(2), ones(2)))\
  # Expected pytree structure of cotangents to be the same as pytree structure of
m.func.vjp(lambda x: 1, ones(2))\
  # expected f(*primals) to return only tensors, got unsupported type <class 'int'>
m.func.stack_module_state([])  # stack_module_state: Expected at least one model, got 0.
m.func.stack_module_state([nn.Linear(1, 1), nn.Linear(1, 1).eval()])\
  # stack_module_state: Expected all models to have the same training/eval mode.
m.func.stack_module_state([nn.Linear(1, 1), nn.ReLU()])\
  # stack_module_state: Expected all models to be of the same class.
m.func.functional_call(nn.Linear(1, 1), [{'weight': ones(1, 1)}, {'weight': ones(1, \
1)}], ones(1))\
  # ['weight'] appeared in multiple dictionaries; behavior of functional call is
m.func.functional_call(nn.Linear(1, 1), 1, ones(1))\
  # to be a dict, or a list/tuple of dicts, but got <class 'int'>
m.func.vmap(lambda x: x + m.rand(1))(ones(2))  # 'same' or 'different' randomness flags
m._check(1)  # cond must be a bool, but got <class 'int'>
m._check(False)  # Expected cond to be True, but got False. (Could this error message be
m._check(False, 'x')  # message must be a callable
m._check_tensor_all(1)  # cond must be a tensor, but got <class 'int'>
m._check_tensor_all(ones(2))  # tensor must have dtype torch.bool, but got taeda.float32
m._utils._get_device_index('cpu')  # Expected a non cpu device, but got: cpu
m._utils._get_device_index(1.5)  # a device with a specified index, but got: 1.5
"""

OWN = """
m.device('cpu', 300)  # RuntimeError: Device index 300 is too large
memoryview(m.empty(1, device='meta').untyped_storage())\
  # BufferError: only CPU storages have a buffer
m._C._get_function_stack_at(3)  # IndexError: no mode at that place of the stack
m.rand(2, device='xla')  # RuntimeError: device type xla has no backend in this build
m.ops.aten.add.Tensor(ones(1))  # Mismatch: Tensor other, *, Scalar alpha=1) -> Tensor
m.ops.aten.add.Tensor(ones(1), ones(1), ones(1), ones(1))\
  # Mismatch: aten::add.Tensor(): takes 2 positional arguments but 4 were given.
m.ops.aten.add.Tensor(ones(1), ones(1), bad=1)\
  # Mismatch: aten::add.Tensor(): Unknown keyword argument 'bad'. Declaration:
m.ops.aten.add('x', 'y')  # TypeError: aten::add(): no overload fits the arguments:
m.ops.aten._local_scalar_dense(m.empty(1, device='meta'))\
  # NotImplementedError: 'aten::_local_scalar_dense' with arguments from the 'Meta'
"""


@pytest.mark.parametrize(("call", "phrase"), cases(TABLE))
def test_refused_as_by_pytorch(torch, call, phrase) -> None:
    check_refused_as_by(torch, call, phrase)


@pytest.mark.parametrize(("call", "phrase"), cases(OWN))
def test_refused_in_our_own_way(torch, call, phrase) -> None:
    check_refused_otherwise(torch, call, phrase)
