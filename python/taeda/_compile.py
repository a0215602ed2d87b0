"""taeda.compile. The graph compiler does not exist yet: one backend of it does, the one
that runs programs as they are written."""

from __future__ import annotations

import os

# PyTorch's backends and modes: those that are known and not there are NotImplemented,
# others are an error of the program.
_MISSING = frozenset(
    "aot_eager aot_eager_decomp_partition aot_eager_default_partitioner aot_ts"
    " cudagraphs eager_debug eager_noexcept inductor invoke_subgraph openxla"
    " openxla_eval pre_dispatch_eager ts tvm".split()
)
_MODES = "default lite reduce-overhead max-autotune-no-cudagraphs max-autotune".split()


def compile(
    model=None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend=None,
    mode: str | None = None,
    options: dict | None = None,
    disable: bool = False,
):
    """A function or module prepared by a backend of the graph compiler.

    Args:
        model: what to compile; without it, a decorator is returned.
        fullgraph: refuse what is not one graph. Not implemented, as no graph is made.
        dynamic: whether sizes are symbols; "eager" has none.
        backend: "eager" runs the program as it is written. Others of PyTorch's, among
            them "inductor", which None stands for, and functions are not implemented.
        mode, options: of "inductor"; "eager" warns that it ignores them.
        disable: give the function or module itself. TORCH_COMPILE_DISABLE=1 or
            TORCHDYNAMO_DISABLE=1 in the environment asks for that too.

    Returns:
        A function that calls `model`, or an OptimizedModule that holds it.

    Raises:
        NotImplementedError: a backend of PyTorch's that is not there, or a function.
        InvalidBackend (a RuntimeError): no backend has this name.
        RuntimeError: an unknown mode; mode and options together.
        AssertionError: `model` cannot be called.

    Example:
        >>> taeda.compile(lambda x: x + 1, backend="eager")(taeda.ones(2))
        tensor([2., 2.])
    """
    if mode is not None and options is not None:
        raise RuntimeError(
            "Either mode or options can be specified, but both can't be specified at "
            "the same time."
        )
    settings = {"fullgraph": fullgraph, "dynamic": dynamic, "backend": backend}
    settings |= {"mode": mode, "options": options, "disable": disable}
    if model is None:
        return lambda function: compile(function, **settings)
    if not callable(model):
        raise AssertionError(
            f"compile: expected a callable, got {type(model).__name__}"
        )
    if not isinstance(dynamic, (bool, type(None))):
        raise AssertionError(f"compile: dynamic must be a bool, got {dynamic!r}")
    if disable or _switched_off():
        return model
    _check_backend(backend, mode, options)
    if fullgraph:
        raise NotImplementedError(
            "compile: fullgraph=True is not implemented: no graph is made, and so it "
            "cannot be told whether there is one"
        )
    return _run_by_hand(model)


def _switched_off() -> bool:
    names = ("TORCH_COMPILE_DISABLE", "TORCHDYNAMO_DISABLE")
    return any(os.environ.get(name) == "1" for name in names)


def _check_backend(backend, mode, options) -> None:
    """Raises unless it is "eager"."""
    name = "inductor" if backend is None else backend
    if name == "eager":
        extra = {"mode": mode, "options": options}
        extra = {k: v for k, v in extra.items() if v not in (None, {}, "default")}
        if extra:
            import warnings

            warnings.warn(f"compile: backend 'eager' ignores {extra}", stacklevel=4)
        return
    if isinstance(name, str) and name not in _MISSING:
        from taeda._dynamo.exc import InvalidBackend

        raise InvalidBackend(
            f"compile: Invalid backend: {name!r}; PyTorch's are "
            f"{', '.join(sorted(_MISSING | {'eager'}))}"
        )
    if name == "inductor" and mode is not None and mode not in _MODES:
        raise RuntimeError(
            f"compile: Unrecognized mode={mode}, should be one of: {', '.join(_MODES)}"
        )
    raise NotImplementedError(
        f"compile: backend {name!r} is not implemented; backend='eager' runs the "
        "program as it is written, and TORCH_COMPILE_DISABLE=1 in the environment "
        "leaves every program as it is"
    )


def _run_by_hand(model):
    """What the backend "eager" makes of a module or function."""
    from taeda.nn import Module

    if isinstance(model, Module):
        from taeda._dynamo.eval_frame import OptimizedModule

        return OptimizedModule(model)
    from functools import wraps

    @wraps(model)
    def run(*args, **kwargs):
        return model(*args, **kwargs)

    run._torchdynamo_orig_callable = model
    return run
