"""User operators from Python: declaration, kernels, fake kernels, derivatives.

Example:
    >>> @taeda.library.custom_op("mine::scale", mutates_args=())
    ... def scale(x: taeda.Tensor, factor: float) -> taeda.Tensor:
    ...     return x * factor
"""

from __future__ import annotations

import weakref

import taeda
from taeda import _C, _autocast_kernels
from taeda._infer_schema import infer_schema
from taeda._lazy import attributes
from taeda._ops import OpOverload, OpOverloadPacket, user_tags
from taeda._schema import Schema
from taeda._user_operators import (
    CustomOpDef,
    autograd_kernel,
    custom_op,
    refuse_keyword_tensors,
)

__all__ = [
    "CustomOpDef",
    "Library",
    "custom_op",
    "define",
    "get_ctx",
    "impl",
    "impl_abstract",
    "infer_schema",
    "opcheck",
    "register_autocast",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_vmap",
]

_RULES = "fallthrough_kernel get_kernel register_torch_dispatch triton_op wrap_triton"
__all__ += _RULES.split()
__getattr__ = attributes(__name__, dict.fromkeys(_RULES.split(), "._library_rules"))

_DEVICE_KEYS = {
    "cpu": "CPU",
    "cuda": "CUDA",
    "meta": "Meta",
    "privateuseone": "PrivateUse1",
}
_reserved = {"prim"}
# Libraries that this module makes itself, which stay: those of custom operators by
# name, so that a second definition replaces the first, and others. Each entry is
# written by one dict operation.
_of_operators: dict[str, Library] = {}
_kept: dict[int, Library] = {}


class Library:
    """Declares or implements operators of one namespace.

    What it declared and implemented is taken back when it is no longer referred to.

    Args:
        ns: the namespace.
        kind: "DEF" to declare new operators, "IMPL" or "FRAGMENT" to add to existing.
        dispatch_key: key that `impl` uses where none is given.

    Raises:
        ValueError: for a reserved namespace or an unknown kind.

    Example:
        >>> own = taeda.library.Library("owned", "DEF")
        >>> own.define("half(Tensor x) -> Tensor")
        'half'
        >>> own.impl("half", lambda x: x / 2, "CPU")
        >>> taeda.ops.owned.half(taeda.ones(1)).item()
        0.5
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("DEF", "IMPL", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}")
        if ns in _reserved and kind in ("DEF", "FRAGMENT"):
            raise ValueError(f"{ns} is a reserved namespace. Please try another one.")
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._op_defs: set[str] = set()
        self._kernels: list[int] = []
        self._fallbacks: list[str] = []
        made = self._kernels, self._op_defs, self._fallbacks
        self._end = weakref.finalize(self, _take_back, *made)
        self._end.atexit = False

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, key={self.dispatch_key})"

    def _destroy(self) -> None:
        """Takes everything back now."""
        self._end()

    def define(self, schema: str, alias_analysis: str = "", *, tags=()) -> str:
        """Declares an operator by its schema; returns its name.

        Args:
            schema: with the operator's name.
            alias_analysis: changes nothing: the schema says what shares memory.
            tags: a `taeda.Tag` or several, which the overload's `tags` lists.
        """
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE"):
            raise RuntimeError(f"Invalid alias_analysis type {alias_analysis}")
        chosen = _sorted_tags(tags)
        _C._library_def(self.ns, schema)
        parsed = Schema(schema)
        _forget(self.ns, parsed.name)
        name = parsed.name.split("::")[-1]
        full = f"{name}.{parsed.overload_name}" if parsed.overload_name else name
        self._op_defs.add(f"{self.ns}::{full}")
        user_tags[f"{self.ns}::{name}", parsed.overload_name] = chosen
        return full

    def impl(
        self,
        op_name,
        fn,
        dispatch_key: str = "",
        *,
        with_keyset=False,
        allow_override=True,
    ) -> None:
        """Registers `fn` as the kernel of an operator at a dispatch key.

        Args:
            op_name, fn, dispatch_key: which; `fallthrough_kernel` for none at this key.
            allow_override: False: there may be no kernel yet.

        Raises:
            NotImplementedError: with_keyset; kernels are called without their keys.
                `fallthrough_kernel` where there is a kernel to pass over.
            RuntimeError: not allow_override, and there is a kernel.
        """
        if with_keyset:
            raise NotImplementedError("Library.impl: with_keyset is not implemented")
        if not callable(fn):
            raise TypeError(
                f"Input function is required to be a callable but found type {type(fn)}"
            )
        op = _overload_of(op_name, self.ns)
        schema = op._schema
        key = dispatch_key or self.dispatch_key or "CompositeImplicitAutograd"
        if not allow_override and op.has_kernel_for_dispatch_key(key):
            raise RuntimeError(
                f"Library.impl: there's already a kernel for {op.name()} at {key}, and "
                "allow_override is False"
            )
        if getattr(fn, "__name__", "") == "fallthrough_kernel":
            if op.has_kernel_for_dispatch_key(key):
                raise NotImplementedError(
                    f"Library.impl: {op.name()} has a kernel at {key}, which cannot be "
                    "passed over"
                )
            return
        name = ".".join(part for part in op._native if part)
        if key in _autocast_kernels.DEVICES:
            _autocast_kernels.register(op, _autocast_kernels.DEVICES[key], fn, self)
            return
        kernel = _with_keywords(fn, schema)
        kinds = schema.kinds, _result_kinds(schema)
        self._kernels.append(_C._library_impl(op.namespace, name, key, kernel, *kinds))

    def fallback(self, fn, dispatch_key: str = "", *, with_keyset=False) -> None:
        """Registers what answers for operators without a kernel at a key.

        Args:
            fn: called as fn(operator, *args, **kwargs); `fallthrough_kernel` for none.
            dispatch_key: "CPU" or "Meta"; that of the library where none is given.

        Raises:
            RuntimeError: the library's namespace is not "_", which means all.
            NotImplementedError: with_keyset; a key at which the build has kernels for
                everything, or which it does not have.
        """
        if with_keyset:
            raise NotImplementedError(
                "Library.fallback: with_keyset is not implemented"
            )
        if self.ns != "_":
            raise RuntimeError(
                "Fallback can only be registered using library fragment on the global "
                f'namespace "_" but it is {self.ns}'
            )
        key = dispatch_key or self.dispatch_key
        if not key:
            raise ValueError("Library.fallback: expected a dispatch key, got none")
        if not callable(fn):
            raise TypeError(
                f"Input function is required to be a callable but found type {type(fn)}"
            )
        through = getattr(fn, "__name__", "") == "fallthrough_kernel"
        if through and key not in _autocast_kernels.DEVICES:
            return
        if key not in ("CPU", "Meta") or not _C._library_fallback(key, fn):
            raise NotImplementedError(f"Library.fallback: dispatch key {key}")
        self._fallbacks.append(key)


def _take_back(kernels: list[int], definitions: set[str], fallbacks: list[str]) -> None:
    while fallbacks:
        _C._library_fallback(fallbacks.pop(), None)
    while kernels:
        _C._library_take_back(kernels.pop())
    while definitions:
        name, _, overload = definitions.pop().partition(".")
        _C._library_withdraw(name, overload)
        user_tags.pop((name, overload), None)
        _forget(*name.split("::"))


class _scoped_library:
    """A library for a `with` block."""

    def __init__(self, *args, **kwargs) -> None:
        self._library = Library(*args, **kwargs)

    def __enter__(self) -> Library:
        return self._library

    def __exit__(self, *error) -> None:
        self._library._destroy()


def _lasting(ns: str, kind: str) -> Library:
    """A library that nobody holds and that stays."""
    library = Library(ns, kind)
    _kept[id(library)] = library
    return library


def _with_keywords(fn, schema: Schema):
    """`fn` as a function of all arguments in the schema's order."""
    names = [a.name for a in schema.arguments if a.kwarg_only]
    if not names:
        return fn
    positional = len(schema.arguments) - len(names)

    def kernel(*args):
        keywords = dict(zip(names, args[positional:], strict=True))
        return fn(*args[:positional], **keywords)

    return kernel


def _result_kinds(schema: Schema) -> tuple[str, ...]:
    return schema.return_kinds


def _forget(ns: str, name: str) -> None:
    """A packet made before a new overload was declared is out of date."""
    namespace = getattr(taeda.ops, ns)
    namespace.__dict__.pop(name.split("::")[-1], None)


def _sorted_tags(tags) -> list:
    from taeda._tags import Tag

    chosen = {tags} if isinstance(tags, Tag) else set(tags)
    for tag in chosen:
        if not isinstance(tag, Tag):
            raise TypeError(f"library: tags: expected a Tag, got {tag!r}")
    return sorted(chosen, key=int)


def _of_operator(qualname: str) -> Library:
    """The library of a custom operator; the one of its earlier definition ends."""
    earlier = _of_operators.pop(qualname, None)
    if earlier is not None:
        earlier._destroy()
    library = _of_operators[qualname] = Library(qualname.partition("::")[0], "FRAGMENT")
    return library


def _overload_of(op, ns: str = "") -> OpOverload:
    """The overload that a name, a packet, an overload or a custom operator means."""
    if isinstance(op, OpOverload):
        return op
    if isinstance(op, CustomOpDef):
        return op._opoverload
    if isinstance(op, OpOverloadPacket):
        return getattr(op, op.overloads()[0])
    scope, _, rest = op.rpartition("::")
    if not (scope or ns):
        raise ValueError(f"expected a qualified name `ns::name`, got {op!r}")
    name, _, overload = rest.partition(".")
    packet = getattr(getattr(taeda.ops, scope or ns), name)
    return getattr(packet, overload or "default")


def define(qualname, schema: str = "", alias_analysis="", *, lib=None, tags=()):
    """Declares `ns::name`; `schema` is the part from the parenthesis on.

    Args:
        qualname: the name. A `Library` in the old way: `schema` has the name then, and
            a decorator is returned for a kernel of all devices.
        schema, alias_analysis, tags: as `Library.define` takes them.
        lib: with which the operator goes away.

    Raises:
        ValueError: when the name has no namespace.

    Example:
        >>> taeda.library.define("mine::third", "(Tensor x) -> Tensor")
        >>> @taeda.library.impl("mine::third", "cpu")
        ... def third(x):
        ...     return x / 3
        >>> taeda.ops.mine.third(taeda.tensor([6.0])).item()
        2.0
    """
    if isinstance(qualname, Library):
        library, name = qualname, qualname.define(schema, alias_analysis, tags=tags)

        def register(fn):
            library.impl(name, fn)
            return fn

        return register
    if not isinstance(qualname, str):
        raise ValueError(
            "define(qualname, schema): expected qualname to be instance of str, "
            f"got {type(qualname)}"
        )
    ns, name = _parts_of(qualname)
    if not schema.lstrip().startswith("("):
        raise ValueError(
            "define(qualname, schema): expected schema to look like e.g. "
            f'"(Tensor x) -> Tensor" but got {schema!r}'
        )
    library = lib or _lasting(ns, "FRAGMENT")
    library.define(name + schema, alias_analysis, tags=tags)
    return None


def _parts_of(qualname: str) -> tuple[str, str]:
    ns, scope, name = qualname.partition("::")
    if not (ns and scope and name):
        raise ValueError(
            'Expected `qualname` to be of the form "namespace::name", but got '
            f"{qualname!r}"
        )
    return ns, name


def impl(qualname, types, func=None, *, lib: Library | None = None):
    """Registers a kernel of an operator for device types ("cpu", "cuda", "default").

    In the old way `qualname` is a `Library`, `types` the operator's name and `func` a
    dispatch key or nothing.

    Example:
        >>> taeda.library.define("mine::fourth", "(Tensor x) -> Tensor")
        >>> taeda.library.impl("mine::fourth", "cpu", lambda x: x / 4) is None
        False
        >>> taeda.ops.mine.fourth(taeda.tensor([8.0])).item()
        2.0
    """
    if isinstance(qualname, Library):
        return lambda fn: qualname.impl(types, fn, func or "") or fn

    def register(fn):
        ns, _ = _parts_of(qualname)
        for key in _keys_of(types):
            (lib or _lasting(ns, "IMPL")).impl(qualname, fn, key)
        return fn

    return register if func is None else register(func)


def _keys_of(types) -> list[str]:
    names = [types] if isinstance(types, str) or types is None else list(types)
    keys = []
    for name in names:
        if name in (None, "default", "CompositeExplicitAutograd"):
            keys.append("CompositeExplicitAutograd")
        else:
            if name == taeda._C._get_privateuse1_backend_name():
                name = "privateuseone"
            keys.append(_DEVICE_KEYS.get(name, name))
    return keys


def register_kernel(op, device_types, func=None, /, *, lib: Library | None = None):
    """Registers a kernel of a custom operator for device types; None is all of them.

    Example:
        >>> @taeda.library.custom_op("mine::one", mutates_args=(), device_types="cuda")
        ... def plain(x: taeda.Tensor) -> taeda.Tensor:
        ...     return x + 1
        >>> @taeda.library.register_kernel(plain, "cpu")
        ... def _(x):
        ...     return x + 1
        >>> plain(taeda.ones(1)).item()
        2.0
    """
    target = _overload_of(op)

    def register(fn):
        for key in _keys_of(device_types):
            (lib or _lasting(target.namespace, "IMPL")).impl(target, fn, key)
        return fn

    return register if func is None else register(func)


def register_fake(
    op, func=None, /, *, lib: Library | None = None, _stacklevel=1, allow_override=True
):
    """Registers how an operator acts on tensors without data (device meta).

    Args:
        op: name, overload or custom operator.
        func: of the operator's arguments.
        lib: with which it goes away.
        allow_override: False: there may be none yet, else RuntimeError.

    Example:
        >>> @taeda.library.custom_op("mine::first_row", mutates_args=())
        ... def first_row(x: taeda.Tensor) -> taeda.Tensor:
        ...     return x[0].clone()
        >>> @taeda.library.register_fake(first_row)
        ... def _(x):
        ...     return x.new_empty(x.shape[1:])
        >>> first_row(taeda.empty(2, 3, device="meta")).shape
        taeda.Size([3])
    """
    target = _overload_of(op)

    def register(fn):
        library = lib or _lasting(target.namespace, "IMPL")
        # What a custom operator has without one is none.
        anew = allow_override or target.needs_fake
        library.impl(target, fn, "Meta", allow_override=anew)
        target.needs_fake = False
        return fn

    return register if func is None else register(func)


def impl_abstract(qualname, func=None, *, lib: Library | None = None, _stacklevel=1):
    """The old name of `register_fake`."""
    import warnings

    warnings.warn(
        "library.impl_abstract is deprecated; call library.register_fake",
        FutureWarning,
        stacklevel=2,
    )
    return register_fake(qualname, func, lib=lib)


class FakeImplCtx:
    """What a fake kernel may ask for; see `get_ctx`."""

    def __init__(self, shape_env) -> None:
        self._shape_env = shape_env

    def new_dynamic_size(self, *, min: int = 0, max: int | None = None):
        """A size that the elements of the arguments decide.

        Args:
            min, max: its least and its largest value.

        Raises:
            DynamicOutputShapeException: the fake tensors have no such sizes.
        """
        env = self._shape_env
        if env is None or not env.allow_dynamic_output_shape_ops:
            from taeda._subclasses.fake_tensor import DynamicOutputShapeException

            raise DynamicOutputShapeException("library.get_ctx().new_dynamic_size")
        size = env.create_unbacked_symint()
        taeda._check(size >= min)
        if max is not None:
            taeda._check(size <= max)
        return size

    create_unbacked_symint = new_dynamic_size


def get_ctx() -> FakeImplCtx | None:
    """The context of the fake kernel that runs; None outside of fake kernels.

    Example:
        >>> taeda.library.get_ctx() is None
        True
    """
    from taeda._subclasses import fake_tensor

    mode = fake_tensor.running_mode.get()
    return None if mode is None else FakeImplCtx(mode.shape_env)


def register_vmap(op, func=None, /, *, lib: Library | None = None):
    """Says what vmap makes of a custom operator.

    Args:
        op: name, overload or custom operator.
        func: called as func(info, in_dims, *args, **kwargs) in place of the operator
            where an argument is mapped over. `info` has batch_size and randomness,
            in_dims the mapped dim of each argument or None. It returns the results,
            and which of their dims is mapped over.
        lib: not needed.

    Raises:
        ValueError: op is none of these.

    Example:
        >>> @taeda.library.custom_op("mine::twice", mutates_args=())
        ... def twice(x: taeda.Tensor) -> taeda.Tensor:
        ...     return 2 * x
        >>> @taeda.library.register_vmap("mine::twice")
        ... def of_batch(info, in_dims, x):
        ...     return twice(x), in_dims[0]
        >>> taeda.vmap(twice)(taeda.ones(2, 1)).tolist()
        [[2.0], [2.0]]
    """
    if not isinstance(op, (str, OpOverload, CustomOpDef)):
        raise ValueError(f"register_vmap({op}): got unexpected type for op: {type(op)}")
    target = _overload_of(op)
    refuse_keyword_tensors(target._schema)

    def register(rule):
        target.vmap_rule = rule
        return rule

    return register if func is None else register(func)


def register_autograd(
    op, backward, /, *, setup_context=None, lib: Library | None = None
) -> None:
    """Registers the derivative of a functional operator.

    Args:
        op: the operator.
        backward: called as backward(ctx, *grads), gives a gradient for every input.
        setup_context: called as setup_context(ctx, inputs, output) after the forward.

    Raises:
        RuntimeError: when the operator writes its arguments or returns views.
        NotImplementedError: it has tensors that are given by name alone.

    Example:
        >>> @taeda.library.custom_op("mine::fivefold", mutates_args=())
        ... def fivefold(x: taeda.Tensor) -> taeda.Tensor:
        ...     return x * 5
        >>> taeda.library.register_autograd(fivefold, lambda ctx, grad: grad * 5)
        >>> x = taeda.ones(1, requires_grad=True)
        >>> fivefold(x).backward()
        >>> x.grad.item()
        5.0
    """
    target = _overload_of(op)
    schema = target._schema
    if any(a.written for a in schema.arguments):
        raise RuntimeError(
            f"Cannot register autograd formula for non-functional operator {op} "
            f"with schema {schema}. Please create a functional operator and register "
            "an autograd formula for that."
        )
    refuse_keyword_tensors(schema)
    kernel = autograd_kernel(target, backward, setup_context)
    (lib or _lasting(target.namespace, "IMPL")).impl(target, kernel, "Autograd")


def register_autocast(
    op, device_type: str, cast_inputs, /, *, lib: Library | None = None
) -> None:
    """Says what autocast does to a custom operator: the dtype its tensors are cast to.

    Args:
        op: name, overload or custom operator.
        device_type: "cpu" or "cuda".
        cast_inputs: dtype of the floating-point tensors of the device, float64 apart;
            the operator runs on them with autocast disabled.

    Raises:
        ValueError: op is none of these, or another device.

    Example:
        >>> @taeda.library.custom_op("mine::product", mutates_args=())
        ... def product(x: taeda.Tensor) -> taeda.Tensor:
        ...     return x @ x
        >>> taeda.library.register_autocast("mine::product", "cpu", taeda.float32)
    """
    if not isinstance(op, (str, OpOverload, CustomOpDef)):
        raise ValueError(
            f"register_autocast({op}): got unexpected type for op: {type(op)}"
        )
    if device_type == taeda._C._get_privateuse1_backend_name():
        device_type = "privateuseone"
    if device_type not in ("cpu", "cuda", "privateuseone"):
        raise ValueError(f"register_autocast: Unknown device type: {device_type}")
    target = _overload_of(op)
    rule = _autocast_kernels.casting(target, device_type, cast_inputs)
    library = lib or _lasting(target.namespace, "IMPL")
    _autocast_kernels.register(target, device_type, rule, library)


def opcheck(
    op,
    args,
    kwargs=None,
    *,
    test_utils=(
        "test_schema",
        "test_autograd_registration",
        "test_faketensor",
        "test_aot_dispatch_dynamic",
    ),
    raise_exception=True,
    atol=None,
    rtol=None,
) -> dict:
    """Checks a custom operator on sample inputs.

    Args:
        op: the operator (`custom_op`'s result, an overload, or its qualified name).
        args: positional arguments; at least one should require grad.
        kwargs: keyword arguments.
        test_utils: which checks: that nothing is written that the schema does not say
            (test_schema), that results are differentiable (test_autograd_registration),
            that the fake kernel gives the same sizes and types (test_faketensor), that
            a compiled call has the same results and gradients
            (test_aot_dispatch_dynamic).
        raise_exception: False: failures are returned instead of raised.
        atol, rtol: for checks that compare values; none of the above does.

    Returns:
        dict of check to "SUCCESS" or the exception.

    Raises:
        OpCheckError: on the first failure.

    Example:
        >>> @taeda.library.custom_op("mine::tripled", mutates_args=())
        ... def tripled(x: taeda.Tensor) -> taeda.Tensor:
        ...     return x * 3
        >>> @tripled.register_fake
        ... def _(x):
        ...     return taeda.empty_like(x)
        >>> checks = ("test_schema", "test_faketensor")
        >>> taeda.library.opcheck(tripled, (taeda.ones(2),), test_utils=checks)
        {'test_schema': 'SUCCESS', 'test_faketensor': 'SUCCESS'}
    """
    from taeda import _opcheck

    return _opcheck.opcheck(
        _overload_of(op),
        args,
        kwargs,
        test_utils=test_utils,
        raise_exception=raise_exception,
    )
