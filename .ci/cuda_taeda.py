"""The library on CUDA devices, for a judge that knows none.

A judge that is given this name instead of the library's (`--lib cuda_taeda`, with this
folder on the path) compares what the device computes: arrays become tensors there, as
do tensors that a program makes without a device, and arrays are read from there.
"""

import sys

import taeda

_from_numpy = taeda.from_numpy
_numpy = taeda.Tensor.numpy

taeda.set_default_device("cuda")
taeda.from_numpy = lambda array: _from_numpy(array).cuda()
taeda.Tensor.numpy = lambda self, *, force=False: _numpy(self.cpu(), force=force)
sys.modules[__name__] = taeda
