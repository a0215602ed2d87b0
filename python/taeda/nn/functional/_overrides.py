"""The override protocol and small helpers that torch.nn.functional shows too."""

from __future__ import annotations

from taeda.overrides import handle_torch_function

from .._native import overrides_any, overrides_in, overrides_one

__name__ = __package__
__all__ = [
    "BroadcastingList1",
    "BroadcastingList2",
    "BroadcastingList3",
    "assert_int_or_pair",
    "boolean_dispatch",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
]

has_torch_function = overrides_in
has_torch_function_unary = overrides_one
has_torch_function_variadic = overrides_any


class _BroadcastingList:
    """Annotation of "one value, or a list of n"; `X[int]` is `X` again."""

    def __getitem__(self, kind):
        return None


BroadcastingList1, BroadcastingList2, BroadcastingList3 = (
    _BroadcastingList() for _ in range(3)
)


def boolean_dispatch(
    arg_name, arg_index, default, if_true, if_false, module_name, func_name
):
    """One function that calls `if_true` or `if_false` as a flag argument says.

    Args:
        arg_name, arg_index: the flag's name and position.
        default: its value when absent.
        if_true, if_false: called with all arguments.
        module_name, func_name: how the result calls itself.
    """

    def choose(*args, **kwargs):
        placed = args[arg_index] if arg_index < len(args) else default
        flag = kwargs.get(arg_name, placed)
        return (if_true if flag else if_false)(*args, **kwargs)

    choose.__doc__ = if_true.__doc__ or if_false.__doc__
    if module_name is not None:
        choose.__module__ = module_name
    if func_name is not None:
        choose.__name__ = func_name
    return choose


def assert_int_or_pair(arg, arg_name: str, message: str) -> None:
    """Check that `arg` is an int or has two entries.

    Raises:
        AssertionError: with `message`, formatted with `arg_name`.
    """
    if not isinstance(arg, int) and len(arg) != 2:
        raise AssertionError(message.format(arg_name))
