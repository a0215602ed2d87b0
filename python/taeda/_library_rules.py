"""Parts of `taeda.library` that few programs use: kernels by key, rules by class."""

from __future__ import annotations

import taeda
from taeda._ops import OpOverload

__all__ = [
    "SafeKernelFunction",
    "fallthrough_kernel",
    "get_kernel",
    "register_torch_dispatch",
    "triton_op",
    "wrap_triton",
]


def fallthrough_kernel(*args, **kwargs):
    """What `Library.impl` takes for "no kernel at this key": the next one is called.

    Raises:
        NotImplementedError: it is called itself.
    """
    raise NotImplementedError("fallthrough_kernel() should never be called.")


class SafeKernelFunction:
    """An operator's kernel for one dispatch key; see `get_kernel`."""

    def __init__(self, op: OpOverload, key: str) -> None:
        self._op, self._key = op, key

    def __repr__(self) -> str:
        return f"SafeKernelFunction({self._op.name()} at {self._key})"

    @property
    def op_handle(self) -> OpOverload:
        """The operator."""
        return self._op

    def call_boxed(self, keyset, /, *args, **kwargs):
        """Calls the kernel: nothing is recorded for backward but by that of Autograd.

        Args:
            keyset (DispatchKeySet): with which it would be called; not read.
            args, kwargs: the operator's.
        """
        if self._key.startswith("Composite"):
            result = self._op.decompose(*args, **kwargs)
            if result is not NotImplemented:
                return result
        if self._key.startswith("Autograd"):
            return self._op(*args, **kwargs)
        with taeda.no_grad():
            return self._op(*args, **kwargs)

    __call__ = call_boxed


def get_kernel(op, dispatch_key) -> SafeKernelFunction:
    """The kernel that an operator has for a dispatch key.

    Args:
        op: name ("aten::add.Tensor"), overload or custom operator.
        dispatch_key (str or DispatchKey): whose kernel.

    Raises:
        ValueError: no dispatch key.
        RuntimeError: no such operator, or it has no kernel there.

    Example:
        >>> kernel = taeda.library.get_kernel("aten::neg", "CPU")
        >>> kernel.call_boxed(None, taeda.ones(1))
        tensor([-1.])
    """
    from taeda._dispatch_keys import DispatchKey
    from taeda.library import _overload_of

    key = str(dispatch_key).rpartition(".")[2]
    if key not in DispatchKey.__members__:
        raise ValueError(f"Invalid dispatch key: {dispatch_key}")
    try:
        target = _overload_of(op)
    except AttributeError:
        raise RuntimeError(f"operator {op} does not exist") from None
    if not target.has_kernel_for_dispatch_key(key):
        raise RuntimeError(f"operator {target.name()} has no kernel for {key}")
    return SafeKernelFunction(target, key)


def register_torch_dispatch(op, torch_dispatch_class, func=None, /, *, lib=None):
    """Says what a class of tensors, or a mode, makes of an operator.

    Args:
        op: name, overload or custom operator.
        torch_dispatch_class: a class of tensors or a TorchDispatchMode with a
            `__torch_dispatch__`.
        func: called as func(cls or mode, op, types, args, kwargs) in its place.
        lib: with which the rule goes away; it stays without.

    Raises:
        ValueError: `op` is none of these.

    Example:
        >>> from taeda.utils._python_dispatch import BaseTorchDispatchMode
        >>> class Odd(BaseTorchDispatchMode):
        ...     pass
        >>> @taeda.library.register_torch_dispatch("aten::neg", Odd)
        ... def one_more(mode, func, types, args, kwargs):
        ...     return args[0] + 1
        >>> with Odd():
        ...     taeda.neg(taeda.ones(1))
        tensor([2.])
    """
    from taeda.library import CustomOpDef, _overload_of

    if not isinstance(op, (str, OpOverload, CustomOpDef)):
        raise ValueError(
            f"register_torch_dispatch({op}): got unexpected type for op: {type(op)}"
        )
    target = _overload_of(op)

    def register(rule):
        rules = _rules_of(torch_dispatch_class)
        rules[target] = rule
        if target.namespace != "aten":
            _ask_first(target)
        if lib is not None:
            from weakref import finalize

            finalize(lib, rules.pop, target, None).atexit = False
        return rule

    return register if func is None else register(func)


def _rules_of(cls: type) -> dict:
    """The rules of a class, which its `__torch_dispatch__` asks from now on.

    One item of the dictionary is written at a time, under the interpreter's lock.
    """
    if "_torch_dispatch_rules" in vars(cls):
        return cls._torch_dispatch_rules
    rules: dict = {}
    cls._torch_dispatch_rules = rules
    plain = cls.__dict__.get("__torch_dispatch__", cls.__torch_dispatch__)
    is_mode = not issubclass(cls, taeda.Tensor)

    def dispatch(self, func, types, args=(), kwargs=None):
        rule = rules.get(func)
        if rule is not None:
            return rule(self, func, types, args, kwargs or {})
        bound = plain.__get__(self if is_mode else None, cls if is_mode else self)
        return bound(func, types, args, kwargs or {})

    cls.__torch_dispatch__ = dispatch if is_mode else classmethod(dispatch)
    return rules


def _dispatches(kind: type) -> bool:
    own = getattr(kind, "__torch_dispatch__", None)
    return own is not None and own is not taeda.Tensor.__torch_dispatch__


def _ask_first(target: OpOverload) -> None:
    """Lets calls of an operator look for a rule themselves.

    One whose kernel is composite arrives at modes and classes as what it is made of.
    """
    if "_call" in vars(target):
        return
    from taeda.utils import _pytree
    from taeda.utils._python_dispatch import (
        _get_current_dispatch_mode,
        _pop_mode_temporarily,
    )

    def call(*args, **kwargs):
        mode = _get_current_dispatch_mode()
        types = {type(leaf): None for leaf in _pytree.tree_leaves((args, kwargs))}
        types = tuple(t for t in types if _dispatches(t))
        rule = vars(type(mode)).get("_torch_dispatch_rules", {}).get(target)
        if rule is not None:
            with _pop_mode_temporarily():
                return rule(mode, target, types, args, kwargs)
        for cls in types if mode is None else ():
            rule = vars(cls).get("_torch_dispatch_rules", {}).get(target)
            if rule is not None:
                return rule(cls, target, types, args, kwargs)
        return OpOverload._call(target, *args, **kwargs)

    target._call = call


def triton_op(name: str, fn=None, /, *, mutates_args, schema: str | None = None):
    """`custom_op` for a function that calls Triton kernels by `wrap_triton`.

    Args:
        name, mutates_args, schema: as those of `custom_op`.
    """
    from taeda.library import custom_op

    return custom_op(name, fn, mutates_args=mutates_args, schema=schema)


def wrap_triton(triton_kernel, /):
    """A Triton kernel as an operator of `triton_op` calls it: the kernel itself.

    Raises:
        RuntimeError: it is no Triton kernel.
    """
    kinds = type(triton_kernel).__mro__
    if not any(kind.__module__.startswith("triton.runtime.") for kind in kinds):
        raise RuntimeError(
            "wrap_triton expected a function annotated with triton.jit or "
            f"triton.autotune, got {type(triton_kernel).__name__}"
        )
    return triton_kernel
