"""Custom functions: forward and backward written in Python."""

from __future__ import annotations

from taeda import _C

__all__ = [
    "BackwardCFunction",
    "Function",
    "FunctionCtx",
    "FunctionMeta",
    "InplaceFunction",
    "NestedIOFunction",
    "once_differentiable",
]


class FunctionCtx:
    """What forward and backward call `ctx`.

    That of a call has native methods in place of the first four here. They serve an
    object that a test hands to `forward` itself, and keep what they are given.
    """

    def save_for_backward(self, *tensors) -> None:
        """Keep tensors for backward, as `to_save`."""
        self.to_save = tensors

    def mark_dirty(self, *args) -> None:
        """Note tensors that forward has written, as `dirty_tensors`."""
        self.dirty_tensors = args

    def mark_non_differentiable(self, *args) -> None:
        """Note results without gradient, as `non_differentiable`."""
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Whether absent gradients come as zeros, as `materialize_grads`."""
        self.materialize_grads = value

    def save_for_forward(self, *tensors) -> None:
        """Keep tensors for the forward derivative."""
        self.saved_for_forward = tensors

    def mark_shared_storage(self, *pairs) -> None:
        """Does nothing: shared memory is found without help."""

    # What `save_for_forward` was given.
    saved_for_forward: tuple | None = None

    @property
    def requires_grad(self) -> bool:
        """Whether the call is recorded: an argument needs a gradient."""
        return any(getattr(self, "needs_input_grad", ()))

    def register_hook(self, hook):
        """hook(grad_inputs, grad_outputs), called after backward."""
        from taeda.autograd.graph import _add_node_hook

        return _add_node_hook(self, hook, before=False)

    def register_prehook(self, hook):
        """hook(grad_outputs), called before backward."""
        from taeda.autograd.graph import _add_node_hook

        return _add_node_hook(self, hook, before=True)


class BackwardCFunction(_C._FunctionBase, FunctionCtx):
    """The class of ctx objects; each Function has a subclass of its own."""

    _forward_cls = None

    def apply(self, *grads):
        """Runs the function's backward on gradients."""
        forward = self._forward_cls
        if forward.boxed_grads_call:
            return forward.backward(self, list(grads))
        return forward.backward(self, *grads)

    def apply_boxed(self, *args):
        """Runs it on what an engine hands over as one list."""
        return self._forward_cls.backward(self, *args)

    def apply_jvp(self, *args):
        """Runs the function's forward derivative on tangents."""
        return self._forward_cls.jvp(self, *args)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {id(self):#x}>"


class FunctionMeta(type):
    """Gives every Function its class of ctx objects."""

    def __init__(cls, name, bases, attrs) -> None:
        cls._backward_cls = type(
            name + "Backward", (BackwardCFunction,), {"_forward_cls": cls}
        )
        cls._has_setup_context = _is_setup_context_defined(cls)
        has_vjp = "vjp" in attrs and bases[0] is not _C._FunctionBase
        if has_vjp and "backward" not in attrs:
            cls.backward = staticmethod(cls.vjp)
        elif has_vjp:
            cls.backward = staticmethod(_refuse_both)
        super().__init__(name, bases, attrs)


def _refuse_both(ctx, *grad_outputs):
    raise RuntimeError(
        "Implementing both 'backward' and 'vjp' for a custom Function is not "
        "allowed. You should only implement one of them."
    )


def _is_setup_context_defined(cls) -> bool:
    for base in cls.__mro__:
        if "setup_context" in base.__dict__:
            return base.__module__ != __name__
    return False


class Function(_C._FunctionBase, FunctionCtx, metaclass=FunctionMeta):
    """Base class of custom functions.

    A subclass has static methods `forward(ctx, *args)` and `backward(ctx, *grads)`, or
    `forward(*args)` with `setup_context(ctx, inputs, output)`; `apply` calls it.

    Example::

        class Square(Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            def backward(ctx, grad):
                (x,) = ctx.saved_tensors
                return 2 * x * grad

        y = Square.apply(x)

    Example:
        >>> class Cube(taeda.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         ctx.save_for_backward(x)
        ...         return x**3
        ...     @staticmethod
        ...     def backward(ctx, grad):
        ...         (x,) = ctx.saved_tensors
        ...         return grad * 3 * x**2
        >>> x = taeda.tensor(2.0, requires_grad=True)
        >>> Cube.apply(x).backward()
        >>> x.grad
        tensor(12.)
    """

    def __init__(self, *args, **kwargs) -> None:
        import warnings

        warnings.warn(
            f"{type(self)} should not be instantiated: forward, backward and apply "
            "belong to the class. A later version refuses it.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args, **kwargs):
        raise RuntimeError(
            f"{type(self).__name__}: Legacy autograd function with non-static forward "
            "method is deprecated. Make forward and backward static methods and call "
            "the class's `apply`."
        )

    generate_vmap_rule = False
    # The first reading of ctx.saved_tensors is the last: the graph lets go of them, so
    # that their memory is free as soon as backward drops them.
    clear_saved_tensors_on_access = False
    # backward(ctx, grads) gets one list, which it may empty as it goes.
    boxed_grads_call = False

    @staticmethod
    def forward(*args, **kwargs):
        """The result of the call; with `ctx` first unless there is a setup_context."""
        raise NotImplementedError(
            "You must implement the forward function for custom autograd.Function."
        )

    @staticmethod
    def setup_context(ctx, inputs: tuple, output) -> None:
        """Where a forward without ctx keeps what backward needs."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx, *grad_outputs):
        """The gradient of each argument of forward, from those of its results."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom "
            "autograd.Function to use it with backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx, *grad_inputs):
        """The derivative in a direction."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use "
            "it with forward mode AD."
        )

    @staticmethod
    def vmap(info, in_dims, *args):
        """The function over a batch."""
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap "
            "staticmethod or set generate_vmap_rule=True."
        )

    @classmethod
    def _bind_arguments(cls, *args, **kwargs) -> tuple:
        """The arguments of forward by position, with defaults filled in."""
        skip = 0 if cls._has_setup_context else 1  # ctx
        code = getattr(cls.forward, "__code__", None)
        plain = code is not None and not code.co_flags & 0x0C  # *args, **kwargs
        if plain and not kwargs and len(args) == code.co_argcount - skip:
            return args
        import inspect

        signature = inspect.signature(cls.forward)
        bound = signature.bind(*([None] * skip), *args, **kwargs)
        bound.apply_defaults()
        return bound.args[skip:] + tuple(bound.kwargs.values())


class InplaceFunction(Function):
    """Kept for programs that use it: a Function that may work in place."""


class NestedIOFunction(Function):
    """Kept for programs that name it: a Function of nested arguments, in the style in
    which methods are not static. `apply` does not call such a one, in PyTorch either.
    """

    def backward(self, *gradients):
        """The gradients of all arguments, which `backward_extended` computes."""
        return self.backward_extended(*gradients)

    def forward_extended(self, *input):
        """The results, by a subclass.

        Raises:
            NotImplementedError: here.
        """
        raise NotImplementedError("NestedIOFunction.forward_extended")

    def backward_extended(self, *grad_output):
        """The gradients, by a subclass.

        Raises:
            NotImplementedError: here.
        """
        raise NotImplementedError("NestedIOFunction.backward_extended")


def once_differentiable(fn):
    """Marks a backward that cannot be differentiated: doing so is an error."""
    import functools

    @functools.wraps(fn)
    def backward(ctx, *grads):
        enabled = _C.is_grad_enabled()
        _C._set_grad_enabled(False)
        try:
            outputs = fn(ctx, *grads)
        finally:
            _C._set_grad_enabled(enabled)
        needed = enabled and any(
            isinstance(g, _C.TensorBase) and g.requires_grad for g in grads
        )
        if not needed:
            return outputs
        several = isinstance(outputs, tuple)
        failing = _C._delayed_error(
            "trying to differentiate twice a function that was marked with "
            "@once_differentiable",
            outputs if several else (outputs,),
        )
        return failing if several else failing[0]

    return backward
