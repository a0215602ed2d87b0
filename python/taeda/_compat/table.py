"""The placeholders, by module: what packages name while they are imported.

    Name           a class: isinstance answers False, making one is refused
    Name(Base)     the same with a base class, for packages that derive from it
    name()         a function that refuses
    Name=module    the same object as that module's

A module that is only here is made of its line alone; an empty line makes an empty
module. Overloads of operators stand under "ops:NAMESPACE". The packages are listed in
test/python/package/test_placeholders.py.
"""

from __future__ import annotations

__all__ = ["TABLE"]

TABLE = {
    "": "PyTorchFileReader Stream",
    "_C": "Graph Value",
    "_dynamo.config": "",
    "autograd.profiler": "EventList(builtins.list) emit_nvtx profile",
    "cuda": "CUDAGraph StreamContext graph",
    "distributed": "ProcessGroup",
    "distributed.device_mesh": "DeviceMesh=distributed.tensor",
    "distributed.rpc": "",
    "distributed.tensor": "DTensor DeviceMesh Partial Replicate Shard"
    " distribute_tensor()",
    "fft": "fft() fftn() ifft() ifftn() irfft() rfft()",
    "nn.parallel": "DistributedDataParallel=nn.parallel.distributed",
    "nn.parallel.distributed": "DistributedDataParallel(nn.Module)",
    "onnx": "ONNXProgram",
    "ops:aten": "_pin_memory.default() _sparse_addmm.default()"
    " _sparse_mm_reduce_impl.default()",
    "profiler": "profile tensorboard_trace_handler()",
}
