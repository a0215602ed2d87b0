"""Filters of guards for `options={"guard_filter_fn": ...}` of `taeda.compile`.

Each takes a list of `GuardFilterEntry` and returns which of them stay. A graph whose
guards were left out runs even where it no longer computes what the program says.
"""

from __future__ import annotations

__all__ = [
    "keep_portable_guards_unsafe",
    "keep_tensor_guards_unsafe",
    "skip_all_guards_unsafe",
    "skip_guard_on_all_nn_modules_unsafe",
    "skip_guard_on_globals_unsafe",
    "skip_guard_on_inbuilt_nn_modules_unsafe",
]


def _without(kind: str, guard_entries) -> list[bool]:
    """Keeps what is looked up in sources of other kinds (a question of the source)."""
    return [not getattr(e.orig_guard.source, kind)() for e in guard_entries]


def skip_guard_on_inbuilt_nn_modules_unsafe(guard_entries) -> list[bool]:
    """Leaves out guards on the library's own modules, such as `nn.Linear`.

    Example:
        >>> filter = taeda.compiler.skip_guard_on_inbuilt_nn_modules_unsafe
        >>> net = taeda.compile(taeda.nn.ReLU(), options={"guard_filter_fn": filter})
    """
    return _without("is_unspecialized_builtin_nn_module", guard_entries)


def skip_guard_on_all_nn_modules_unsafe(guard_entries) -> list[bool]:
    """Leaves out guards on modules and all that hangs on them.

    Example:
        >>> filter = taeda.compiler.skip_guard_on_all_nn_modules_unsafe
        >>> net = taeda.compile(taeda.nn.ReLU(), options={"guard_filter_fn": filter})
    """
    return _without("is_unspecialized_nn_module", guard_entries)


def keep_tensor_guards_unsafe(guard_entries, keep_parameters: bool = False):
    """Keeps guards on tensors alone.

    Args:
        keep_parameters: whether those on parameters stay too.

    Example:
        >>> filter = taeda.compiler.keep_tensor_guards_unsafe
        >>> net = taeda.compile(taeda.nn.ReLU(), options={"guard_filter_fn": filter})
    """
    from taeda.nn import Parameter

    return [
        entry.guard_type == "TENSOR_MATCH"
        and (keep_parameters or not isinstance(entry.value, Parameter))
        for entry in guard_entries
    ]


def keep_portable_guards_unsafe(guard_entries) -> list[bool]:
    """Keeps guards that mean something outside of Python.

    Those are what tensors that are no globals look like, sizes, and the global state
    (gradients, autocast, ...).

    Example:
        >>> filter = taeda.compiler.keep_portable_guards_unsafe
        >>> net = taeda.compile(taeda.nn.ReLU(), options={"guard_filter_fn": filter})
    """
    return [
        entry.guard_type in ("GLOBAL_STATE", "SHAPE_ENV")
        or (entry.guard_type == "TENSOR_MATCH" and not entry.is_global)
        for entry in guard_entries
    ]


def skip_guard_on_globals_unsafe(guard_entries) -> list[bool]:
    """Leaves out guards on globals.

    Example:
        >>> filter = taeda.compiler.skip_guard_on_globals_unsafe
        >>> options = {"guard_filter_fn": filter}
        >>> compiled = taeda.compile(lambda x: x + 1, options=options)
    """
    return [not entry.is_global for entry in guard_entries]


def skip_all_guards_unsafe(guard_entries) -> list[bool]:
    """Leaves out all guards.

    Example:
        >>> filter = taeda.compiler.skip_all_guards_unsafe
        >>> net = taeda.compile(taeda.nn.ReLU(), options={"guard_filter_fn": filter})
    """
    return [False] * len(guard_entries)
