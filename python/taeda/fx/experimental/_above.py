"""Recording above autograd, where composite operators are one call."""

from __future__ import annotations

import threading

import taeda
from taeda import _C
from taeda.utils import _pytree as pytree

from .proxy_tensor import ProxyTorchDispatchMode, get_proxy_mode

__all__ = ["PreDispatchMode", "call_with_floats", "innermost"]


class _Here(threading.local):
    """The modes of this thread that record above autograd, innermost last."""

    def __init__(self) -> None:
        self.modes: list = []


_here = _Here()


def innermost():
    """The innermost of them, or None."""
    return _here.modes[-1] if _here.modes else None


class PreDispatchMode(ProxyTorchDispatchMode):
    """Records every operator as the program calls it: above autograd.

    Composite operators are one node. What computes the results still sees what they are
    made of. Where the program turned gradients on or off, a node does.
    """

    item_name = "item"

    def compute(self, func, args, kwargs):
        """The results of a call; over symbols by a rule where there is one."""
        from taeda._subclasses._symbolic_rules import rule_of

        rule = None if self.tracing_mode == "real" else rule_of(func, args, kwargs)
        with self.laying_out():
            result = NotImplemented if rule is None else rule(*args, **kwargs)
            return func(*args, **kwargs) if result is NotImplemented else result

    def is_for_a_class(self, args, kwargs) -> bool:
        """No class is asked above autograd."""
        return False

    def keep_grad_mode(self) -> None:
        """Notes in the graph that the program turned gradients on or off."""
        if taeda.is_grad_enabled() != self.grad_mode:
            self.grad_mode = taeda.is_grad_enabled()
            function, args = _C._set_grad_enabled, (self.grad_mode,)
            self.tracer.create_node("call_function", function, args, {})

    at_end = keep_grad_mode

    def __enter__(self):
        def handler(func, args, kwargs):
            if self.enabled:
                self.keep_grad_mode()
            return self.__torch_dispatch__(func, (), args, kwargs)

        level = _C._functorch.RecordLevel(handler)
        self.levels.append(level)
        _here.modes.append(self)
        level.__enter__()
        return self

    def __exit__(self, *exception) -> None:
        _here.modes.pop()
        self.levels.pop().__exit__(*exception)

    def __init__(self, tracer, tracing_mode="real", decomposition_table=None) -> None:
        super().__init__(tracer, tracing_mode, decomposition_table)
        self.levels: list = []
        self.grad_mode = taeda.is_grad_enabled()  # as the graph's last node has it


def call_with_floats(func, args, kwargs):
    """A call of the library, or of a number, with symbolic floats among its arguments.

    While a program is recorded a number of their own stands for them in the call, and
    the node gets them; else they are fixed.

    Raises:
        RuntimeError: the call made another number of them, which no node would follow.
    """
    mode = get_proxy_mode()
    if mode is None or not mode.enabled:
        fixed = pytree.tree_map_only(taeda.SymFloat, float, (args, kwargs))
        return func(*fixed[0], **fixed[1])
    floats = mode.tracer.floats
    mine: list[float] = []

    def stand_in(number):
        mine.append(0.7310585786300049 + 1e-9 * len(floats))
        floats[mine[-1]] = [number, 0]
        return mine[-1]

    if not any(isinstance(a, taeda.Tensor) for a in pytree.tree_leaves((args, kwargs))):
        return func(*args, **kwargs)
    args, kwargs = pytree.tree_map_only(taeda.SymFloat, stand_in, (args, kwargs))
    result = func(*args, **kwargs)
    for each in mine:
        number, seen = floats[each]
        if not seen:
            raise RuntimeError(
                f"make_fx: {getattr(func, '__name__', func)} works out a number from "
                f"the symbolic float {number}, which no node can follow"
            )
    return result
