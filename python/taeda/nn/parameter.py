"""Tensors that a module owns: parameters, buffers, and their lazy forms."""

from __future__ import annotations

import taeda
from taeda import Tensor

__all__ = [
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "UninitializedTensorMixin",
    "is_lazy",
]

_no_override = getattr(taeda._C, "_disabled_torch_function_impl", None)


def _marked(mark):
    """A metaclass under which any tensor with attribute `mark` is an instance."""

    class Marked(type(Tensor)):
        def __instancecheck__(cls, instance) -> bool:
            marked = cls.__dict__.get("_open") and isinstance(instance, Tensor)
            if marked and getattr(instance, mark, False):
                return True
            return type.__instancecheck__(cls, instance)

    return Marked


_ParameterMeta = _marked("_is_param")
_BufferMeta = _marked("_is_buffer")


def _rebuild_parameter(data, requires_grad, backward_hooks, state=None):
    """Make a Parameter again from what its pickle holds."""
    made = Parameter(data, requires_grad)
    made._backward_hooks = backward_hooks
    if state:
        made.__dict__.update(state)
    return made


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that registers itself when it becomes a module's attribute.

    Args:
        data (Tensor): the values, any floating or complex dtype; shared, not copied.
            Default: an empty tensor.
        requires_grad: whether it is trained; not changed by `no_grad`.

    Raises:
        RuntimeError: `detach()` of a subclass of Tensor gives another class.

    Example:
        >>> layer = taeda.nn.Module()
        >>> layer.scale = taeda.nn.Parameter(taeda.ones(3))
        >>> [name for name, _ in layer.named_parameters()]
        ['scale']
    """

    _open = True

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True):
        if data is None:
            data = taeda.empty(0)
        kind = type(data)
        if kind is Tensor or kind is Parameter:
            return Tensor._make_subclass(cls, data, requires_grad)
        made = data.detach().requires_grad_(requires_grad)
        if type(made) is not kind:
            raise RuntimeError(
                f"Creating a Parameter from an instance of type {kind.__name__} "
                "requires that detach() returns an instance of the same type, but it "
                f"returned a {type(made).__name__}"
            )
        made._is_param = True
        return made

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.data.clone(), self.requires_grad)
        return memo[id(self)]

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()

    def __reduce_ex__(self, proto):
        from collections import OrderedDict

        state = {k: v for k, v in self.__dict__.items() if k != "_backward_hooks"}
        parts = (self.data, self.requires_grad, OrderedDict())
        return _rebuild_parameter, (*parts, state) if state else parts

    if _no_override is not None:
        __torch_function__ = _no_override


# The native layer treats parameters like plain tensors.
taeda._C._set_parameter_class(Parameter)


class Buffer(Tensor, metaclass=_BufferMeta):
    """A tensor that registers itself as a buffer when it becomes an attribute.

    Args:
        data (Tensor): the values; shared, not copied. Default: an empty tensor.
        persistent: whether it is part of `state_dict()`.

    Example:
        >>> layer = taeda.nn.Module()
        >>> layer.mean = taeda.nn.Buffer(taeda.zeros(2))
        >>> list(layer.state_dict())
        ['mean']
    """

    _open = True

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True):
        source = taeda.empty(0) if data is None else data
        made = source.detach()
        made.__dict__.update(persistent=persistent, _is_buffer=True)
        return made.requires_grad_(source.requires_grad)

    if _no_override is not None:
        __torch_function__ = _no_override


# What may be done to a tensor before its shape is known.
_LAZY_METHODS = (
    "__hash__ size copy_ is_complex is_floating_point half float double char short"
    " int long cuda cpu to get_device"
).split()


class UninitializedTensorMixin:
    """What lazy parameters and buffers share: no shape until `materialize`."""

    _allowed_methods = [getattr(Tensor, n) for n in _LAZY_METHODS if hasattr(Tensor, n)]

    def materialize(self, shape, device=None, dtype=None) -> None:
        """Take memory for `shape` and become an ordinary tensor in place.

        Args:
            shape: sizes of the tensor.
            device, dtype: default to those given at construction.
        """
        data = self.data
        device = data.device if device is None else device
        dtype = data.dtype if dtype is None else dtype
        self.data = taeda.empty(shape, device=device, dtype=dtype)
        self.__class__ = self.cls_to_become

    @property
    def shape(self):
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer: "
            "run the module's forward once to fix it (load_state_dict of lazy "
            "values into a module that is already initialized ends here too)"
        )

    def share_memory_(self):
        """Not possible before the values exist.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer: run the "
            "module's forward once before share_memory()"
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, proto):
        return type(self), (self.requires_grad,)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func in cls._allowed_methods or type(func).__name__ == "method-wrapper":
            return super().__torch_function__(func, types, args, kwargs or {})
        raise ValueError(
            f"Attempted to use an uninitialized parameter in {func}: run the lazy "
            f"module's forward once, so that the {cls.__name__} gets its shape"
        )


def is_lazy(param) -> bool:
    """Whether `param` still waits for its shape.

    Example:
        >>> taeda.nn.parameter.is_lazy(taeda.nn.UninitializedParameter())
        True
    """
    return isinstance(param, UninitializedTensorMixin)


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose shape the first forward decides.

    Args:
        requires_grad: as for `Parameter`.
        device, dtype: where and what it will be.

    Example:
        >>> p = taeda.nn.UninitializedParameter()
        >>> p.materialize((2, 3))
        >>> tuple(p.shape)
        (2, 3)
    """

    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device=None, dtype=None):
        data = taeda.empty(0, device=device, dtype=dtype)
        return Tensor._make_subclass(cls, data, requires_grad)

    def __deepcopy__(self, memo):
        made = memo.get(id(self))
        if made is None:
            data = self.data
            made = type(self)(self.requires_grad, data.device, data.dtype)
            memo[id(self)] = made
        return made


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer whose shape the first forward decides.

    Args:
        requires_grad: whether gradients reach it.
        device, dtype: where and what it will be.
        persistent: whether it is part of `state_dict()`.

    Example:
        >>> taeda.nn.parameter.UninitializedBuffer()
        <UninitializedBuffer>
    """

    cls_to_become = Tensor

    def __new__(
        cls,
        requires_grad: bool = False,
        device=None,
        dtype=None,
        persistent: bool = True,
    ):
        data = taeda.empty(0, device=device, dtype=dtype)
        made = Tensor._make_subclass(cls, data, requires_grad)
        made.persistent = persistent
        made._is_buffer = True
        return made
