"""Which kernel computes scaled dot product attention."""

from __future__ import annotations

from taeda import _C
from taeda._choice import Choice
from taeda._lazy import attributes

__all__ = [
    "SDPBackend",
    "activate_flash_attention_impl",
    "current_flash_attention_impl",
    "list_flash_attention_impls",
    "register_flash_attention_impl",
    "restore_flash_attention_impl",
    "sdpa_kernel",
]


class SDPBackend(Choice):
    """A kernel of `scaled_dot_product_attention`.

    Example:
        >>> taeda.nn.attention.SDPBackend.MATH
        <SDPBackend.MATH: 0>
    """

    __slots__ = ()
    _values = {
        "ERROR": -1,
        "MATH": 0,
        "FLASH_ATTENTION": 1,
        "EFFICIENT_ATTENTION": 2,
        "CUDNN_ATTENTION": 3,
        "OVERRIDEABLE": 4,
    }


_KERNELS = [kind for kind in SDPBackend if kind is not SDPBackend.ERROR]


def _allowed() -> list[SDPBackend]:
    """The kernels that are switched on."""
    return [kind for kind in _KERNELS if _C._attention_enabled(int(kind))]


def _allow(backends, order) -> None:
    for kind in _KERNELS:
        _C._enable_attention(int(kind), kind in backends)
    _C._set_attention_order(order)


class sdpa_kernel:
    """Within this context only the given attention kernels are used.

    Of the kernels the CPU has MATH (products and softmax) and FLASH_ATTENTION (fused).
    Where none of those given has the case, attention raises RuntimeError. The choice is
    the process's, not the thread's, as in PyTorch; `backends.cuda` shows it too.

    Args:
        backends: an SDPBackend, or a list of them.
        set_priority: try them in the order of the list. Otherwise the fused ones come
            first.

    Raises:
        AssertionError: something else is given.

    Example:
        >>> from taeda.nn.attention import SDPBackend, sdpa_kernel
        >>> with sdpa_kernel(SDPBackend.MATH):
        ...     pass
    """

    def __init__(self, backends, set_priority: bool = False) -> None:
        if isinstance(backends, SDPBackend):
            backends = [backends]
        if not isinstance(backends, list) or not all(
            isinstance(kind, SDPBackend) for kind in backends
        ):
            raise AssertionError(
                "Backend must be an instance of SDPBackend or a list of SDPBackend "
                f"instances, got {type(backends).__name__}"
            )
        self.backends, self.set_priority = list(dict.fromkeys(backends)), set_priority

    def __enter__(self) -> dict:
        self.before, self.order = _allowed(), _C._attention_order()
        order = self.order
        if self.set_priority:
            wanted = [int(kind) for kind in self.backends if kind in _KERNELS]
            order = wanted + [kind for kind in order if kind not in wanted]
        _allow(self.backends, order)
        return {}

    def __exit__(self, *error) -> None:
        _allow(self.before, self.order)

    def __call__(self, function):
        """As a decorator: every call runs within the context."""
        from functools import wraps

        @wraps(function)
        def run(*args, **kwargs):
            with sdpa_kernel(self.backends, self.set_priority):
                return function(*args, **kwargs)

        return run


_implementations: dict = {}
_active = None


def register_flash_attention_impl(impl: str, *, register_fn) -> None:
    """Make an implementation of flash attention known.

    Args:
        impl: its name.
        register_fn: called when it is activated; may return a handle with `remove()`.
    """
    _implementations[impl] = register_fn


def activate_flash_attention_impl(impl: str) -> None:
    """Use a registered implementation of flash attention.

    Raises:
        ValueError: it is not registered.
    """
    global _active
    if impl not in _implementations:
        raise ValueError(
            f"Unknown flash attention impl '{impl}'. Available implementations: "
            f"{list_flash_attention_impls()}"
        )
    if _active is not None and _active[0] == impl:
        return
    restore_flash_attention_impl(False)
    _active = impl, _implementations[impl]()


def restore_flash_attention_impl(_raise_warn: bool = True) -> None:
    """Go back to the built-in implementation of flash attention."""
    global _active
    if _active is None:
        if _raise_warn:
            from .._native import warn

            warn("no flash attention implementation is active")
        return
    handle, _active = _active[1], None
    if handle is not None:
        handle.remove()


def current_flash_attention_impl() -> str | None:
    """The activated implementation of flash attention, or None."""
    return None if _active is None else _active[0]


def list_flash_attention_impls() -> list[str]:
    """The registered implementations of flash attention.

    Example:
        >>> isinstance(taeda.nn.attention.list_flash_attention_impls(), list)
        True
    """
    return sorted(_implementations)


__getattr__ = attributes(__name__, submodules=("bias", "flex_attention"))
