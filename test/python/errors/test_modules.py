"""Modules of nn: what they refuse."""

from __future__ import annotations

import pytest
from refusals import cases, check_refused_as_by, check_refused_otherwise

TABLE = """
nn.factory_kwargs({'bad': 1})  # unexpected kwargs {'bad'}
nn.factory_kwargs({'dtype': 1, 'factory_kwargs': {'dtype': 2}})\
  # dtype specified twice, in **kwargs and in factory_kwargs
nn.attention.nothing  # module 'taeda.nn.attention' has no attribute 'nothing'
nn.attention.activate_flash_attention_impl('x')  # Unknown flash attention impl 'x'.
F._none_or_dtype(1)  # input to _none_or_dtype() must be None or torch.Tensor
nn.init.eye_(ones(2))  # Only tensors with 2 dimensions are supported
nn.init.dirac_(ones(2))  # Only tensors with 3, 4, or 5 dimensions are supported
nn.init.dirac_(ones(3, 2, 2), 2)  # dim 0 must be divisible by groups
nn.init.xavier_uniform_(ones(2))  # out can not be computed for tensor with fewer than 2
nn.init.orthogonal_(ones(2))  # Only tensors with 2 or more dimensions are supported
nn.init.sparse_(ones(2), 0.1)  # Only tensors with 2 dimensions are supported
nn.init.calculate_gain('leaky_relu', 'x')  # negative_slope x not a valid number
nn.init.calculate_gain('x')  # Unsupported nonlinearity x
nn.init.kaiming_uniform_(ones(2, 2), mode='x')  # use one of ['fan_in', 'fan_out']
nn.modules.nothing  # module 'taeda.nn.modules' has no attribute 'nothing'
nn.LazyConv2d(3, 2, groups=2)(ones(1, 3, 4, 4))  # in_channels must be divisible by
nn.LazyConv2d(3, 2)(ones(4, 4))  # or 4D (batched) input to LazyConv2d, but got input of
nn.Module().set_extra_state(1)  # Module defines no set_extra_state()
nn.Linear(1, 1).set_submodule('a', 1)  # is not an nn.Module, found <class 'int'>
nn.Linear(1, 1).set_submodule('weight', nn.Linear(1, 1))  # `weight` is not an nn.Module
nn.Hardtanh(1, -1)  # must be larger than min_val, but got min_val=1 and max_val=-1
nn.Softmax2d()(ones(2, 2))  # Softmax2d: expected input to be 3D or 4D, got 2D instead
nn.AdaptiveLogSoftmaxWithLoss(4, 8, [])  # should be a sequence of length larger than 0
nn.AdaptiveLogSoftmaxWithLoss(4, 8, [3, 2])  # each value is between 1 and n_classes-1
nn.AdaptiveLogSoftmaxWithLoss(4, 8, [3])(ones(2, 4), longs(2, 2))\
  # 0D or 1D target tensor expected, multi-target not supported
nn.AdaptiveLogSoftmaxWithLoss(4, 8, [3])(ones(4), longs(2))\
  # 1D target tensor expects 2D input tensors, but found inputs with size
nn.AdaptiveLogSoftmaxWithLoss(4, 8, [3])(ones(2, 4), longs(3))\
  # Input and target should have the same size in the batch dimension.
nn.AdaptiveLogSoftmaxWithLoss(4, 8, [3])(ones(2, 4), T([0, 9]))\
  # Target values should be in [0, 7], but values in range [0, 9] were found.
nn.MultiheadAttention(0, 1)  # and num_heads must be greater than 0, got embed_dim=0 and
nn.modules.batchnorm._BatchNorm(2)(ones(2, 2))  # _BatchNorm does not define
nn.BatchNorm2d(2)(ones(2, 2))  # expected 4D input (got 2D input)
nn.SyncBatchNorm(2)(ones(2))  # expected at least 2D input (got 1D input)
nn.SyncBatchNorm(2)(ones(2, 0))  # SyncBatchNorm number of input channels should be
nn.Sequential()[0]  # index 0 is out of range
nn.Sequential(nn.ReLU()) + 1  # objects of Sequential class, but <class 'int'> is given.
nn.Sequential(nn.ReLU()) * 'a'  # for *: <class 'taeda.nn.modules.container.Sequential'>
nn.Sequential(nn.ReLU()) * 0  # 0 for <class 'taeda.nn.modules.container.Sequential'>
nn.Sequential().insert(0, 1)  # be of type: <class 'taeda.nn.modules.module.Module'>
nn.Sequential().insert(5, nn.ReLU())  # Index out of range: 5
nn.ModuleList().extend(1)  # ModuleList.extend should be called with an iterable, but
nn.ModuleDict().update(1)  # be called with an iterable of key/value pairs, but got int
nn.ModuleDict().update([1])  # ModuleDict update sequence element #0 should be Iterable;
nn.ModuleDict().update([(1,)])  # ModuleDict update sequence element #0 has length 1; 2
nn.ParameterList().extend(1)  # ParameterList.extend should be called with an iterable,
nn.ParameterList()(1)  # ParameterList should not be called.
nn.ParameterDict()(1)  # ParameterDict should not be called.
nn.ParameterDict({1: ones(1)})  # be used as a key as it is not a string (type is 'int')
nn.ParameterDict().popitem()  # 'popitem(): ParameterDict is empty'
nn.Conv2d(2, 2, 1, groups=0)  # groups must be a positive integer
nn.Conv2d(2, 2, 1, padding_mode='x')  # must be one of ('zeros', 'reflect', 'replicate',
nn.Conv2d(3, 2, 1, groups=2)  # in_channels must be divisible by groups
nn.Conv2d(2, 2, 1, padding='x')  # Invalid padding string 'x', should be one of ('same',
nn.Conv2d(2, 2, 1, 2, padding='same')  # padding='same' is not supported for strided
nn.ConvTranspose2d(2, 2, 1, padding_mode='reflect')\
  # Only "zeros" padding mode is supported for ConvTranspose2d
nn.ConvTranspose2d(2, 2, 1)(ones(1, 2, 2, 2), output_size=(1, 1, 1))\
  # ConvTranspose2D: for 4D input, output_size must have 2 or 4 elements (got 3)
nn.ConvTranspose2d(2, 2, 1)(ones(1, 2, 2, 2), output_size=(9, 9))\
  # requested an output size of (9, 9), but valid sizes range from [2, 2] to [2, 2]
setattr(c := nn.ConvTranspose2d(2, 2, 1), 'padding_mode', 'reflect') or c(ones(1, 2, \
2, 2))\
  # Only `zeros` padding mode is supported for ConvTranspose2d
nn.Dropout(2)  # dropout probability has to be between 0 and 1, but got 2
nn.Unflatten(0, 'x')  # unflattened_size must be a tuple of ints, but found type str
nn.Unflatten(0, ('a', 2))  # be tuple of ints, but found element of type str at pos 0
nn.InstanceNorm1d(2, affine=True)(ones(1, 3, 4))  # match num_features (2), but got: 3.
nn.modules.lazy.LazyModuleMixin.initialize_parameters(nn.LazyLinear(2))\
  # initialize_parameters is not implemented for LazyLinear
nn.LazyLinear(2)._replicate_for_data_parallel()  # Modules with uninitialized parameters
nn.Bilinear(0, 1, 1)  # in1_features must be > 0, but got 0
nn.LinearCrossEntropyLoss(4, 3)(ones(2, 2, 2, 4), longs(2))\
  # expected input with dimensionality 1 or 2, got 4
nn.LinearCrossEntropyOptions(acc_policy='x')  # invalid acc_policy: 'x'
nn.LinearCrossEntropyOptions(batch_chunk_size=0)  # must be positive int or None, got 0
nn.LinearCrossEntropyOptions(acc_dtype='x')  # one of ('float16', 'bfloat16', 'float32',
nn.LinearCrossEntropyOptions(chunking_method='x')  # invalid chunking_method: 'x'
nn.TripletMarginLoss(margin=0)  # expected margin to be greater than 0, got 0 instead
nn.LinearCrossEntropyLoss(4, 3, weight=ones(2))  # weight shape to be (3,), got (2,)
nn.LinearCrossEntropyLoss(4, 3, label_smoothing=2)  # to be in range [0, 1], got 2
nn.HuberLoss(delta='x')  # delta must be a float or int, got: <class 'str'>
nn.MultiMarginLoss(p=3)  # only p == 1 and p == 2 supported
nn.MultiMarginLoss(weight=ones(2, 2))  # expected weight to be None or 1D tensor, got 2D
type('M', (nn.Module,), {'__init__': lambda s: None})().register_buffer('a', None)\
  # cannot assign buffer before Module.__init__() call
setattr(nn.Sequential(nn.ReLU()), '0', 1)  # cannot assign 'int' as child module '0'
setattr(nn.BatchNorm1d(1), 'running_mean', 1)  # assign 'int' as buffer 'running_mean'
setattr(type('M', (nn.Module,), {'register_buffer': lambda s, n, t: None})(), 'a', \
nn.Buffer(ones(1), persistent=False))\
  # has no argument `persistent`, so the non-persistent buffer 'a' cannot be
nn.CrossMapLRN2d(2)(ones(2))  # CrossMapLRN2d: Expected input to be 4D, got 1D instead.
nn.GroupNorm(2, 3)  # num_channels (3) must be divisible by num_groups (2)
nn.FractionalMaxPool2d(2)  # FractionalMaxPool2d requires specifying either an output
nn.FractionalMaxPool2d(2, output_ratio=(2, 2))  # must be between 0 and 1 (got (2, 2))
nn.RNN(2, 2, dropout=2)  # dropout should be a number in range [0, 1] representing the
nn.LSTM(2, 2, proj_size=-1)  # proj_size should be a positive integer or zero to disable
nn.LSTM(2, 2, proj_size=2)  # proj_size has to be smaller than hidden_size
nn.modules.rnn.RNNBase('x', 2, 2)  # Unrecognized RNN mode: x
nn.RNN(2, 2, proj_size=1)  # proj_size argument is only supported for LSTM, not RNN or
nn.RNN('x', 2)  # input_size should be of type int, got: str
nn.RNN(2, 0)  # hidden_size must be greater than zero
nn.RNN(2, 2)(doubles(1, 1, 2))  # RNN input dtype (taeda.float64) does not match weight
nn.RNN(2, 2)(ones(1, 1, 3))  # input.size(-1) must be equal to input_size. Expected 2,
nn.RNN(2, 2)(ones(1, 1, 2), ones(1, 2, 2))  # Expected hidden size (1, 1, 2), got [1, 2,
nn.RNN(2, 2)(ones(1, 2), ones(1, 1, 2))  # 2-D input, hx should also be 2-D but got 3-D
nn.RNN(2, 2)(ones(1, 1, 2), ones(1, 2))  # 3-D input, hx should also be 3-D but got 2-D
nn.RNN(2, 2)(ones(2))  # RNN: Expected input to be 2D or 3D, got 1D tensor instead
nn.LSTM(2, 2)(ones(1, 2), (ones(1, 1, 2), ones(1, 1, 2)))\
  # For unbatched 2-D input, hx and cx should also be 2-D but got (3-D, 3-D) tensors
nn.RNN(2, 2).check_input(ones(2), None)  # input must have 3 dimensions, got 1
nn.RNN(2, 2, nonlinearity='x')  # nonlinearity 'x'. Select from 'tanh' or 'relu'.
nn.RNNCell(2, 2, nonlinearity='x')(ones(2))  # Unknown nonlinearity: x
nn.RNNCell(2, 2)(ones(1, 1, 2))  # RNNCell: Expected input to be 1D or 2D, got 3D
nn.Embedding.from_pretrained(ones(2))  # parameter is expected to be 2-dimensional
nn.Embedding(2, 2, _weight=ones(3, 3))  # Shape of weight does not match num_embeddings
nn.Embedding(2, 2, padding_idx=5)  # Padding_idx must be within num_embeddings
nn.TransformerEncoderLayer(4, 2, activation='x')  # activation should be relu/gelu, not
nn.Transformer(4, 2, 1, 1, 4)(ones(2, 1, 4), ones(2, 3, 4))\
  # the batch number of src and tgt must be equal
nn.Transformer(4, 2, 1, 1, 4)(ones(2, 1, 5), ones(2, 1, 5))\
  # the feature number of src and tgt must be equal to d_model
nn.modules.utils._list_with_default([1, 2], [1])  # Input dimension should be at least 3
nn.parameter.UninitializedParameter().shape  # an uninitialized parameter or buffer: run
nn.parameter.UninitializedParameter().share_memory_()\
  # Can't share memory on an uninitialized parameter or buffer: run the module's
nn.parameter.UninitializedParameter() + 1  # in <method 'add' of 'taeda._C.TensorBase'
nn.Parameter(type('X', (m.Tensor,), {'detach': lambda s: m.ones(1)})())\
  # requires that detach() returns an instance of the same type
(l := nn.LazyLinear(2), setattr(l, 'initialize_parameters', lambda *a: None), \
l(ones(1, 3)))\
  # module LazyLinear has not been fully initialized
(l := nn.Linear(2, 2), l.register_full_backward_hook(lambda *a: (ones(1),)), \
l(ones(2)).sum().backward())\
  # Backward hook for Modules where no input requires gradient should always return
nn.Transformer(bad=1)  # Transformer.__init__() got an unexpected keyword argument 'bad'
nn.Linear(2, 2, device='meta').to('cpu')  # Cannot copy out of meta tensor [2, 2] f32
nn.Module().load_state_dict({'_extra_state': 1})  # Error(s) in loading state_dict for
nn.Linear(1, 1).set_submodule('', nn.Linear(1, 1))  # Cannot set the submodule without a
nn.Linear(1, 1).get_submodule('a')  # Linear has no attribute `a`
nn.Linear(1, 1).get_submodule('weight')  # `weight` is not an nn.Module
nn.MultiheadAttention(4, 3)  # embed_dim must be divisible by num_heads
nn.ModuleDict({'a': 1})  # int is not a Module subclass
nn.ModuleList()(1)  # Module [ModuleList] is missing the required "forward" function
setattr(type('M', (nn.Module,), {'__init__': lambda s: None})(), 'a', \
nn.Parameter(ones(1)))\
  # cannot assign parameters before Module.__init__() call
setattr(type('M', (nn.Module,), {'__init__': lambda s: None})(), 'a', nn.Linear(1, 1))\
  # cannot assign module before Module.__init__() call
nn.Module().register_buffer('a', 1)  # cannot assign 'int' object to buffer 'a' (torch
nn.Module().register_buffer(1, None)  # buffer name should be a string. Got int
nn.Module().register_buffer('a.b', None)  # contain ".", got: a.b'
nn.Module().register_buffer('', None)  # be empty string ""'
nn.Linear(1, 1).register_buffer('forward', None)  # "attribute 'forward' already exists"
nn.Module().register_parameter('a', 1)  # cannot assign 'int' object to parameter 'a'
setattr(nn.Linear(1, 1), 'weight', 1)  # cannot assign 'int' as parameter 'weight'
nn.Module(1)  # Module.__init__() takes 1 positional argument but 2 were given
nn.Linear(1, 1).load_state_dict(1)  # state_dict to be dict-like, got <class 'int'>.
nn.Linear(1, 1).get_buffer('weight')  # `weight` is not a buffer
nn.Linear(1, 1).get_extra_state()  # Linear defines no get_extra_state()
nn.Linear(1, 1).to(m.int64)  # or complex dtypes, but got desired dtype=taeda.int64
nn.Linear(1, 1).to(1, 2, 3, 4, 5)  # non_blocking), got dtype=2, non_blocking=3, copy=4
(l := nn.Linear(2, 2), l.register_backward_hook(print), \
l.register_full_backward_hook(print))\
  # Cannot use both regular backward hooks and full backward hooks on a single
nn.Module().register_parameter('a', (Leaf(1) * 1).as_subclass(nn.Parameter))\
  # Cannot assign non-leaf Tensor to parameter 'a': parameters are leaves; compute
"""

OWN = """
setattr(nn.LinearCrossEntropyOptions(), 'x', 1)\
  # AttributeError: cannot assign to field 'x'
delattr(nn.LinearCrossEntropyOptions(), 'acc_policy')\
  # AttributeError: cannot delete field 'acc_policy'
nn.FractionalMaxPool2d(0, 1)  # ValueError: kernel_size must be greater than 0, but got
"""


@pytest.mark.parametrize(("call", "phrase"), cases(TABLE))
def test_refused_as_by_pytorch(torch, call, phrase) -> None:
    check_refused_as_by(torch, call, phrase)


@pytest.mark.parametrize(("call", "phrase"), cases(OWN))
def test_refused_in_our_own_way(torch, call, phrase) -> None:
    check_refused_otherwise(torch, call, phrase)
