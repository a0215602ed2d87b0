"""Forward and backward hooks of modules, and the call that runs them.

A module that never had a hook is called without looking for any: its hook
dictionaries do not exist until something asks for one, and asking sets the
module's `_hooked` flag (see docs/design/nn.md).
"""

from __future__ import annotations

from collections import OrderedDict
from weakref import ref

import taeda
from taeda.utils.hooks import RemovableHandle

# Hook dictionaries whose existence makes a module take the long way of a call.
CALL_TABLES = frozenset(
    (
        "_forward_hooks",
        "_forward_hooks_with_kwargs",
        "_forward_hooks_always_called",
        "_forward_pre_hooks",
        "_forward_pre_hooks_with_kwargs",
        "_backward_hooks",
        "_backward_pre_hooks",
        "_compiled_call_impl",
    )
)
STATE_TABLES = frozenset(
    (
        "_state_dict_hooks",
        "_state_dict_pre_hooks",
        "_load_state_dict_pre_hooks",
        "_load_state_dict_post_hooks",
    )
)

# Hooks of all modules, by the four times at which they run, ...
_GLOBAL_TABLES = tuple(OrderedDict() for _ in range(4))
_global_forward_pre_hooks, _global_forward_hooks = _GLOBAL_TABLES[:2]
_global_backward_pre_hooks, _global_backward_hooks = _GLOBAL_TABLES[2:]
# ... and the ids of the forward hooks among them that asked for more.
_global_forward_hooks_always_called, _global_forward_hooks_with_kwargs = (
    OrderedDict() for _ in range(2)
)
_global_is_full_backward_hook: bool | None = None
# Set by the first global hook; from then on every call takes the long way.
_any_global = False

_MIXED = (
    "Cannot use both regular backward hooks and full backward hooks {}. "
    "Please use only one of them."
)


def _has_any_global_hook():
    return any(_GLOBAL_TABLES)


def _add(table, hook, extra=None, prepend=False):
    handle = RemovableHandle(table, extra_dict=extra)
    table[handle.id] = hook
    if prepend:
        table.move_to_end(handle.id, last=False)
    return handle


def _add_global(table, hook, extra=None):
    global _any_global
    _any_global = True
    return _add(table, hook, extra)


def register_module_forward_pre_hook(hook):
    """Call `hook(module, args)` before the forward of every module.

    Returns:
        RemovableHandle: `remove()` takes the hook away.

    Example:
        >>> from taeda.nn.modules import module
        >>> handle = module.register_module_forward_pre_hook(lambda m, args: None)
        >>> handle.remove()
    """
    return _add_global(_global_forward_pre_hooks, hook)


def register_module_forward_hook(hook, *, with_kwargs=False, always_call=False):
    """Call `hook(module, args, output)` after the forward of every module.

    Args:
        hook: what it returns, unless None, replaces the output.
        with_kwargs: call `hook(module, args, kwargs, output)`.
        always_call: also when forward raises.
    """
    extra = [_global_forward_hooks_always_called, _global_forward_hooks_with_kwargs]
    handle = _add_global(_global_forward_hooks, hook, extra)
    for wanted, flags in zip((always_call, with_kwargs), extra, strict=True):
        if wanted:
            flags[handle.id] = True
    return handle


def _global_backward(hook, full):
    global _global_is_full_backward_hook
    if _global_is_full_backward_hook is (not full):
        raise RuntimeError(_MIXED.format("as a global Module hook"))
    _global_is_full_backward_hook = full
    return _add_global(_global_backward_hooks, hook)


def register_module_backward_hook(hook):
    """Deprecated form of `register_module_full_backward_hook`."""
    return _global_backward(hook, False)


def register_module_full_backward_pre_hook(hook):
    """Call `hook(module, grad_output)` before the backward of every module."""
    return _add_global(_global_backward_pre_hooks, hook)


def register_module_full_backward_hook(hook):
    """Call `hook(module, grad_input, grad_output)` after every module's backward."""
    return _global_backward(hook, True)


class _WrappedHook:
    """A hook that is given its module, held weakly so that it may die."""

    def __init__(self, hook, module=None) -> None:
        self.hook = hook
        self.with_module = module is not None
        self.__name__ = getattr(hook, "__name__", type(hook).__name__)
        self.__doc__ = hook.__doc__
        if module is not None:
            self.module = ref(module)

    def __call__(self, *args, **kwargs):
        if self.with_module:
            args = (_living(self.module(), "call"), *args)
        return self.hook(*args, **kwargs)

    def __getstate__(self):
        module = self.module() if self.with_module else None
        return {"hook": self.hook, "with_module": self.with_module, "module": module}

    def __setstate__(self, state) -> None:
        module = state.get("module")
        if state["with_module"]:
            _living(module, "revive")
        self.__init__(state["hook"], module)


def _living(module, purpose):
    if module is None:
        raise RuntimeError(f"You are trying to {purpose} the hook of a dead Module!")
    return module


class HookedCall:
    """One call of a module with hooks: what goes in, what came out, who ran."""

    __slots__ = ("args", "fired", "kwargs", "module", "result", "tables")

    def __init__(self, module, args, kwargs) -> None:
        self.module, self.args, self.kwargs = module, args, kwargs
        self.tables = module.__dict__.get
        self.result, self.fired = None, set()

    def run(self):
        """All hooks around forward, in torch's order."""
        module, get = self.module, self.tables
        pre = full = plain = around = None
        if (
            get("_backward_hooks")
            or get("_backward_pre_hooks")
            or _global_backward_hooks
            or _global_backward_pre_hooks
        ):
            pre, full, plain = self._backward_lists()
        if get("_forward_pre_hooks") or _global_forward_pre_hooks:
            self._before()
        if full or pre:
            from ._backward_hook import BackwardHook

            around = BackwardHook(module, full, pre)
            self.args = around.setup_input_hook(self.args)
        self.result = module.forward(*self.args, **self.kwargs)
        if get("_forward_hooks") or _global_forward_hooks:
            self._after()
        if around is not None:
            if not isinstance(self.result, (taeda.Tensor, tuple)):
                _warn(
                    "For backward hooks to be called, module output should be a "
                    f"Tensor or a tuple of Tensors but received {type(self.result)}"
                )
            self.result = around.setup_output_hook(self.result)
        if plain:
            from ._backward_hook import hook_last_node

            hook_last_node(module, plain, self.args, self.result)
        return self.result

    def _backward_lists(self):
        pre = [*_global_backward_pre_hooks.values()]
        pre += self.tables("_backward_pre_hooks", {}).values()
        full, plain = [], []
        for kind, table in (
            (_global_is_full_backward_hook, _global_backward_hooks),
            (self.module._is_full_backward_hook, self.tables("_backward_hooks", {})),
        ):
            if kind is not None:
                (full if kind else plain).extend(table.values())
        return pre, full, plain

    def _before(self) -> None:
        with_kwargs = self.tables("_forward_pre_hooks_with_kwargs", ())
        own = self.tables("_forward_pre_hooks", {})
        for key, hook in (*_global_forward_pre_hooks.items(), *own.items()):
            if key in with_kwargs:
                changed = hook(self.module, self.args, self.kwargs)
                if changed is None:
                    continue
                if not isinstance(changed, tuple) or len(changed) != 2:
                    raise RuntimeError(
                        "forward pre-hook must return None or a tuple of (new_args, "
                        f"new_kwargs), but got {changed}."
                    )
                self.args, self.kwargs = changed
            else:
                changed = hook(self.module, self.args)
                if changed is not None:
                    whole = isinstance(changed, tuple)
                    self.args = changed if whole else (changed,)

    def _after(self) -> None:
        always = self.tables("_forward_hooks_always_called", ())
        named = self.tables("_forward_hooks_with_kwargs", ())
        own = self.tables("_forward_hooks", {})
        for key, hook in (*_global_forward_hooks.items(), *own.items()):
            if key in always or key in _global_forward_hooks_always_called:
                self.fired.add(key)
            if key in named or key in _global_forward_hooks_with_kwargs:
                self._fire(key, hook)
                continue
            changed = hook(self.module, self.args, self.result)
            if changed is not None:
                self.result = changed

    def _fire(self, key, hook) -> None:
        own = self.tables("_forward_hooks_with_kwargs", ())
        if key in own or key in _global_forward_hooks_with_kwargs:
            changed = hook(self.module, self.args, self.kwargs, self.result)
        else:
            changed = hook(self.module, self.args, self.result)
        if changed is not None:
            self.result = changed

    def after_error(self) -> None:
        """Run the hooks that want to run whatever happens."""
        always = self.tables("_forward_hooks_always_called", ())
        own = self.tables("_forward_hooks", {})
        rest = [(k, h) for k, h in own.items() if k in always]
        known = _global_forward_hooks_always_called
        rest = [(k, h) for k, h in _global_forward_hooks.items() if k in known] + rest
        for key, hook in rest:
            if key in self.fired:
                continue
            try:
                self._fire(key, hook)
            except Exception as error:
                _warn(
                    "module forward hook with ``always_call=True`` raised an exception "
                    f"that was silenced, since forward failed before it: {error}"
                )


def _warn(text, category=UserWarning) -> None:
    import warnings

    warnings.warn(text, category, stacklevel=4)


class Hooks:
    """The part of `Module` that calls it and registers hooks."""

    _compiled_call_impl = None
    _is_full_backward_hook: bool | None = None

    def __call__(self, *args, **kwargs):
        if self._hooked or _any_global:
            compiled = self._compiled_call_impl
            if compiled is not None:
                return compiled(*args, **kwargs)
            return self._call_impl(*args, **kwargs)
        if kwargs:
            return self.forward(*args, **kwargs)
        return self.forward(*args)

    def _call_impl(self, *args, **kwargs):
        get = self.__dict__.get
        if not (
            get("_forward_hooks")
            or get("_forward_pre_hooks")
            or get("_backward_hooks")
            or get("_backward_pre_hooks")
            or _has_any_global_hook()
        ):  # only looked at, or taken away again
            return self.forward(*args, **kwargs)
        call = HookedCall(self, args, kwargs)
        try:
            return call.run()
        except Exception:
            call.after_error()
            raise

    def _slow_forward(self, *input, **kwargs):
        return self.forward(*input, **kwargs)

    def register_forward_pre_hook(self, hook, *, prepend=False, with_kwargs=False):
        """Call `hook(module, args)` before forward.

        Args:
            hook: returns None, or the arguments to use instead (a single value
                is wrapped in a tuple).
            prepend: run before the hooks that are already there.
            with_kwargs: call `hook(module, args, kwargs)`, which returns None or
                the pair (args, kwargs).

        Returns:
            RemovableHandle: `remove()` takes the hook away.

        Example:
            >>> layer = taeda.nn.Identity()
            >>> h = layer.register_forward_pre_hook(lambda m, args: (args[0] + 1,))
            >>> layer(1)
            2
        """
        flags = self._forward_pre_hooks_with_kwargs
        handle = _add(self._forward_pre_hooks, hook, flags, prepend)
        if with_kwargs:
            flags[handle.id] = True
        return handle

    def register_forward_hook(
        self, hook, *, prepend=False, with_kwargs=False, always_call=False
    ):
        """Call `hook(module, args, output)` after forward.

        Args:
            hook: what it returns, unless None, replaces the output.
            prepend: run before the hooks that are already there.
            with_kwargs: call `hook(module, args, kwargs, output)`.
            always_call: also when forward raises.

        Example:
            >>> layer = taeda.nn.Identity()
            >>> h = layer.register_forward_hook(lambda m, args, out: out * 2)
            >>> layer(3)
            6
        """
        flags = [self._forward_hooks_with_kwargs, self._forward_hooks_always_called]
        handle = _add(self._forward_hooks, hook, flags, prepend)
        if with_kwargs:
            flags[0][handle.id] = True
        if always_call:
            flags[1][handle.id] = True
        return handle

    def register_full_backward_pre_hook(self, hook, prepend=False):
        """Call `hook(module, grad_output)` before the module's backward.

        Args:
            hook: returns None, or a tuple that replaces `grad_output`.
            prepend: run before the hooks that are already there.
        """
        return _add(self._backward_pre_hooks, hook, None, prepend)

    def register_full_backward_hook(self, hook, prepend=False):
        """Call `hook(module, grad_input, grad_output)` once both are known.

        Args:
            hook: returns None, or a tuple that replaces `grad_input`.
            prepend: run before the hooks that are already there.

        Raises:
            RuntimeError: the module already has a hook of the old kind.
        """
        self._use_backward(True)
        return _add(self._backward_hooks, hook, None, prepend)

    def register_backward_hook(self, hook):
        """Deprecated: the hook sees the last node of forward alone.

        Raises:
            RuntimeError: the module already has a full backward hook.
        """
        self._use_backward(False)
        return _add(self._backward_hooks, hook)

    def _use_backward(self, full) -> None:
        if self._is_full_backward_hook is (not full):
            raise RuntimeError(_MIXED.format("on a single Module"))
        self._is_full_backward_hook = full

    def compile(self, *args, **kwargs) -> None:
        """Compile forward in place: later calls run `taeda.compile`'s result.

        Args:
            args, kwargs: passed on to `taeda.compile`.
        """
        self._hooked = True
        self._compiled_call_impl = taeda.compile(self._call_impl, *args, **kwargs)
