"""Taeda: tensors, automatic differentiation and neural networks.

The interface is PyTorch's. Submodules and names that few programs need are imported
when they are first used.
"""

from __future__ import annotations

import sys as _sys

# Functions of the library are searched for when they are first called (RTLD_LAZY for
# RTLD_NOW): a program uses few of them.
_dlopen_flags = _sys.getdlopenflags()
_sys.setdlopenflags(_dlopen_flags & ~2 | 1)
try:
    from taeda import _C
finally:
    _sys.setdlopenflags(_dlopen_flags)
from taeda._C import *  # noqa: E402, F403  dtypes, devices, settings
from taeda._C import __version__  # noqa: E402
from taeda._lazy import Late as _Late  # noqa: E402
from taeda._lazy import _placeholder  # noqa: E402
from taeda._lazy import attributes as _attributes  # noqa: E402
from taeda._storage import attach as _attach  # noqa: E402
from taeda._tensor import Tensor  # noqa: E402

del TensorBase  # noqa: F821  Tensor's native half

_native = _C._VariableFunctions
globals().update(
    (name, f) for name, f in vars(_native).items() if not name.startswith("__")
)

from taeda._functions import *  # noqa: E402, F403

e = 2.718281828459045
inf = 1e400  # `float` is a dtype here
nan = inf - inf
pi = 3.141592653589793
newaxis = None
legacy_contiguous_format = _C.contiguous_format
has_openmp = has_lapack = has_spectral = True
has_mkl = False

# Names that live in submodules, by submodule.
_LAZY_NAMES = {
    "autograd.grad_mode": (
        "no_grad enable_grad set_grad_enabled inference_mode set_multithreading_enabled"
    ),
    "functional": (
        "atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors"
        " cartesian_prod cdist chain_matmul einsum istft lu meshgrid nonzero norm split"
        " stft tensordot unique unique_consecutive unravel_index"
    ),
    "_tensor_str": "set_printoptions",
    "sparse._construct": (
        "sparse_coo_tensor sparse_compressed_tensor sparse_csr_tensor sparse_csc_tensor"
        " sparse_bsr_tensor sparse_bsc_tensor dsmm hsmm saddmm spmm"
    ),
    "serialization": "load save",
    "_autocast_names": (
        "is_autocast_cpu_enabled get_autocast_cpu_dtype set_autocast_cpu_enabled"
        " set_autocast_cpu_dtype get_autocast_gpu_dtype set_autocast_gpu_dtype"
    ),
    "_buffers": "frombuffer",
    "futures": "Future",
    "_foreign_kernels": (
        "cudnn_affine_grid_generator cudnn_batch_norm cudnn_convolution"
        " cudnn_convolution_add_relu cudnn_convolution_relu"
        " cudnn_convolution_transpose cudnn_grid_sampler miopen_batch_norm"
        " miopen_convolution miopen_convolution_add_relu miopen_convolution_relu"
        " miopen_convolution_transpose miopen_ctc_loss miopen_depthwise_convolution"
        " miopen_rnn mkldnn_adaptive_avg_pool2d mkldnn_convolution"
        " mkldnn_linear_backward_weights mkldnn_max_pool2d mkldnn_max_pool3d"
        " native_norm"
    ),
    "_batch_stats": (
        "batch_norm_backward_elemt batch_norm_backward_reduce batch_norm_elemt"
        " batch_norm_gather_stats batch_norm_gather_stats_with_counts"
        " batch_norm_stats batch_norm_update_stats"
    ),
    "_fake_quantize": (
        "choose_qparams_optimized dequantize fake_quantize_per_channel_affine"
        " fake_quantize_per_tensor_affine fused_moving_avg_obs_fake_quant"
    ),
    "_packed_linear": (
        "fbgemm_linear_fp16_weight fbgemm_linear_fp16_weight_fp32_activation"
        " fbgemm_linear_int8_weight fbgemm_linear_int8_weight_fp32_activation"
        " fbgemm_linear_quantize_weight fbgemm_pack_gemm_matrix_fp16"
        " fbgemm_pack_quantized_matrix"
    ),
    "_io.file_reader": "PyTorchFileReader",
    "_io.file_writer": "PyTorchFileWriter",
    "_dispatch_keys": "DispatchKey",
    "_compat.native_names": "parse_schema",
    "storage": (
        "from_file TypedStorage DoubleStorage FloatStorage HalfStorage BFloat16Storage"
        " LongStorage IntStorage ShortStorage CharStorage ByteStorage BoolStorage"
        " ComplexDoubleStorage ComplexFloatStorage Storage StorageBase"
    ),
    "_compat.legacy_types": (
        "DoubleTensor FloatTensor HalfTensor BFloat16Tensor LongTensor IntTensor"
        " ShortTensor CharTensor ByteTensor BoolTensor"
    ),
    "amp": "autocast GradScaler",
    "_compile": "compile _disable_dynamo",
    "_higher_order_ops.cond": "cond",
    "_higher_order_ops.while_loop": "while_loop",
    "jit": "JITException ScriptModule ScriptFunction",
    "_lobpcg": "lobpcg",
    "_lowrank": "pca_lowrank svd_lowrank",
    "autograd.anomaly_mode": "set_anomaly_enabled",
    "_seldom": (
        "AVG AcceleratorError FatalError SUM ccol_indices_copy col_indices_copy"
        " crow_indices_copy indices_copy resize_as_sparse_ row_indices_copy"
        " values_copy fork wait _convert_indices_from_csr_to_coo _segment_reduce"
        " _shape_as_tensor cudnn_is_acceptable detach_copy eig"
        " frobenius_norm get_autocast_ipu_dtype"
        " get_autocast_xla_dtype init_num_threads is_autocast_ipu_enabled"
        " is_autocast_xla_enabled is_distributed is_vulkan_available lstsq matrix_rank"
        " nuclear_norm"
        " set_autocast_ipu_dtype set_autocast_ipu_enabled set_autocast_xla_dtype"
        " set_autocast_xla_enabled slice_inverse solve sym_constrain_range"
        " sym_constrain_range_for_size sym_fresh_size symeig"
    ),
    "_streams": "Event Stream",
    "_self": "torch",
    "_qschemes": (
        "per_channel_affine per_channel_affine_float_qparams per_channel_symmetric"
        " per_tensor_affine per_tensor_symmetric qscheme"
    ),
    "jit._device_type": "DeviceObjType",
    "jit._tensor_type": "TensorType",
    "_functorch.vmap": "vmap",
    "_C": (
        "is_anomaly_check_nan_enabled is_anomaly_enabled is_warn_always_enabled"
        " is_autocast_enabled set_autocast_enabled"
        " get_autocast_dtype set_autocast_dtype"
        " is_autocast_cache_enabled set_autocast_cache_enabled"
        " clear_autocast_cache autocast_increment_nesting autocast_decrement_nesting"
    ),
    "_symbols": "SymBool SymFloat SymInt",
    "_symbolic": (
        "sym_float sym_int sym_ite sym_max sym_min sym_not"
        " sym_sqrt sym_sum _assert _assert_async _check _check_index _check_is_size"
        " _check_not_implemented _check_tensor_all _check_tensor_all_with _check_type"
        " _check_value _check_with"
    ),
    "_compat.classes": "classes",
    "_ops": "ops",
    "_tags": "Tag",
    "_type_info": "finfo iinfo",
    "utils.backend_registration": "_register_device_module",
    "overrides": "DisableTorchFunction DisableTorchFunctionSubclass",
    "random": "thread_safe_generator",
    "_determinism": (
        "are_deterministic_algorithms_enabled use_deterministic_algorithms"
        " is_deterministic_algorithms_warn_only_enabled"
        " get_deterministic_debug_mode set_deterministic_debug_mode"
        " get_float32_matmul_precision set_float32_matmul_precision"
        " set_warn_always set_flush_denormal"
    ),
}
_WHERE = {n: module for module, names in _LAZY_NAMES.items() for n in names.split()}
# Where a wrapper has the name of the native that it wraps, it is the one shown.
for _name in _WHERE:
    globals().pop(_name, None)
_SUBMODULES = frozenset(
    "accelerator amp autograd backends compiler cuda cpu debug distributed"
    " distributions export fft func functional futures fx hub jit library linalg masked"
    " monitor mps mtia multiprocessing nested nn onnx optim overrides package profiler"
    " random return_types serialization signal sparse special storage testing"
    " torch_version types utils version xpu quasirandom __config__ __future__"
    " _dynamo _functorch _logging _guards _subclasses _utils _utils_internal"
    " _VF".split()
)


__getattr__ = _attributes(__name__, _WHERE, _SUBMODULES)


class _NoFile:
    """Finds modules that have no file: those of the placeholders (`_compat`)."""

    @staticmethod
    def find_spec(name: str, path=None, target=None):
        if not name.startswith("taeda."):
            return None
        from taeda._compat import find_spec

        return find_spec(name)


_sys.meta_path.append(_NoFile)


def _native_name(name: str):
    if name.startswith("__"):
        raise AttributeError(name)
    from taeda import _boxed

    found = getattr(_boxed, name, None)
    if name == "_functorch":
        found.__getattr__ = _transform_name
    if found is None:
        from taeda._compat import native_names

        found = getattr(native_names, name, None)
    if found is None:
        found = _placeholder("taeda._C", name)
    setattr(_C, name, found)
    return found


def _transform_name(name: str):
    if not name.startswith("__"):
        from taeda._functorch import nesting

        if name in nesting.__all__:
            return getattr(nesting, name)
    raise AttributeError(f"module 'taeda._C._functorch' has no attribute {name!r}")


def _first_miss(name: str):
    """Binds what most programs never touch, then looks again."""
    if name.startswith("__"):
        raise AttributeError(name)
    _C._bind_rest()
    _C.__getattr__ = _native_name
    if __name__ != "taeda":  # under as_torch
        from taeda._torch_names import adopt

        adopt("taeda._C", _C)
    return getattr(_C, name)


_C.__getattr__, _C._nn.__getattr__ = _first_miss, _native_name
_C.__path__ = []  # for imports of the modules inside of it


def __dir__():
    return sorted({*globals(), *_WHERE, *_SUBMODULES})


# What `from taeda import *` gives: the public names, without reading submodules.
__all__ = [name for name in globals() if not name.startswith("_")]
_sys.modules.setdefault("taeda._C._VariableFunctions", _native)
for _space in ("_nn", "_linalg", "_special", "_fft", "_sparse", "_nested"):
    _sys.modules.setdefault(f"taeda._C.{_space}", getattr(_C, _space))
_attach(_C.UntypedStorage)
for _owner, _names in (
    (_C.dtype, "abbr to_real to_complex __copy__ __deepcopy__"),
    (_C.layout, "__copy__ __deepcopy__"),
    (_C.memory_format, "__copy__ __deepcopy__"),
    (_C.device, "__enter__ __exit__ __call__ __reduce__"),
    (_C.Size, "numel __reduce__"),
    (
        _C.Generator,
        "get_offset set_offset graphsafe_get_state graphsafe_set_state __reduce__",
    ),
    (_C.UntypedStorage, "hpu mps"),
    (_C._NodeBase, "register_hook register_prehook __getattr__ __dir__"),
):
    for _name in _names.split():
        setattr(_owner, _name, _Late(_owner, _name))
__all__ += ["Tensor", "__version__", *_LAZY_NAMES["_type_info"].split()]
