"""Which kernel computes scaled dot product attention."""

from __future__ import annotations

from taeda import _C

from .._choice import Choice

__all__ = [
    "SDPBackend",
    "WARN_FOR_UNFUSED_KERNELS",
    "activate_flash_attention_impl",
    "current_flash_attention_impl",
    "list_flash_attention_impls",
    "register_flash_attention_impl",
    "restore_flash_attention_impl",
    "sdpa_kernel",
]

WARN_FOR_UNFUSED_KERNELS = False


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


# Native switch -> the kernel it allows.
_SWITCHES = {
    "cudnn": SDPBackend.CUDNN_ATTENTION,
    "flash": SDPBackend.FLASH_ATTENTION,
    "mem_efficient": SDPBackend.EFFICIENT_ATTENTION,
    "math": SDPBackend.MATH,
    "overrideable": SDPBackend.OVERRIDEABLE,
}


def _allowed() -> list[SDPBackend]:
    """The kernels that are switched on; all where there is no switch."""
    found = []
    for name, backend in _SWITCHES.items():
        ask = getattr(_C, f"_get_{name}_sdp_enabled", None)
        if ask is None or ask():
            found.append(backend)
    return found


def _order():
    ask = getattr(_C, "_get_sdp_priority_order", None)
    return None if ask is None else list(ask())


def _allow(backends, order=None) -> None:
    for name, backend in _SWITCHES.items():
        switch = getattr(_C, f"_set_sdp_use_{name}", None)
        if switch is not None:
            switch(backend in backends)
    if order is not None and hasattr(_C, "_set_sdp_priority_order"):
        _C._set_sdp_priority_order(order)


class sdpa_kernel:
    """Within this context only the given attention kernels are used.

    Args:
        backends: an SDPBackend, or a list of them.
        set_priority: try them in the order of the list.

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
        if not isinstance(backends, list):
            raise AssertionError(
                "Backend must be an instance of SDPBackend or a list of SDPBackend "
                f"instances, got {type(backends).__name__}"
            )
        self.backends, self.set_priority = list(dict.fromkeys(backends)), set_priority

    def __enter__(self) -> dict:
        self.before, self.order = _allowed(), _order()
        order = None
        if self.set_priority and self.order is not None:
            wanted = [int(backend) for backend in self.backends]
            order = wanted + [b for b in self.order if b not in wanted]
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


def __getattr__(name: str):
    if name in ("bias", "flex_attention"):
        from importlib import import_module

        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
