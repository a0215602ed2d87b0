"""Storing, comparing, compiling and other parts of the package: what they refuse."""

from __future__ import annotations

import pytest
from refusals import cases, check_refused_as_by, check_refused_otherwise

TABLE = """
m.set_default_dtype(1)  # expected a dtype, got int
m.set_num_threads(0)  # set_num_threads: expects a positive integer, got 0
m.set_num_interop_threads(0)  # expects a positive integer
m.set_grad_enabled('x')  # set_grad_enabled(): argument 'enabled' (position 1) must be
m.compile(1)  # compile: expected a callable, got int
m.compile(print, mode='x', options={})  # Either mode or options can be specified, but
m.set_deterministic_debug_mode('x')  # expected one of ('default', 'warn', 'error'), got
m.amp.autocast(1)  # autocast: Expected `device_type` of type `str`, got: `<class
m.amp.autocast('meta')  # User specified an unsupported autocast device_type 'meta'
m.get_autocast_dtype('meta')  # unknown device type for autocast: 'meta'
m.amp.GradScaler('cpu', growth_factor=1)  # The growth factor must be > 1.0.
m.amp.GradScaler('cpu', backoff_factor=1)  # The backoff factor must be < 1.0.
m.amp.GradScaler('cpu').scale(1)  # outputs must be a Tensor or an iterable of Tensors
m.amp.GradScaler('cpu').load_state_dict({})  # The source state dict is empty, possibly
(s := m.amp.GradScaler('cpu'), s.scale(ones(1)), s.update())\
  # No inf checks were recorded prior to update.
m.backends.nothing  # module 'taeda.backends' has no attribute 'nothing'
m.cuda.nothing  # module 'taeda.cuda' has no attribute 'nothing'
m.cuda.current_device()  # Taeda not compiled with CUDA enabled
m.types.nothing  # module 'taeda.types' has no attribute 'nothing'
m.serialization.nothing  # module 'taeda.serialization' has no attribute 'nothing'
m.utils.nothing  # module 'taeda.utils' has no attribute 'nothing'
utils.rename_privateuse1_backend(1)  # module 'taeda.nn.utils' has no attribute
m.testing.assert_close(1, 'x')  # handle inputs of type <class 'int'> and <class 'str'>.
m.testing.assert_close(ones(2), [1.0, 1.0])  # 'taeda.Tensor'> and <class 'list'>.
m.testing.assert_close({'a': 1}, {'b': 1})  # The keys of the mappings do not match:
m.testing.assert_close(None, 1)  # None mismatch: None is not 1
m.testing.assert_close(ones(2, 2), ones(2, 2).t(), check_stride=True)\
  # The values for attribute 'stride()' do not match: (2, 1) != (1, 2).
m.testing.assert_close(1, 1.0)  # do not match: <class 'int'> != <class 'float'>.
m.testing.make_tensor(2, dtype=m.float32, device='cpu', noncontiguous=True, \
memory_format=m.contiguous_format)\
  # The parameters `noncontiguous` and `memory_format` are mutually exclusive
m.testing.make_tensor(2, dtype=m.float32, device='cpu', low=nan)\
  # `low` and `high` cannot be NaN, but got low=nan and high=9
m.testing.make_tensor(2, dtype=m.float32, device='cpu', low=2, high=1)\
  # `low` must be less than `high`, but got 2 >= 1
m.load(io.BytesIO(b''), weights_only=True, pickle_module=pickle)\
  # a pickle_module runs code: give weights_only=False with it, and only for files
m.serialization.set_default_load_endianness(1)  # Invalid argument type in function
m.serialization.set_default_mmap_options(7)  # expected MAP_PRIVATE or MAP_SHARED, got 7
m.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(b'x'))\
  # expected a checkpoint in the zip format
m.storage.TypedStorage(1, wrap_storage=1)  # wrap_storage excludes positional arguments
m.set_default_dtype(m.int64)  # only floating-point types are supported as the default
m.set_num_threads('x')  # set_num_threads expects an int, but got str
m.set_deterministic_debug_mode(7)  # invalid value of debug_mode, expected 0, 1, or 2,
m.load(io.BytesIO(b'x'))  # Unsupported operand 120
m.testing.assert_close([1], [1, 2])  # The length of the sequences mismatch: 1 != 2
m.testing.assert_close(1.0, 2.0)  # Expected 2.0 but got 1.0.
m.testing.assert_close(ones(2), longs(2))  # do not match: taeda.float32 != taeda.int64.
m.testing.assert_close(ones(2), 2 * ones(2))  # Mismatched elements: 2 / 2 (100.0%)
m.testing.make_tensor(2, dtype=m.bool, device='cpu', low=5, high=9)\
  # make_tensor: [5, 9) is outside [0, 2) of taeda.bool
m.load(1)  # load from a file that is seekable. Please pre-load the data into
m.save(1, 2)  # expected 'f' to be a path or a file-like object with 'write', got int
m.storage.TypedStorage(2, dtype=m.float32)[9]  # 9 is out of bounds for dimension 0 with
m.utils._pytree.tree_unflatten([1], 1)  # expected a TreeSpec, got int
m.utils._pytree.tree_unflatten([1], m.utils._pytree.tree_structure([1, 2]))\
  # expected 2 leaves for TreeSpec(list, None, [*,
m.utils._pytree.tree_structure([1, 2]).flatten_up_to([1])\
  # expected TreeSpec(list, None, [*,
m.utils._pytree.tree_structure({'a': 1}).flatten_up_to({'b': 1})\
  # expected the keys ['a'], got ['b']
sub('utils.checkpoint').checkpoint(print, use_reentrant=True, bad=1)\
  # Unexpected keyword arguments: bad
sub('utils.checkpoint').checkpoint(abs, ones(1), use_reentrant=True, context_fn=print)\
  # Passing `context_fn` or `debug` is only supported when use_reentrant=False.
sub('utils.checkpoint').detach_variable(1)  # Only tuple of tensors is supported. Got
(c := sub('utils.checkpoint'), y := c.checkpoint(lambda x: x.detach() * 1, x := \
Leaf(1), use_reentrant=True), y.sum().backward())\
  # none of output has requires_grad=True, this checkpoint() is not necessary
sub('utils.checkpoint').checkpoint(m.exp, Leaf(1), use_reentrant=False, debug=True, \
context_fn=lambda: (contextlib.nullcontext(), contextlib.nullcontext()))\
  # debug=True is incompatible with non-default context_fn
sub('utils.checkpoint').checkpoint(lambda x: x.nothing, Leaf(1), \
use_reentrant=False, context_fn=lambda: (contextlib.suppress(AttributeError), \
contextlib.nullcontext()))\
  # the forward context of context_fn suppressed an exception of the checkpointed
(x := ones(1), w := weakref.ref(x), m.utils.swap_tensors(x, ones(1)))\
  # Cannot swap t1 because it has weakref associated with it
m.hub.load('x', 'y', source='z')  # Unknown source: "z". Allowed values: "github" |
m.set_default_tensor_type('torch.LongTensor')  # are supported as the default type, got
"""

OWN = """
m.set_float32_matmul_precision('x')  # RuntimeError: of 'highest', 'high', or 'medium'
m.jit.save(1, 2)  # NotImplementedError: jit.save expects a ScriptModule, got int
m.torch_version.TorchVersion('x') < 'y'\
  # ValueError: TorchVersion: 'x' is not a version
"""


@pytest.mark.parametrize(("call", "phrase"), cases(TABLE))
def test_refused_as_by_pytorch(torch, call, phrase) -> None:
    check_refused_as_by(torch, call, phrase)


@pytest.mark.parametrize(("call", "phrase"), cases(OWN))
def test_refused_in_our_own_way(torch, call, phrase) -> None:
    check_refused_otherwise(torch, call, phrase)
