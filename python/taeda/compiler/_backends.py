"""What becomes of captured graphs: the backends, by name."""

from __future__ import annotations

import functools
import threading

__all__ = [
    "choose",
    "get_default_backend",
    "list_backends",
    "lookup_backend",
    "register_backend",
    "set_default_backend",
]

# Modes of the default backend, which a backend that is a function gets as an argument.
MODES = "default lite reduce-overhead max-autotune-no-cudagraphs max-autotune".split()
# Options of the default backend with the types that they take. But for those of `_USED`
# they tell a tuner what to try and change no result; there is no tuner yet.
OPTIONS = {
    "blocking": bool,
    "check": bool,
    "coordinate_descent_tuning": bool,
    "cpp.threads": int,
    "emulate_precision_casts": bool,
    "epilogue_fusion": bool,
    "max_autotune": bool,
    "max_autotune_gemm": bool,
    "max_autotune_pointwise": bool,
    "shape_padding": bool,
    "triton.cudagraphs": bool,
}
_USED = ("blocking", "check", "emulate_precision_casts")
# PyTorch's names that nothing stands for here.
MISSING = frozenset(
    "aot_ts cudagraphs eager_debug invoke_subgraph openxla openxla_eval"
    " pre_dispatch_eager ts tvm".split()
)
GROUP = "taeda_backends"

# Guarded by the lock: functions by name, their tags, and whether entry points of
# installed packages were looked for.
_lock = threading.Lock()
_functions: dict = {}
_tags: dict[str, tuple] = {}
_points: dict | None = None
# What `backend=None` stands for; one assignment replaces it.
_default_backend = "inductor"


def _as_captured(gm, example_inputs):
    return gm.forward


def _compiled(gm, example_inputs, **settings):
    from ._default import changes_state_of_tensors, compile_function

    if changes_state_of_tensors(gm):
        return gm.forward
    return compile_function(gm.forward, example_inputs, **settings)


def _default(gm, example_inputs, *, mode=None, options=None):
    """The default backend, for a graph that somebody else has captured."""
    return _compiled(gm, example_inputs, fuse=True, **_settings(options))


def _settings(options: dict | None) -> dict[str, bool]:
    """What the default backend does of its options."""
    given = {name.replace("-", "_"): v for name, v in (options or {}).items()}
    return {name: given[name] for name in _USED if name in given}


def _joint(gm, example_inputs):
    """Forward and backward graphs whose calls run one by one."""
    return _compiled(gm, example_inputs, fuse=False)


def _joint_with_recompute(gm, example_inputs):
    """The same, split so that least is kept between them: cheap calls run again."""
    return _compiled(gm, example_inputs, fuse=False, recompute=True)


def _as_captured_without_errors(gm, example_inputs):
    """The calls as they are, which must not raise."""

    def run(*inputs):
        try:
            return gm(*inputs)
        except Exception as error:
            from taeda._dynamo.exc import TorchDynamoException

            raise TorchDynamoException(
                "Unexpected exception when running generated GraphModule"
            ) from error

    return run


@functools.cache
def _default_of_calls(**settings):
    """The default backend as capture calls it: it gets calls, no GraphModule."""
    from ._default import compile_calls

    def default(*graph, fullgraph=False):
        return compile_calls(*graph, fullgraph=fullgraph, **settings)

    default.takes_calls = True
    default.takes_passes = settings["fuse"]
    default.settings = settings
    return default


# Backends for which no GraphModule is made: capture runs their graphs itself.
_BY_CAPTURE = {"aot_eager": _joint, "eager": _as_captured, "inductor": _default}
_functions.update(_BY_CAPTURE)
_functions["aot_eager_decomp_partition"] = _joint_with_recompute
_functions["aot_eager_default_partitioner"] = _joint
_functions["eager_noexcept"] = _as_captured_without_errors
_tags.update(dict.fromkeys(_functions, ("debug",)), inductor=())


def register_backend(compiler_fn=None, name: str | None = None, tags=()):
    """Gives a backend a name.

    Args:
        compiler_fn: called with an `fx.GraphModule` and its inputs; returns a function
            of the inputs that gives the outputs. Without it, a decorator is returned.
        name: `compiler_fn.__name__` by default.
        tags: kinds that `list_backends` can leave out, like "debug".

    Returns:
        The function.

    Raises:
        AssertionError: the name is in use; what is given cannot be called.

    Example:
        >>> def mine(gm, inputs):
        ...     return gm.forward
        >>> _ = taeda._dynamo.register_backend(mine, tags=("experimental",))
        >>> taeda.compile(lambda x: x + 1, backend="mine")(taeda.ones(2))
        tensor([2., 2.])
    """

    def add(function):
        if not callable(function):
            raise AssertionError(
                f"register_backend: expected a callable, got {type(function).__name__}"
            )
        known = name or function.__name__
        with _lock:
            if known in _functions:
                raise AssertionError(f"register_backend: duplicate name: {known}")
            _functions[known], _tags[known] = function, tuple(tags)
        return function

    return add if compiler_fn is None else add(compiler_fn)


def _entry_points() -> dict:
    """Backends of installed packages, which name them in the group `taeda_backends`."""
    global _points
    if _points is None:
        from importlib.metadata import entry_points

        found = {point.name: point for point in entry_points(group=GROUP)}
        with _lock:
            _points = found
    return _points


def list_backends(exclude_tags=("debug", "experimental")) -> list[str]:
    """Names of the compiler's backends, those of installed packages among them.

    Args:
        exclude_tags: kinds to leave out; None or () leaves out none.
    """
    excluded = set(exclude_tags or ())
    names = {name for name, tags in _tags.items() if not excluded.intersection(tags)}
    return sorted(names.union(set(_entry_points()) - set(_functions)))


def lookup_backend(compiler_fn):
    """The function of a backend, which may be given by name.

    Raises:
        NotImplementedError: a name of PyTorch's that nothing stands for here.
        InvalidBackend: no backend has this name.
    """
    if not isinstance(compiler_fn, str):
        return compiler_fn
    found = _functions.get(compiler_fn)
    if found is None and compiler_fn in _entry_points():
        found = _entry_points()[compiler_fn].load()
        with _lock:
            _functions.setdefault(compiler_fn, found)
            _tags.setdefault(compiler_fn, ())
    if found is not None:
        return found
    if compiler_fn in MISSING:
        raise NotImplementedError(
            f"compile: backend {compiler_fn!r} is not implemented; there are "
            f"{', '.join(list_backends(None))}"
        )
    from taeda._dynamo.exc import InvalidBackend

    raise InvalidBackend(
        f"compile: Invalid backend: {compiler_fn!r}; there are "
        f"{', '.join(list_backends(None))}"
    )


def set_default_backend(backend) -> None:
    """Sets what `taeda.compile` uses where it is given no backend.

    Args:
        backend: a name or function; None stands for "inductor".

    Example:
        >>> taeda.compiler.set_default_backend("eager")
        >>> taeda.compiler.get_default_backend()
        'eager'
        >>> taeda.compiler.set_default_backend(None)
    """
    global _default_backend
    _default_backend = backend or "inductor"


def get_default_backend():
    """The name or function that `taeda.compile` uses where it is given no backend."""
    return _default_backend


def choose(backend, mode, options):
    """A function of (gm, inputs), or None where capture runs its graphs itself.

    Here the default backend is chosen (`_default.py`), by "inductor" and by None unless
    `set_default_backend` said otherwise.

    Raises:
        InvalidBackend, NotImplementedError: as `lookup_backend`.
        RuntimeError: a mode or option that the default backend does not have.
    """
    function = lookup_backend(_default_backend if backend is None else backend)
    if not callable(function):
        raise AssertionError(
            f"compile: expected a backend that is callable, got {function!r}"
        )
    if function is _default:
        _check_mode(mode)
        _check_options(options or {})
        return _default_of_calls(fuse=True, **_settings(options))
    if function is _joint:
        _say_ignored(backend, mode, options)
        return _default_of_calls(fuse=False)
    if function is _as_captured:
        _say_ignored(backend, mode, options)
        return None
    extra = {}
    if mode and mode != "default":
        extra["mode"] = mode
    if options:
        extra["options"] = options
    return functools.partial(function, **extra) if extra else function


def _check_mode(mode) -> None:
    if mode is not None and mode not in MODES:
        raise RuntimeError(
            f"compile: Unrecognized mode={mode}, should be one of: {', '.join(MODES)}"
        )


def _check_options(options: dict) -> None:
    for name, value in options.items():
        kind = OPTIONS.get(name.replace("-", "_"))
        if kind is None:
            raise RuntimeError(
                f"compile: Unexpected optimization option {name}, known options are "
                f"{sorted(OPTIONS)}"
            )
        if type(value) is not kind:
            raise RuntimeError(
                f"compile: Unexpected type of attr {name}, got "
                f"{type(value).__name__} should be {kind.__name__}"
            )


def _say_ignored(backend: str, mode, options) -> None:
    extra = {"mode": mode, "options": options}
    extra = {k: v for k, v in extra.items() if v not in (None, {}, "default")}
    if extra:
        import warnings

        warnings.warn(f"compile: backend {backend!r} ignores {extra}", stacklevel=5)


def name_of(function) -> str:
    """How messages name a backend."""
    while isinstance(function, functools.partial):
        function = function.func
    return getattr(function, "__name__", type(function).__name__)
