"""Settings about reproducible results and precision.

Every operator of this build gives the same bits for the same input and number of
threads, but for convolutions by cuDNN on a GPU, of which `use_deterministic_algorithms`
allows the deterministic ways alone. It also switches on the filling of memory that
`empty` and `resize_` hand out.
"""

from __future__ import annotations

from taeda import _C

# Thread rule: items are written one at a time, under the interpreter's lock.
_state = {"deterministic": False, "warn_only": False, "fill": True}
_MODES = ("default", "warn", "error")


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask for deterministic algorithms, and for filled memory.

    Args:
        mode: whether it is asked. While it is, `empty` and its kin are filled with NaN
            or the dtype's largest number, unless
            `utils.deterministic.fill_uninitialized_memory` is False.
        warn_only: whether an operator that is not deterministic warns instead of
            failing; there is none.

    Raises:
        TypeError: a mode that is no bool.

    Example:
        >>> taeda.use_deterministic_algorithms(True)
        >>> taeda.empty(2)
        tensor([nan, nan])
        >>> taeda.use_deterministic_algorithms(False)
    """
    if not isinstance(mode, bool):
        raise TypeError(
            "use_deterministic_algorithms: argument 'mode' must be bool, not "
            f"{type(mode).__name__}"
        )
    _state.update(deterministic=mode, warn_only=bool(warn_only))
    _C._set_deterministic(mode)
    apply_fill(_state["fill"])


def apply_fill(wanted: bool) -> None:
    """Fill what is handed out uninitialised, if wanted and deterministic."""
    _state["fill"] = wanted
    _C._fill_uninitialized(wanted and _state["deterministic"])


def are_deterministic_algorithms_enabled() -> bool:
    """What `use_deterministic_algorithms` was last told.

    Example:
        >>> taeda.are_deterministic_algorithms_enabled()
        False
    """
    return _state["deterministic"]


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """The `warn_only` of the last `use_deterministic_algorithms`."""
    return _state["warn_only"]


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """The same setting as a word ("default", "warn", "error") or number."""
    if isinstance(debug_mode, str):
        if debug_mode not in _MODES:
            raise RuntimeError(
                f"invalid value of debug_mode, expected one of {_MODES}, "
                f"got {debug_mode!r}"
            )
        debug_mode = _MODES.index(debug_mode)
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(
            f"invalid value of debug_mode, expected 0, 1, or 2, got {debug_mode}"
        )
    use_deterministic_algorithms(debug_mode > 0, warn_only=debug_mode == 1)


def get_deterministic_debug_mode() -> int:
    """0, 1 or 2 for "default", "warn" and "error"."""
    if not _state["deterministic"]:
        return 0
    return 1 if _state["warn_only"] else 2


# The words of set_float32_matmul_precision, for CUDA and for oneDNN.
_PRECISIONS = {
    "highest": ("ieee", "ieee"),
    "high": ("tf32", "tf32"),
    "medium": ("tf32", "bf16"),
}


def get_float32_matmul_precision() -> str:
    """ "highest", "high" or "medium"."""
    from taeda.backends._switches import Precision

    cuda, dnn = (Precision(name, "matmul").read() for name in ("cuda", "mkldnn"))
    if cuda != "tf32":
        return "highest"
    return "medium" if dnn == "bf16" else "high"


def set_float32_matmul_precision(precision: str) -> None:
    """How much precision float32 products may give up.

    It sets `fp32_precision` of `backends.cuda.matmul` and `backends.mkldnn.matmul`:
    permissions that products on a GPU use and the CPU kernels do not.

    Args:
        precision: "highest", "high" (TF32) or "medium" (bfloat16).

    Raises:
        RuntimeError: another word.
    """
    if precision not in _PRECISIONS:
        raise RuntimeError(f"{precision} is not one of 'highest', 'high', or 'medium'")
    from taeda.backends._switches import Precision

    cuda, dnn = _PRECISIONS[precision]
    Precision("cuda", "matmul").write(cuda)
    Precision("mkldnn", "matmul").write(dnn)


def set_warn_always(b: bool, /) -> None:
    """Whether warnings that appear once appear every time.

    Raises:
        RuntimeError: no bool.
    """
    if not isinstance(b, bool):
        raise RuntimeError(f"set_warn_always expects a bool, but got {type(b)}")
    _C._set_warn_always(b)


def set_flush_denormal(mode: bool) -> bool:
    """Whether this thread takes denormal numbers for zeros.

    Args:
        mode: of the calling thread, and of the threads that help its operators.

    Returns:
        Whether the processor can do it; SSE can.

    Example:
        >>> taeda.set_flush_denormal(True)
        True
        >>> taeda.tensor(1e-323, dtype=taeda.float64) * 1
        tensor(0., dtype=taeda.float64)
        >>> taeda.set_flush_denormal(False)
        True
    """
    return _C._set_flush_denormal(mode)
