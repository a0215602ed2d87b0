"""Names of PyTorch's `torch._C` that libraries ask for, in terms of what is here."""

from __future__ import annotations

__all__: list[str] = []


def _are_functorch_transforms_active() -> bool:
    """Whether a function transform is in force in this thread."""
    from taeda import _C

    return _C._functorch.in_transform()


def _get_tracing_state() -> None:
    """What is being traced: nothing."""


def _log_api_usage_once(name: str) -> None:
    """Counts nothing."""


def _parse_to(*args, **kwargs):
    """(device, dtype, non_blocking, memory format) of the arguments of `Module.to`."""
    from taeda.nn.modules._convert import conversion

    return conversion(args, kwargs)
