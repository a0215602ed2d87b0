"""Arguments, creation and exchange of tensors: what they refuse."""

from __future__ import annotations

import pytest
from refusals import cases, check_refused_as_by, check_refused_otherwise

TABLE = """
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
m.Generator('meta')  # Generator: no generator for device meta (this build has the CPU
m.Generator().manual_seed('x')  # manual_seed expected a long, but got str
T(1.0)[0:1]  # slice() cannot be applied to a 0-dim tensor.
ones(2).__setitem__(0, 'x')  # can't assign a str to a float32 tensor
iter(T(1.0))  # iteration over a 0-d tensor
ones(2).__contains__('x')  # Tensor.__contains__ only supports Tensor or scalar, but you
m.Tensor([1, [2]])  # must be real number, not list
m.Tensor(1, 2, 'x')  # expected tuple of ints, but found element of type str at pos 2
m.FloatTensor(longs(2))  # expected FloatTensor (got LongTensor)
m.tensor([[1, 2], 3])  # not a sequence at dim 1
m.tensor([ones(2), ones(3)])  # to Python scalars (expected shape [2], got [3])
m.tensor(1, device=1.5)  # argument 'device' must be taeda.device, not float
m.iinfo()  # iinfo() missing 1 required argument: 'type'
m.UntypedStorage(-1)  # UntypedStorage: negative size -1
m.UntypedStorage(2)[0:2:2]  # slices of storages must have step 1, got 2
m.UntypedStorage(2).resize_(-1)  # resize_: negative size -1
m.UntypedStorage(2).copy_(1)  # copy_: expected an UntypedStorage
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
complexes(2).conj().__dlpack__()  # __dlpack__: resolve_conj() the tensor first
complexes(2).conj().numpy()  # Can't call numpy() on Tensor that has conjugate bit set.
complexes(2).conj().imag.numpy()  # Can't call numpy() on Tensor that has negative bit
m.empty(2, device='meta').numpy()  # can't convert meta device type tensor to numpy. Use
ones(2).bfloat16().numpy()  # Got unsupported ScalarType BFloat16
m.from_numpy(numpy.zeros(2, dtype=[('a', 'f4'), ('b', 'i1')])['a'])\
  # given numpy array strides not a multiple of the element byte size. Copy the
m.frombuffer(1, dtype=m.float32)  # could not retrieve buffer from object of type int
m.frombuffer(b'1234')  # frombuffer() missing 1 required keyword argument: 'dtype'
m.return_types.nothing  # module 'taeda.return_types' has no attribute 'nothing'
m._C._pop_torch_function_stack()  # the stack of modes is empty
made(m.overrides.TorchFunctionMode)().__torch_function__(1, ())\
  # Made does not define __torch_function__
m.asarray(1, copy=False)  # can't alias arbitrary sequence into a tensor.
m.asarray(ones(2), dtype=m.float64, copy=False)  # dtype taeda.float32 as taeda.float64
ones(2).reinforce(1)  # reinforce() was removed; use distributions' log_prob
ones(1, dtype=m.complex64).new(1, 'x')  # no old tensor type has dtype taeda.complex64
m.empty_strided((2,), (-1,))  # empty_strided: strides must not be negative, got [-1]
m.max(ones(2), 0, out=(ones(1), longs(1), 1))  # expected tuple of 2 elements but got 3
m.Size([1]) + 'x'  # can only concatenate tuple (not str) to taeda.Size
m.Tensor([1], [2])  # new() received an invalid combination of arguments - got 2
m.tensor(functools.reduce(lambda a, _: [a], range(200), 1))\
  # too many dimensions 'list'
m.sum(ones(1), 0, False, 3, 4)  # sum() takes from 2 to 3 positional arguments but 5
m.accelerator.synchronize()  # Cannot access accelerator device when none is available.
ones(2).pin_memory()  # Cannot access accelerator device when none is available.
"""

OWN = """
m.device('cpu', 300)  # RuntimeError: Device index 300 is too large
m.Generator().manual_seed(2**70)  # RuntimeError: Overflow when unpacking long long
m.Tensor(ones(2).long())  # TypeError: expected Float (got Long)
(l := [], l.append(l), m.tensor(l))  # TypeError: new(): self-referential lists
memoryview(m.empty(1, device='meta').untyped_storage())\
  # BufferError: only CPU storages have a buffer
m.empty(2, device='meta').__dlpack__()\
  # RuntimeError: DLPack: only CPU tensors can be exported here
m._C._get_function_stack_at(3)  # IndexError: no mode at that place of the stack
ones(2).share_memory_() and 1  # NotImplementedError: share_memory_: tensors in memory
m.rand(2, device='xla')  # RuntimeError: device type xla has no backend in this build
m.ops.aten.add.Tensor(ones(1))  # TypeError: Tensor other, *, Scalar alpha=1) -> Tensor
m.ops.aten.add.Tensor(ones(1), ones(1), ones(1), ones(1))\
  # TypeError: aten::add.Tensor(): takes 2 positional arguments but 4 were given.
m.ops.aten.add.Tensor(ones(1), ones(1), bad=1)\
  # TypeError: aten::add.Tensor(): Unknown keyword argument 'bad'. Declaration:
m.ops.aten.add('x', 'y')  # TypeError: aten::add(): no overload fits the arguments:
"""


@pytest.mark.parametrize(("call", "phrase"), cases(TABLE))
def test_refused_as_by_pytorch(torch, call, phrase) -> None:
    check_refused_as_by(torch, call, phrase)


@pytest.mark.parametrize(("call", "phrase"), cases(OWN))
def test_refused_in_our_own_way(torch, call, phrase) -> None:
    check_refused_otherwise(torch, call, phrase)
