"""Types and modes that take over functions of the library: `__torch_function__`."""

from __future__ import annotations

import taeda
from taeda import _C

__all__ = [
    "BaseTorchFunctionMode",
    "TorchFunctionMode",
    "enable_reentrant_dispatch",
    "get_default_nowrap_functions",
    "get_ignored_functions",
    "get_overridable_functions",
    "get_testing_overrides",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "redispatch_function",
    "resolve_name",
    "wrap_torch_function",
]

# Whether any object of a sequence, the one argument, or any of the arguments has
# __torch_function__ (or a mode is active).
has_torch_function = _C._has_torch_function
has_torch_function_unary = _C._has_torch_function_unary
has_torch_function_variadic = _C._has_torch_function_variadic


def handle_torch_function(public_api, relevant_args, *args, **kwargs):
    """Call the first `__torch_function__` that handles a function.

    Args:
        public_api: the function as users know it.
        relevant_args: the arguments that may override it.
        args, kwargs: of the call.

    Returns:
        What the override returns.

    Raises:
        TypeError: all of them returned NotImplemented.
    """
    return _C._handle_torch_function(public_api, relevant_args, *args, **kwargs)


def redispatch_function(func, types, args, kwargs):
    """Call a function past the override that is being answered.

    For a `__torch_function__` that wants what the function does. Functions that it
    calls in turn are overridden as ever, by its tensors of a subclass or by modes.

    Args:
        func, types, args, kwargs: as `__torch_function__` got them; `kwargs` may be
            None.

    Returns:
        What `func` returns without this override.

    Example:
        >>> class Named(taeda.Tensor):
        ...     @classmethod
        ...     def __torch_function__(cls, func, types, args=(), kwargs=None):
        ...         found = taeda.overrides.redispatch_function(
        ...             func, types, args, kwargs
        ...         )
        ...         return func.__name__, found
        >>> taeda.exp(taeda.zeros(1).as_subclass(Named))
        ('exp', tensor([1.]))
    """
    return _C._skip_one_hop_torch_function(func, types, args, kwargs)


def wrap_torch_function(dispatcher):
    """A decorator that makes a Python function overridable.

    Args:
        dispatcher: takes the function's arguments, returns those that may override.

    Example:
        >>> @taeda.overrides.wrap_torch_function(lambda x: (x,))
        ... def twice(x):
        ...     return x + x
        >>> twice(taeda.tensor([1.0]))
        tensor([2.])
    """

    def wrap(function):
        from functools import wraps

        @wraps(function)
        def wrapped(*args, **kwargs):
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return wrapped

    return wrap


def is_tensor_like(inp) -> bool:
    """Whether an object is a tensor or has `__torch_function__`."""
    return type(inp) is taeda.Tensor or hasattr(inp, "__torch_function__")


_nowrap: frozenset | None = None


def get_default_nowrap_functions() -> frozenset:
    """Attributes that the default `__torch_function__` hands out as they are."""
    global _nowrap
    if _nowrap is None:
        names = ("_base", "grad", "_grad")
        _nowrap = frozenset(getattr(taeda.Tensor, n).__get__ for n in names)
    return _nowrap


def get_ignored_functions() -> set:
    """Public functions that never ask `__torch_function__`."""
    names = (
        "typename is_tensor is_storage set_default_tensor_type set_default_device"
        " get_default_device get_rng_state set_rng_state manual_seed initial_seed seed"
        " save load set_printoptions fork_rng get_num_threads set_num_threads"
        " is_grad_enabled set_grad_enabled no_grad enable_grad tensor as_tensor asarray"
        " from_numpy frombuffer from_dlpack zeros ones empty full eye arange range"
        " linspace logspace rand randn randint randperm get_default_dtype"
        " set_default_dtype finfo iinfo can_cast promote_types compile to_dlpack"
        " is_inference_mode_enabled get_num_interop_threads set_num_interop_threads"
        " get_device_module broadcast_shapes"
    )
    found = set()
    for name in names.split():
        function = getattr(taeda, name, None)
        if function is not None:
            found.add(function)
    asking = "boolean_dispatch handle_torch_function has_torch_function"
    asking += " has_torch_function_unary has_torch_function_variadic sigmoid tanh"
    asking += " assert_int_or_pair upsample upsample_bilinear upsample_nearest"
    found |= {getattr(taeda.nn.functional, name) for name in asking.split()}
    found |= {taeda.fft.fftfreq, taeda.fft.rfftfreq}
    tensor = taeda.Tensor
    return found | {getattr(tensor, name) for name in _MADE_OF_CLASSES.split()}


# Members of Tensor that make or describe a class or an object.
_MADE_OF_CLASSES = (
    "__new__ __init__ __hash__ __subclasshook__ __init_subclass__ __class__ __dir__"
    " __delitem__ __torch_function__ __torch_dispatch__ as_subclass _make_subclass"
    " _make_wrapper_subclass _repr_html_"
)


def get_overridable_functions() -> dict:
    """Overridable functions by the namespace that holds them.

    Of Tensor operators are among them (`Tensor.__add__`), and what reads an attribute
    (`Tensor.shape.__get__`); of modules, functions without an underscore.

    Example:
        >>> taeda.linalg.qr in taeda.overrides.get_overridable_functions()[taeda.linalg]
        True
    """
    ignored = get_ignored_functions()
    modules = (taeda, taeda.functional, taeda.nn.functional)
    modules += (taeda.linalg, taeda.special, taeda.fft)
    found: dict = {space: _functions_of(space, ignored) for space in modules}
    natives = taeda._C._VariableFunctions
    found[taeda] += [getattr(natives, n) for n in dir(natives) if _is_public(n)]
    found[taeda] = list(dict.fromkeys(f for f in found[taeda] if f not in ignored))
    found[taeda.Tensor] = list(_members_of_tensor(ignored))
    return found


def _is_public(name: str) -> bool:
    return name[0].islower() and not name.endswith("_")


def _functions_of(space, ignored: set) -> list:
    functions = (getattr(space, n) for n in space.__all__ if _is_public(n))
    return [f for f in functions if _is_function(f) and f not in ignored]


def _is_function(value) -> bool:
    return callable(value) and not isinstance(value, type)


def _members_of_tensor(ignored: set):
    for name in dir(taeda.Tensor):
        member = getattr(taeda.Tensor, name)
        if callable(member):
            if member not in ignored and getattr(object, name, None) != member:
                yield member
        elif hasattr(member, "__get__"):
            yield member.__get__


def get_testing_overrides() -> dict:
    """A function that returns -1 for each overridable function, with its signature.

    It takes what one of the function's overloads takes, and raises TypeError for other
    arguments; any where the function tells no signature. `inspect.signature` of it is
    the first overload's.

    Example:
        >>> taeda.overrides.get_testing_overrides()[taeda.add](1, 2, alpha=3)
        -1
    """
    from taeda._testing_overrides import testing_overrides

    return testing_overrides()


def resolve_name(f) -> str | None:
    """The name of an overridable function as a user would write it."""
    name = getattr(f, "__qualname__", None) or getattr(f, "__name__", None)
    if name is None:
        return None
    owner = getattr(f, "__objclass__", None)
    if owner is not None:
        return f"{taeda.__name__}.Tensor.{f.__name__}"
    return f"{getattr(f, '__module__', None) or taeda.__name__}.{name}"


def is_tensor_method_or_property(func) -> bool:
    """Whether a function is a method of Tensor or reads one of its attributes."""
    if getattr(func, "__name__", None) == "__get__":
        return True
    name = getattr(func, "__name__", "")
    return getattr(taeda.Tensor, name, None) is func


class TorchFunctionMode:
    """A context in which every call of the library goes through a method.

    Subclasses define `__torch_function__(self, func, types, args=(), kwargs=None)`;
    calls made inside it go to the next outer mode.

    Example:
        >>> class Names(taeda.overrides.TorchFunctionMode):
        ...     def __torch_function__(self, func, types, args=(), kwargs=None):
        ...         print(func.__name__)
        ...         return func(*args, **(kwargs or {}))
        >>> with Names():
        ...     _ = taeda.zeros(1)
        zeros
    """

    inner = None

    def __torch_function__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError(
            f"{type(self).__name__} does not define __torch_function__"
        )

    def __enter__(self):
        _C._push_on_torch_function_stack(self)
        return self

    def __exit__(self, *exception) -> None:
        _C._pop_torch_function_stack()

    @classmethod
    def push(cls, *args, **kwargs):
        """The old way to make and enter a mode."""
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that changes nothing."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class _Setting:
    """Turns `__torch_function__` of subclasses, and of modes, off for a scope."""

    states = (False, True)

    def __enter__(self) -> None:
        self.before = _C._set_torch_function_enabled(*self.states)

    def __exit__(self, *exception) -> None:
        _C._set_torch_function_enabled(*self.before)


class DisableTorchFunctionSubclass(_Setting):
    """Inside, subclasses override nothing; modes still do."""


class DisableTorchFunction(_Setting):
    """Inside, neither subclasses nor modes override anything."""

    states = (False, False)


def enable_reentrant_dispatch():
    """A context for `__torch_dispatch__`: inside, calls are recorded by autograd."""
    return _C._ReenterDispatch()


def _get_current_function_mode():
    """The innermost active mode, or None."""
    count = _C._len_torch_function_stack()
    return _C._get_function_stack_at(count - 1) if count else None


def _get_current_function_mode_stack() -> list:
    count = _C._len_torch_function_stack()
    return [_C._get_function_stack_at(i) for i in range(count)]


_C.DisableTorchFunctionSubclass = DisableTorchFunctionSubclass
_C.DisableTorchFunction = DisableTorchFunction
_C._disabled_torch_function = DisableTorchFunctionSubclass
