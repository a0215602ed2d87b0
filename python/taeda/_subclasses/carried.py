"""Tensors that stand for inner tensors, and what a call on them names.

Note [Carried tensors]
A carried tensor is a wrapper without memory. What autograd records is the computation
on the tensor inside: a call arrives in `__torch_function__`, is made on inner tensors,
and its results are wrapped again. So gradients of any order are those of the inner
computation, and no derivative formula ever meets a wrapper. The wrapper's own graph is
never used: `requires_grad`, `grad` and `backward` speak of the tensor inside, and a
call that reaches the dispatcher with a graph to record is refused.
"""

from __future__ import annotations

from functools import cache

import taeda
from taeda import Tensor

__all__ = [
    "Carried",
    "bound",
    "inner",
    "is_elementwise",
    "operator_name",
    "overloads",
    "record_of",
]


def operator_name(func) -> str:
    """The operator's name behind a function, method or overload."""
    packet = getattr(func, "overloadpacket", func)
    name = packet.__name__
    if name.startswith("__") and name.endswith("__"):
        return _OF_DUNDER.get(name, name)
    return name.removeprefix("special_")


_OF_DUNDER = {
    "__and__": "bitwise_and",
    "__or__": "bitwise_or",
    "__xor__": "bitwise_xor",
}


@cache
def overloads(name: str) -> tuple:
    """The overloads of an operator that make their results; () if there is none."""
    if name.startswith("__"):
        return ()
    for known in (name, f"special_{name}"):
        packet = getattr(taeda.ops.aten, known, None)
        if hasattr(packet, "overloads"):
            found = [getattr(packet, o) for o in packet.overloads()]
            writes = name.endswith("_")
            return tuple(o for o in found if writes or not o._schema.is_mutable)
    return ()


def record_of(name: str):
    """The record of the first overload; None where there is no such operator."""
    found = overloads(name)
    return found[0].record if found else None


def _takes(kind: str, value) -> bool:
    """Whether a value can be an argument of a schema's type."""
    base = kind.rstrip("?")
    if value is None:
        return kind.endswith("?") or base != "Tensor"
    if base.startswith("Tensor"):
        if base == "Tensor":
            return isinstance(value, Tensor)
        return isinstance(value, (list, tuple))
    if isinstance(value, Tensor):
        return base == "Scalar" and value.ndim == 0
    if base.startswith(("int", "SymInt")):
        sequence = isinstance(value, (list, tuple))
        number = isinstance(value, int) and not isinstance(value, bool)
        return (sequence or number) if "[" in base else number
    if base == "bool":
        return isinstance(value, bool)
    if base in ("float", "Scalar"):
        return isinstance(value, (int, float, complex))
    return not isinstance(value, str) or base == "str"


# What public functions call an argument that the schema names otherwise.
_SYNONYMS = {"input": "self", "axis": "dim"}


def bound(name: str, args: tuple, kwargs: dict):
    """The overload that a call fits and its arguments by name; None for no overload.

    Names with a leading underscore are the public function's own.
    """
    named = {k: v for k, v in kwargs.items() if not k.startswith("_")}
    for overload in overloads(name):
        known = {a.name for a in overload._schema.arguments}
        given = {k if k in known else _SYNONYMS.get(k, k): v for k, v in named.items()}
        try:
            values = overload._schema.bind(name, args, given)
        except Exception:  # Mismatch: the next overload is asked
            continue
        pairs = list(zip(overload._schema.arguments, values, strict=True))
        if all(_takes(a.type, v) or v is a.default for a, v in pairs):
            return overload, {a.name: v for a, v in pairs}
    return None


def is_elementwise(overload) -> bool:
    """Whether every element of the results is made of those at its own place.

    Said by the family, or by axes that are all batches: `..., ... -> ...`.
    """
    if overload.record.family == "pointwise":
        return True
    if overload.record.family == "view" or not overload.record.axes:
        return False
    taken, _, made = overload.record.axes.partition(" -> ")
    return {*taken.split(", ")} <= {"...", "*", "()"} and made.split(", ")[0] in (
        "...",
        "*",
    )


def inner(value):
    """The tensors inside of a tree of arguments."""
    if isinstance(value, Carried):
        return value._inner
    if isinstance(value, (list, tuple)):
        return type(value)(map(inner, value))
    return value


class Carried(Tensor):
    """A wrapper of a tensor `_inner` (Note [Carried tensors]).

    Subclasses define `_like(self, tensor)`, which wraps another tensor as this one is
    wrapped, and the class method `_call(func, args, kwargs)`.
    """

    @staticmethod
    def _make(cls, tensor: Tensor):
        made = Tensor._make_wrapper_subclass(
            cls, tensor.shape, dtype=tensor.dtype, device=tensor.device
        )
        made._inner = tensor
        return made

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if not all(issubclass(t, Tensor) for t in types):
            return NotImplemented
        kwargs = kwargs or {}
        if getattr(func, "__name__", None) == "__get__" or func in _plain():
            with taeda._C.DisableTorchFunctionSubclass():
                return func(*args, **kwargs)
        if func is taeda.autograd.grad:
            return _gradients(*args, **kwargs)
        return cls._call(func, args, kwargs)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        graph = taeda.is_grad_enabled() and any(
            isinstance(a, Carried) and a.requires_grad for a in args
        )
        if graph:
            raise NotImplementedError(
                f"{func}: not recorded by autograd for {cls.__name__}; call the "
                "public function or method"
            )
        return cls._call(func, args, kwargs or {})

    @property
    def requires_grad(self) -> bool:
        return self._inner.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self._inner.requires_grad = value

    @property
    def grad_fn(self):
        return self._inner.grad_fn

    @property
    def is_leaf(self) -> bool:
        return self._inner.is_leaf

    @property
    def grad(self):
        found = self._inner.grad
        return None if found is None else self._like(found)

    @grad.setter
    def grad(self, value) -> None:
        self._inner.grad = inner(value)

    def requires_grad_(self, requires_grad: bool = True):
        self._inner.requires_grad_(requires_grad)
        return self

    def retain_grad(self) -> None:
        self._inner.retain_grad()

    def register_hook(self, hook):
        """Calls hook with the gradient, wrapped as the tensor is."""

        def inside(grad):
            result = hook(self._like(grad))
            return None if result is None else inner(result)

        return self._inner.register_hook(inside)

    def backward(
        self, gradient=None, retain_graph=None, create_graph=False, inputs=None
    ) -> None:
        if inputs is not None:
            inputs = inner([inputs] if isinstance(inputs, Tensor) else list(inputs))
        self._inner.backward(inner(gradient), retain_graph, create_graph, inputs)

    def detach(self):
        return self._like(self._inner.detach())

    def type(self, dtype=None, non_blocking: bool = False):
        return self.dtype if dtype is None else self.to(dtype=dtype)

    def item(self):
        return self._inner.item()

    def __bool__(self) -> bool:
        return bool(self._inner)

    def __iter__(self):
        return iter(self.unbind())

    def __repr__(self, *, tensor_contents=None) -> str:
        raise NotImplementedError(f"{type(self).__name__}.__repr__")

    def __format__(self, form: str) -> str:
        return format(str(self), form)

    def __hash__(self) -> int:
        return id(self)

    @property
    def mT(self):
        return self.transpose(-2, -1)


@cache
def _plain() -> frozenset:
    """Functions of a wrapper that are asked of the wrapper itself."""
    names = (
        "dim ndimension is_floating_point is_complex is_signed element_size get_device"
        " numpy tolist __deepcopy__ is_inference"
    )
    return frozenset(getattr(Tensor, n) for n in names.split())


def _gradients(outputs, inputs, grad_outputs=None, *args, **kwargs):
    """`autograd.grad` by wrappers: gradients are wrapped as the inputs are."""
    listed = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    found = taeda.autograd.grad(
        inner(outputs), inner(listed), inner(grad_outputs), *args, **kwargs
    )
    return tuple(
        g if g is None or not isinstance(x, Carried) else x._like(g)
        for x, g in zip(listed, found, strict=True)
    )
