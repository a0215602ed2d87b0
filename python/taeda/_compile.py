"""taeda.compile. What it needs is imported when something is compiled."""

from __future__ import annotations

import os


def compile(
    model=None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend=None,
    mode: str | None = None,
    options: dict | None = None,
    name: str | None = None,
    disable: bool = False,
    recompile_limit: int | None = None,
    isolate_recompiles: bool = False,
    shapes_spec=None,
):
    """A function or module whose tensor operations are captured as graphs.

    At the first call, and where later ones differ from it in what counts (types, sizes,
    dtypes, numbers, what the program reads of its surroundings), the bytecode is
    followed and the calls of the library become a graph, which the backend is given.
    Where a graph cannot go on, the program runs as it is written for that instruction,
    and the next graph begins.

    Args:
        model: what to compile; without it, a decorator is returned.
        fullgraph: refuse what is not one graph.
        dynamic: whether sizes are symbols; None for those that differed between calls.
        backend: called with an `fx.GraphModule` and its inputs (tensors), returns a
            function of the inputs that returns the outputs; or the name of a backend.
            "eager" runs graphs as they were captured, "aot_eager" as forward and
            backward graphs of operators. "inductor", which None stands for, fuses
            their calls into C++ kernels, which are compiled beside the program.
        mode, options: passed to a backend that is a function; checked for "inductor".
            The option "guard_filter_fn" is no backend's: a function that takes a list
            of guards (`_dynamo.types.GuardFilterEntry`) and returns for each whether
            it is looked at in later calls, like `compiler.skip_all_guards_unsafe`.
        name: an identifier for tools; of a function, kept as `compiled_name`.
        disable: give the function or module itself. TORCH_COMPILE_DISABLE=1 or
            TORCHDYNAMO_DISABLE=1 in the environment asks for that too.
        recompile_limit: how often one place of the function is captured, before it runs
            as it is written, or, with `fullgraph`, raises; None for
            `_dynamo.config.recompile_limit`.
        isolate_recompiles: keep what is captured apart from other calls of `compile`.
            Otherwise functions of one code that are made anew (closures, lambdas)
            share it, where the same is asked for them.
        shapes_spec: not there yet.

    Returns:
        A function with `explain()`, or an OptimizedModule that holds the module.

    Raises:
        NotImplementedError: a backend of PyTorch's that is not there, or a
            `shapes_spec`.
        InvalidBackend (a RuntimeError): no backend has this name.
        RuntimeError: an unknown mode or option; mode and options together.
        FailOnRecompileLimitHit: when called, of what reached its limit and may not run
            as it is written.
        AssertionError: `model` cannot be called.
        Unsupported: when called, of what is not one graph under `fullgraph`, or raises
            while it is captured there.
        BackendCompilerFailed: when called, of what the backend raised, and of what the
            default backend cannot make of a graph under `fullgraph`.

    Example:
        >>> taeda.compile(lambda x: x + 1)(taeda.ones(2))
        tensor([2., 2.])
    """
    if mode is not None and options is not None:
        raise RuntimeError(
            "Either mode or options can be specified, but both can't be specified at "
            "the same time."
        )
    settings = {"fullgraph": fullgraph, "dynamic": dynamic, "backend": backend}
    settings |= {"mode": mode, "options": options, "name": name}
    settings["recompile_limit"] = recompile_limit
    settings["isolate_recompiles"] = isolate_recompiles
    if shapes_spec is not None:
        raise NotImplementedError("compile: shapes_spec is not there yet")
    if model is None:
        return lambda function: compile(function, disable=disable, **settings)
    if not callable(model):
        raise AssertionError(
            f"compile: expected a callable, got {type(model).__name__}"
        )
    if not isinstance(dynamic, (bool, type(None))):
        raise AssertionError(f"compile: dynamic must be a bool, got {dynamic!r}")
    if disable or _switched_off():
        return model
    from taeda.compiler._entry import prepare

    return prepare(model, **settings)


def _disable_dynamo(fn=None, recursive: bool = True):
    """`taeda.compiler.disable` by the name that extensions call it."""
    from taeda.compiler import disable

    return disable(fn, recursive)


def _switched_off() -> bool:
    names = ("TORCH_COMPILE_DISABLE", "TORCHDYNAMO_DISABLE")
    return any(os.environ.get(name) == "1" for name in names)
