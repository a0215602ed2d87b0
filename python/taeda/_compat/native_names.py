"""Names of PyTorch's `torch._C` that libraries ask for, in terms of what is here."""

from __future__ import annotations

__all__: list[str] = []

# Facts about the build.
_GLIBCXX_USE_CXX11_ABI = True
has_openmp = has_lapack = has_spectral = _has_mkldnn = True
has_mkl = _has_cuda = _has_mps = _has_xpu = False


def __getattr__(name: str):
    """Names that stand here in modules that are costlier to import."""
    if name in ("DisableTorchFunction", "DisableTorchFunctionSubclass"):
        from taeda import overrides

        return getattr(overrides, name)
    if name in ("DispatchKey", "DispatchKeySet", "_ExcludeDispatchKeyGuard"):
        from taeda import _dispatch_keys

        return getattr(_dispatch_keys, name)
    if name in ("_is_fwd_grad_enabled", "_set_fwd_grad_enabled"):
        from taeda import _C

        return getattr(_C._functorch, name[1:].removeprefix("is_"))
    if name in ("PyTorchFileReader", "PyTorchFileWriter"):
        import taeda

        return getattr(taeda, name)
    if name == "_autograd":
        from taeda._compat import native_autograd

        return native_autograd
    if name in ("_from_dlpack", "_to_dlpack"):
        from taeda import _dlpack

        return getattr(_dlpack, name[1:])
    from taeda import _autocast_names

    if name in _autocast_names.__all__:
        return getattr(_autocast_names, name)
    raise AttributeError(name)


def _host_emptyCache() -> None:
    """Give the driver back page-locked memory that nobody uses."""
    from taeda.cuda import _devices

    if _devices.is_initialized():
        _devices._driver().empty_host_cache()


def _mps_is_available() -> bool:
    """Whether there is a device of Apple's Metal: none, as `_has_mps` says."""
    return False


def _are_functorch_transforms_active() -> bool:
    """Whether a function transform is in force in this thread."""
    from taeda import _C

    return _C._functorch.in_transform()


def _is_torch_function_mode_enabled() -> bool:
    """Whether calls of this thread go through a mode of functions."""
    from taeda import _C

    return _C._is_torch_function_enabled() and _C._len_torch_function_stack() > 0


def _get_accelerator(check: bool | None = None):
    """The device of the accelerator; the CPU where there is none."""
    from taeda import accelerator, device

    return accelerator.current_accelerator() or device("cpu")


def _add_docstr(obj, doc: str):
    """Gives a function or class a docstring, and returns it."""
    obj.__doc__ = doc
    return obj


def _demangle(name: str) -> str:
    """The C++ name behind a mangled one, by libstdc++; other text as it is."""
    import ctypes

    demangle = ctypes.CDLL("libstdc++.so.6").__cxa_demangle
    demangle.restype = ctypes.c_void_p
    found = demangle(name.encode(), None, None, None)
    if not found:
        return name
    text = ctypes.string_at(found).decode()
    free = ctypes.CDLL(None).free
    free.argtypes = [ctypes.c_void_p]
    free(found)
    return text


def _infer_size(a, b):
    """The sizes that two sizes broadcast to."""
    from taeda import broadcast_shapes

    return broadcast_shapes(a, b)


def _is_alias_of(a, b) -> bool:
    """Whether two tensors lie in one storage."""
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


def _show_config() -> str:
    """See `taeda.__config__.show`."""
    from taeda import __config__

    return __config__.show()


def _parallel_info() -> str:
    """See `taeda.__config__.parallel_info`."""
    from taeda import __config__

    return __config__.parallel_info()


def _get_flash_sdp_enabled() -> bool:
    """See `backends.cuda.flash_sdp_enabled`."""
    from taeda.backends import cuda

    return cuda.flash_sdp_enabled()


def _get_mem_efficient_sdp_enabled() -> bool:
    """See `backends.cuda.mem_efficient_sdp_enabled`."""
    from taeda.backends import cuda

    return cuda.mem_efficient_sdp_enabled()


def _get_math_sdp_enabled() -> bool:
    """See `backends.cuda.math_sdp_enabled`."""
    from taeda.backends import cuda

    return cuda.math_sdp_enabled()


def _set_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """See `taeda.use_deterministic_algorithms`."""
    from taeda import use_deterministic_algorithms

    use_deterministic_algorithms(mode, warn_only=warn_only)


def _cuda_isCurrentStreamCapturing() -> bool:
    """Whether a GPU's work is recorded: there is none."""
    return False


def parse_schema(schema: str):
    """An operator's declaration, read: its name, arguments and results.

    Raises:
        RuntimeError: it is none.
    """
    from taeda._schema import Schema

    return Schema(schema)


def _get_schema(op_name: str, overload_name: str = ""):
    """The declaration of an operator, by `aten::add` and the overload's name."""
    from taeda import _ops

    namespace, _, name = op_name.rpartition("::")
    packet = getattr(getattr(_ops.ops, namespace or "aten"), name)
    return getattr(packet, overload_name or "default")._schema


def _jit_get_schemas_for_operator(op_name: str) -> list:
    """The declarations of all overloads of an operator; none where there is none."""
    from taeda import _ops

    namespace, _, name = op_name.rpartition("::")
    packet = getattr(getattr(_ops.ops, namespace or "aten"), name, None)
    overloads = packet.overloads() if packet is not None else []
    return [getattr(packet, overload)._schema for overload in overloads]


def _jit_get_all_schemas() -> list:
    """The declarations of all operators; not those of types that no value has."""
    from taeda import _C
    from taeda._schema import Schema

    found = []
    for name, _, text in _C._op_schemas():
        try:
            found.append(Schema(text, *name.split("::")[:-1]))
        except RuntimeError:
            continue
    return found


def _dispatch_has_kernel_for_dispatch_key(name: str, dispatch_key) -> bool:
    """Whether an operator, `aten::add.Tensor`, has a kernel at a key, given by name."""
    from taeda import _C

    op, _, overload = name.removeprefix("aten::").partition(".")
    return _C._op_has_kernel(op, overload, str(dispatch_key).rpartition(".")[2])


def _get_tracing_state() -> None:
    """What is being traced: nothing."""


def _log_api_usage_once(name: str) -> None:
    """Counts nothing."""


def _parse_to(*args, **kwargs):
    """(device, dtype, non_blocking, memory format) of the arguments of `Module.to`."""
    from taeda.nn.modules._convert import conversion

    return conversion(args, kwargs)
