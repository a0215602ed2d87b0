"""Names and numbers of the ways in which a loss is reduced."""

from __future__ import annotations

from ._native import warn

_NUMBERS = {"none": 0, "mean": 1, "sum": 2}


def get_enum(reduction: str) -> int:
    """ATen's number of `reduction`.

    Raises:
        ValueError: it is none of "none", "mean", "sum".
    """
    number = _NUMBERS.get(reduction)
    if number is not None:
        return number
    if reduction == "elementwise_mean":
        warn("reduction='elementwise_mean' is deprecated, use reduction='mean'")
        return 1
    raise ValueError(f"{reduction} is not a valid value for reduction")


def legacy_get_string(size_average, reduce, emit_warning: bool = True) -> str:
    """The reduction that the old flags mean; a flag of None counts as True."""
    if reduce is not None and not reduce:
        meant = "none"
    else:
        meant = "mean" if size_average is None or size_average else "sum"
    if emit_warning:
        warn(
            "size_average and reduce args will be deprecated, please use "
            f"reduction='{meant}' instead.",
            level=5,
        )
    return meant


def legacy_get_enum(size_average, reduce, emit_warning: bool = True) -> int:
    """ATen's number of the reduction that the old flags mean."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))


def chosen(reduction: str, size_average, reduce) -> int:
    """ATen's number, the old flags taking precedence where given."""
    if size_average is not None or reduce is not None:
        reduction = legacy_get_string(size_average, reduce)
    number = _NUMBERS.get(reduction)
    return get_enum(reduction) if number is None else number


def reduced(loss, reduction: str):
    """`loss` reduced by operators rather than inside a kernel."""
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    if reduction == "none":
        return loss
    raise ValueError(f"{reduction} is not a valid value for reduction")
