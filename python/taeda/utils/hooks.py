"""Handles by which a registered hook is taken away again."""

from __future__ import annotations

from _weakref import ref

__all__ = ["RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]


class RemovableHandle:
    """Refers to one hook in a dictionary of hooks; `remove()` deletes it.

    Args:
        hooks_dict: the dictionary, keyed by handle id.
        extra_dict: further dictionaries that may hold the same id.

    Example:
        >>> handle = model.register_forward_hook(print)
        >>> handle.remove()
    """

    id: int
    next_id: int = 0

    def __init__(self, hooks_dict, *, extra_dict=None) -> None:
        extra = () if extra_dict is None else extra_dict
        self.extra_dict_ref = tuple(
            _refer(d) for d in ((extra,) if isinstance(extra, dict) else extra)
        )
        self.hooks_dict_ref = _refer(hooks_dict)
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1

    def remove(self) -> None:
        """Delete the hook; a second call does nothing."""
        for refer in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = refer()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __getstate__(self):
        extra = tuple(refer() for refer in self.extra_dict_ref)
        return (self.hooks_dict_ref(), self.id, extra)

    def __setstate__(self, state) -> None:
        hooks, self.id = state[0], state[1]
        self.hooks_dict_ref = _refer({} if hooks is None else hooks)
        extra = state[2] if len(state) > 2 else ()
        self.extra_dict_ref = tuple(_refer({} if d is None else d) for d in extra)
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, type, value, tb) -> None:
        self.remove()


def _refer(hooks):
    """A weak reference where the dictionary allows one (OrderedDict does)."""
    try:
        return ref(hooks)
    except TypeError:
        return lambda: hooks


def unserializable_hook(f):
    """Mark a hook so that pickling a tensor that carries it warns."""
    f.__torch_unserializable__ = True
    return f


def warn_if_has_hooks(tensor) -> None:
    """Warn about every hook of `tensor` that a pickle cannot carry."""
    for hook in (getattr(tensor, "_backward_hooks", None) or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            import warnings

            warnings.warn(
                f"the backward hook {hook!r} is not part of the pickle; "
                "mark it with utils.hooks.unserializable_hook to silence this",
                stacklevel=2,
            )


def __getattr__(name: str):
    if name == "BackwardHook":
        from taeda.nn.modules._backward_hook import BackwardHook

        return BackwardHook
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
