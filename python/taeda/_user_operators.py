"""Operators made of Python functions, and derivatives that users register."""

from __future__ import annotations

import contextlib
import functools
import warnings

import taeda
from taeda._schema import Schema
from taeda.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

__all__ = ["CustomOpDef", "autograd_kernel", "custom_op", "refuse_keyword_tensors"]


def refuse_keyword_tensors(schema) -> None:
    """Raises NotImplementedError for tensors that are given by name alone."""
    if any(a.kwarg_only and "Tensor" in str(a.type) for a in schema.arguments):
        raise NotImplementedError(
            "custom_op with kwarg-only Tensor args. Please make your tensors not "
            f"kwarg-only. Got: {schema}"
        )


def autograd_kernel(target, backward, setup):
    """The kernel of an operator for the key Autograd.

    Args:
        target: the overload, which runs below autograd.
        backward: None where it has no derivative: gradients that arrive are an error.
        setup: called after the forward, or None.
    """
    function = _function(target, backward, setup)

    def kernel(*args, **keywords):
        leaves, spec = tree_flatten(args)
        shape: list = []
        result = function.apply(spec, keywords, shape, *leaves)
        flat = result if isinstance(result, tuple) else (result,)
        return tree_unflatten(list(flat), shape[0])

    return kernel


def _function(target, backward, setup):
    keyword_only = any(a.kwarg_only for a in target._schema.arguments)

    class UserOperator(taeda.autograd.Function):
        """Grad mode is off inside forward, so the call goes below autograd.

        Tensors in lists are arguments and results of their own here.
        """

        @staticmethod
        def forward(ctx, spec, keywords, shape, *leaves):
            args = tree_unflatten(list(leaves), spec)
            result = target(*args, **keywords)
            if setup is not None:
                extra = {"keyword_only_inputs": keywords} if keyword_only else {}
                setup(ctx=ctx, inputs=args, output=result, **extra)
            flat, form = tree_flatten(result)
            shape.append(form)
            ctx._structure_of_call = spec, form
            ctx._tensors_of_call = [_has_tensors(a) for a in args]
            return flat[0] if form.is_leaf() else tuple(flat)

        @staticmethod
        def backward(ctx, *grads):
            if backward is None:
                raise RuntimeError(
                    f"Trying to backward through {target} but no autograd formula was "
                    "registered. Please use register_autograd to add one."
                )
            spec, form = ctx._structure_of_call
            given = tree_unflatten(list(grads), form)
            given = given if isinstance(given, tuple) else (given,)
            found = backward(ctx, *given)
            found = found if isinstance(found, tuple) else (found,)
            # What has no tensor needs no gradient, and none to be given.
            found += (None,) * ctx._tensors_of_call[len(found) :].count(False)
            return (None, None, None, *_by_leaf(target, found, spec))

    UserOperator.__name__ = f"GeneratedBackwardFor_{str(target).replace('.', '_')}"
    return UserOperator


def _has_tensors(value) -> bool:
    return any(isinstance(t, taeda.Tensor) for t in tree_leaves(value))


def _by_leaf(target, found: tuple, spec) -> list:
    """The gradients of the tensors, those in lists too."""
    parts = spec.children()
    if len(found) != len(parts):
        raise RuntimeError(
            f"backward of {target} returned an incorrect number of gradients "
            f"(expected {len(parts)}, got {len(found)})"
        )
    flat: list = []
    for i, (grad, part) in enumerate(zip(found, parts, strict=True)):
        own = [grad] if part.is_leaf() else tree_leaves(grad)
        if grad is None:
            own = [None] * part.num_leaves
        if len(own) != part.num_leaves:
            raise RuntimeError(
                f"backward of {target}: Expected the return from backward to be of the "
                f"same structure as the inputs, got {len(own)} gradients for the "
                f"{part.num_leaves} elements of argument {i}"
            )
        flat += own
    return flat


class CustomOpDef:
    """An operator made of a Python function; see `custom_op`.

    Example:
        >>> def negated(x: taeda.Tensor) -> taeda.Tensor:
        ...     return x * -1
        >>> taeda.library.custom_op("mine::negated", negated, mutates_args=())
        <CustomOpDef(mine::negated)>
    """

    def __init__(self, namespace: str, name: str, schema: str, fn, tags=()) -> None:
        library = taeda.library
        refuse_keyword_tensors(Schema(f"{namespace}::{name}{schema}"))
        self._namespace, self._name, self._schema = namespace, name, schema
        self._init_fn = fn
        # By device type; None for the kernel of all that have none of their own.
        self._kernels: dict = {}
        self._disabled: set[str] = set()
        self._lib = library._of_operator(f"{namespace}::{name}")
        self._lib.define(name + schema, tags=tags)
        self._opoverload = library._overload_of(f"{namespace}::{name}")
        # A tuple of one, which the schema has as the one by itself.
        results = self._opoverload._schema.returns
        written = schema.rpartition("->")[2].strip()
        self._gives_tuple = len(results) == 1 and written.startswith("(")
        self.__name__ = getattr(fn, "__name__", name)
        self.__doc__ = getattr(fn, "__doc__", None)
        self.__wrapped__ = fn
        self._register_defaults()

    def _register_defaults(self) -> None:
        op = self._opoverload
        op.needs_fake = True
        if any(a.written for a in op._schema.arguments):
            return  # a trace that took the call for one without effect would drop it
        self._lib.impl(op, self._without_fake, "Meta")
        self._lib.impl(op, autograd_kernel(op, None, None), "Autograd")

    def _without_fake(self, *args, **kwargs):
        if not self._opoverload._schema.returns:
            return
        raise RuntimeError(
            f"There was no fake impl registered for {self}. This is necessary for "
            "torch.compile/export/fx tracing to work. Please use "
            f"`{self.__name__}.register_fake` to add an fake impl."
        )

    @property
    def _qualname(self) -> str:
        return f"{self._namespace}::{self._name}"

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, *args, **kwargs):
        result = self._opoverload(*args, **kwargs)
        return (result,) if self._gives_tuple else result

    def _only(self, result):
        """What a kernel returned, as the schema has it."""
        one = self._gives_tuple and isinstance(result, tuple)
        return result[0] if one else result

    def register_kernel(self, device_types, fn=None, /):
        """Adds a kernel for device types; None is all that have none of their own.

        Raises:
            ValueError: for device types, where no argument tells the device.
        """
        types = [device_types] if isinstance(device_types, str) else device_types
        names = [None] if types is None else list(types)
        if names != [None]:
            self._check_tells_device()

        def register(function):
            for name in names:
                self._kernels[name] = function
                kernel = self._kernel(name, function)
                taeda.library.register_kernel(self, name, kernel, lib=self._lib)
            return function

        return register if fn is None else register(fn)

    def _check_tells_device(self) -> None:
        arguments = self._opoverload._schema.arguments
        if not any("Tensor" in str(a.type) or a.name == "device" for a in arguments):
            raise ValueError(
                "Functions without tensor inputs are required to have a `device: "
                f"torch.device` argument; {self._qualname} has {self._schema}"
            )

    def _kernel(self, name: str | None, function):
        """A function as a kernel: its results are new, and its writes count."""

        def kernel(*args, **kwargs):
            chosen = self._init_fn if name in self._disabled else function
            arguments = self._opoverload._schema.arguments
            tensors = _tensors(args)
            if name is not None and not _has_tensors(args):
                chosen = self._by_device(name, chosen, args, kwargs)
            written = [
                t
                for a, value in zip(arguments, args, strict=False)
                if a.written
                for t in _tensors(value)
            ]
            before = [t._version for t in written]
            result = self._only(chosen(*args, **kwargs))
            for t, version in zip(written, before, strict=True):
                if t._version == version:  # it was written past this library
                    taeda.autograd.graph.increment_version(t)
            self._check_fresh(_tensors(result), tensors)
            return result

        return kernel

    def _by_device(self, name: str, function, args, kwargs):
        """The kernel that the argument `device` names, where no tensor tells it."""
        names = [a.name for a in self._opoverload._schema.arguments]
        device = {**dict(zip(names, args, strict=False)), **kwargs}.get("device")
        kind = name if device is None else taeda.device(device).type
        if kind == name:
            return function
        found = self._kernels.get(kind, self._kernels.get(None))
        if found is None:
            raise RuntimeError(
                f"{self._name} does not have a kernel registered for {kind}. Please "
                "use register_kernel to do so."
            )
        return found

    def _check_fresh(self, results: list, given: list) -> None:
        taken = {t.untyped_storage()._cdata: "an argument" for t in given}
        for i, result in enumerate(results):
            memory = result.untyped_storage()._cdata
            if memory in taken:
                raise RuntimeError(
                    f"{self._qualname}: result {i} (shape {tuple(result.shape)}) is "
                    f"{taken[memory]} or shares its memory. The output of this custom "
                    "operator must not also be an input and may not alias any inputs "
                    "or other returns (aliasing); return a clone of it."
                )
            taken[memory] = f"result {i}"

    @contextlib.contextmanager
    def set_kernel_enabled(self, device_type: str, enabled: bool = True):
        """Within it, a kernel of `register_kernel` is used or, disabled, passed over.

        Args:
            device_type: whose kernel; the function that the operator was made of runs
                in place of a disabled one.
            enabled: whether it is used.

        Warns where there is no kernel for the device type.

        Example:
            >>> @taeda.library.custom_op("mine::once", mutates_args=())
            ... def once(x: taeda.Tensor) -> taeda.Tensor:
            ...     return x + 1
            >>> @once.register_kernel("cpu")
            ... def quicker(x):
            ...     return x + 100
            >>> with once.set_kernel_enabled("cpu", False):
            ...     once(taeda.zeros(1)).item()
            1.0
        """
        if device_type not in self._kernels:
            warnings.warn(
                f"set_kernel_enabled: {self._qualname} has no kernel for {device_type}",
                stacklevel=3,
            )
        earlier = set(self._disabled)
        (self._disabled.discard if enabled else self._disabled.add)(device_type)
        try:
            yield
        finally:
            self._disabled = earlier

    def register_fake(self, fn, /):
        """Sets the kernel for tensors without data."""

        @functools.wraps(fn)
        def fake(*args, **kwargs):
            return self._only(fn(*args, **kwargs))

        made = fake if self._gives_tuple else fn
        taeda.library.register_fake(self, made, lib=self._lib)
        return fn

    def register_autocast(self, device_type: str, cast_inputs, /) -> None:
        """See `taeda.library.register_autocast`."""
        taeda.library.register_autocast(self, device_type, cast_inputs, lib=self._lib)

    def register_vmap(self, func=None, /):
        """See `taeda.library.register_vmap`."""
        return taeda.library.register_vmap(self, func, lib=self._lib)

    def register_autograd(self, backward, /, *, setup_context=None) -> None:
        """Sets the derivative."""
        taeda.library.register_autograd(
            self, backward, setup_context=setup_context, lib=self._lib
        )


def _tensors(value) -> list:
    """The tensors with memory of their own in a value."""
    return [
        t
        for t in tree_leaves(value)
        if type(t) in (taeda.Tensor, taeda.nn.Parameter)
        and t.layout is taeda.strided
        and not t.is_inference()
    ]


def custom_op(
    name: str, fn=None, /, *, mutates_args, device_types=None, schema=None, tags=None
):
    """Makes an operator of a Python function.

    Args:
        name: "namespace::name".
        fn: the function; without it a decorator is returned. Its results must be new
            tensors.
        mutates_args: names of the arguments that it writes.
        device_types: device types that the function is for; None is all.
        schema: from the parenthesis on; inferred from the annotations if None.
        tags: a `taeda.Tag` or several, which the overload's `tags` lists.

    Raises:
        NotImplementedError: tensors that are given by name alone.
        ValueError: when the name has no namespace, an annotation is no schema type, or
            the schema writes other arguments than `mutates_args`.

    Example:
        >>> @taeda.library.custom_op("mine::doubled", mutates_args=())
        ... def doubled(x: taeda.Tensor) -> taeda.Tensor:
        ...     return x * 2
        >>> doubled(taeda.ones(1)).item()
        2.0
    """
    from taeda._tags import Tag

    chosen = [tags] if isinstance(tags, Tag) else list(tags or ())

    def make(function) -> CustomOpDef:
        ns, scope, op_name = name.partition("::")
        if not scope:
            raise ValueError(f"expected a qualified name `ns::name`, got {name!r}")
        text = schema
        if text is None:
            text = taeda.library.infer_schema(function, mutates_args=mutates_args)
        else:
            _check_written(text, mutates_args)
        tags = [Tag.pt2_compliant_tag, *chosen]
        op = CustomOpDef(ns, op_name, text, function, tags)
        op.register_kernel(device_types, function)
        return op

    return make if fn is None else make(fn)


def _check_written(text: str, mutates_args) -> None:
    arguments = Schema(f"f{text}").arguments
    written = {a.name for a in arguments if a.written}
    if mutates_args != "unknown" and written != set(mutates_args):
        raise ValueError(
            f"Attempted to create a custom op with `mutates_args={mutates_args}` and "
            f"`schema={text}`. The schema suggests that the op mutates {written}, "
            "which is different from what was provided in `mutates_args`."
        )
