"""CUDA's switches, and the kernels of attention.

`flash` and `math` are what the CPU has of attention, and both switches hold there; a
GPU has `mem_efficient` too. `cudnn` is kept: there is no kernel of that name. The
switches of attention are the process's, not the thread's, as in PyTorch.
"""

from __future__ import annotations

from typing import NamedTuple

from taeda import _C, Tensor
from taeda._lazy import attributes

from ._switches import Kept, NarrowSums, Precision

__all__ = [
    "SDPAParams",
    "allow_fp16_bf16_reduction_math_sdp",
    "can_use_cudnn_attention",
    "can_use_efficient_attention",
    "can_use_flash_attention",
    "cuBLASModule",
    "cudnn_sdp_enabled",
    "enable_cudnn_sdp",
    "enable_flash_sdp",
    "enable_math_sdp",
    "enable_mem_efficient_sdp",
    "flash_sdp_enabled",
    "fp16_bf16_reduction_math_sdp_allowed",
    "is_built",
    "is_ck_sdpa_available",
    "is_flash_attention_available",
    "math_sdp_enabled",
    "matmul",
    "mem_efficient_sdp_enabled",
    "sdp_kernel",
]


def is_built() -> bool:
    """Whether the build has CUDA kernels."""
    return False


def is_flash_attention_available() -> bool:
    """Whether there is a GPU, which then has the flash kernel."""
    from taeda import cuda

    return cuda.is_available()


class cuBLASModule:
    """Permissions of products on the GPU.

    allow_tf32: the same as fp32_precision = "tf32", which see `_switches.Precision`.
    allow_fp16_reduced_precision_reduction, allow_bf16_reduced_precision_reduction:
    sums that are added up in parts may have these parts in the small dtype.
    allow_fp16_accumulation: a permission that is not used yet: sums of float16 are
    float32's.
    """

    __slots__ = ("_switches",)

    def __init__(self) -> None:
        switches: dict = {
            f"allow_{dtype}_reduced_precision_reduction": NarrowSums(dtype)
            for dtype in ("fp16", "bf16")
        }
        name = "allow_fp16_accumulation"
        switches[name] = Kept(f"backends.cuda.matmul.{name}", False)
        switches["fp32_precision"] = Precision("cuda", "matmul")
        switches["allow_tf32"] = self
        object.__setattr__(self, "_switches", switches)

    def __getattr__(self, name: str):
        if name not in self._switches:
            raise AttributeError(f"Unknown attribute {name}")
        return self._switches[name].read()

    def __setattr__(self, name: str, value) -> None:
        if name not in self._switches:
            raise AttributeError(f"Unknown attribute {name}")
        self._switches[name].write(value)

    def read(self) -> bool:
        """allow_tf32."""
        return self.fp32_precision == "tf32"

    def write(self, value: bool) -> None:
        """Set allow_tf32, and with it the precision of all float32 products."""
        from taeda import set_float32_matmul_precision

        set_float32_matmul_precision("high" if value else "highest")


matmul = cuBLASModule()
_WAYS = {"math": 0, "flash": 1, "mem_efficient": 2, "cudnn": 3}


def _functions(name: str):
    """`NAME_sdp_enabled` and `enable_NAME_sdp`."""
    way = _WAYS[name]

    def enabled() -> bool:
        return _C._attention_enabled(way)

    def enable(enabled: bool) -> None:
        if not isinstance(enabled, bool):
            raise RuntimeError(
                f"enable_{name}_sdp expects a bool, but got {type(enabled).__name__}"
            )
        _C._enable_attention(way, enabled)

    enabled.__name__, enable.__name__ = f"{name}_sdp_enabled", f"enable_{name}_sdp"
    enabled.__doc__ = f"Whether attention may use its kernel {name!r}."
    enable.__doc__ = f"Allow or forbid attention's kernel {name!r}."
    return enabled, enable


math_sdp_enabled, enable_math_sdp = _functions("math")
flash_sdp_enabled, enable_flash_sdp = _functions("flash")
mem_efficient_sdp_enabled, enable_mem_efficient_sdp = _functions("mem_efficient")
cudnn_sdp_enabled, enable_cudnn_sdp = _functions("cudnn")


_half_sums = Kept("set_sdp_use_math", False)


def fp16_bf16_reduction_math_sdp_allowed() -> bool:
    """Whether attention's kernel "math" may sum in half precision; it never does."""
    return _half_sums.read()


def allow_fp16_bf16_reduction_math_sdp(enabled: bool) -> None:
    """Allow or forbid that; RuntimeError for what is no bool."""
    _half_sums.write(enabled)


def sdp_kernel(
    enable_flash: bool = True,
    enable_math: bool = True,
    enable_mem_efficient: bool = True,
    enable_cudnn: bool = True,
):
    """The kernels that attention may use within a `with` block.

    Older form of `nn.attention.sdpa_kernel`.
    """
    from taeda.nn.attention import SDPBackend, sdpa_kernel

    wanted = {
        SDPBackend.FLASH_ATTENTION: enable_flash,
        SDPBackend.MATH: enable_math,
        SDPBackend.EFFICIENT_ATTENTION: enable_mem_efficient,
        SDPBackend.CUDNN_ATTENTION: enable_cudnn,
    }
    return sdpa_kernel([kind for kind, on in wanted.items() if on])


class SDPAParams(NamedTuple):
    """The arguments of an attention, to ask about."""

    query: Tensor
    key: Tensor
    value: Tensor
    attn_mask: Tensor | None
    dropout: float
    is_causal: bool
    enable_gqa: bool


def can_use_flash_attention(params: SDPAParams, debug: bool = False) -> bool:
    """Whether the GPU's kernel of this name computes it, which is False on the CPU.

    Args:
        params: the call's arguments.
        debug: warn why not.
    """
    return _is_computed("flash", params, debug)


def can_use_efficient_attention(params: SDPAParams, debug: bool = False) -> bool:
    """Whether the GPU's memory-efficient kernel computes it, as above."""
    return _is_computed("mem_efficient", params, debug)


def can_use_cudnn_attention(params: SDPAParams, debug: bool = False) -> bool:
    """Whether cuDNN computes it: False, as above."""
    return _is_computed("cudnn", params, debug)


def _is_computed(name: str, params: SDPAParams, debug: bool) -> bool:
    if params.query.is_cuda:
        reason = _C._attention_refusal(_WAYS[name], *params)
    else:
        reason = "it is not there on this device"
    if debug and reason is not None:
        import warnings

        text = f"CUDA's kernel of {name} attention does not apply: {reason}"
        warnings.warn(text, stacklevel=3)
    return reason is None


def is_ck_sdpa_available() -> bool:
    """Whether attention may use AMD's Composable Kernel: False."""
    return False


_CHOICES = (
    "blas_workspace_size cuFFTPlanCache cuFFTPlanCacheAttrContextProp"
    " cuFFTPlanCacheManager cublas_workspace_size cublaslt_workspace_size"
    " cufft_plan_cache preferred_blas_library preferred_linalg_library"
    " preferred_rocm_fa_library"
)
__getattr__ = attributes(
    __name__,
    {
        "SDPBackend": "..nn.attention",
        **dict.fromkeys(_CHOICES.split(), "._cuda_choices"),
    },
)
