"""Backward passes as compiled graphs: what stands behind compiled autograd."""

from __future__ import annotations

import contextlib
import functools
import itertools
import operator

import taeda
from taeda import _compiler, fx
from taeda._logging import artifact_log

__all__ = ["PLANS", "around", "passes_for"]

# The plans of all threads, by who compiles them: a function of the program's ("custom",
# whichever it is, as in PyTorch) or the default backend, by its options. Each has a
# lock of its own; `setdefault` is one step.
PLANS: dict = {}
_numbers = itertools.count()


class _Value(int):
    """The number of a tensor among the arguments of a call."""


class _Events:
    """What capture of backward passes tells and asks.

    Args:
        compiler_fn: gets each graph as a GraphModule; None where the default backend
            runs them.
    """

    mark = _Value

    def __init__(self, compiler_fn=None) -> None:
        self._compiler_fn = compiler_fn

    def captured(self) -> None:
        from taeda._dynamo.utils import count

        count("compiled_autograd", "captures")

    def made(self, text: str) -> None:
        if self._compiler_fn is None:
            # A function of the program's counts what it compiles itself.
            from taeda._dynamo.utils import count

            count("compiled_autograd", "compiles")
        artifact_log("compiled_autograd", f"Compiled autograd graph:\n{text}")

    def ended(self, node: str, reason: str) -> None:
        artifact_log(
            "compiled_autograd",
            f"The graph ends before {node}, which is called: {reason}",
        )

    def left(self, reason: str) -> None:
        text = f"compiled_autograd: a backward pass runs eagerly: {reason}"
        artifact_log("compiled_autograd", text)

    def compile(self, graph: dict, text: str):
        self.made(text)
        module = module_of(graph)
        artifact_log("compiled_autograd", module.code.strip())
        compiled = self._compiler_fn(module)

        def run(inputs, symbols):
            with _in_region():
                return compiled(inputs, symbols, [], [], [])

        return run


def _plans(name):
    return PLANS.setdefault(name, _compiler.PassPlans())


def passes_for(compiler_fn, dynamic: bool):
    """How passes are compiled by a function of GraphModules, or the default backend."""
    if compiler_fn is None:
        return _of_backend({"fuse": True}, dynamic)
    events = _Events(compiler_fn)
    return _compiler.Passes(_plans("custom"), events, custom=True, dynamic=dynamic)


def _of_backend(settings: dict, dynamic: bool):
    from ._default import emulates_casts

    casts = "emulate_precision_casts"
    settings = {**settings, casts: emulates_casts(settings.get(casts))}
    plans = _plans(tuple(sorted(settings.items())))
    events = _Events()
    return _compiler.Passes(plans, events, custom=False, dynamic=dynamic, **settings)


def _passes_of_backend(backend, fullgraph: bool, dynamic: bool):
    settings = getattr(backend, "settings", None)
    if backend is None:
        return _of_backend({"fuse": False}, dynamic)
    if settings is not None:
        return _of_backend(settings, dynamic)

    def compile_module(gm):
        return taeda.compile(gm, backend=backend, fullgraph=fullgraph, dynamic=dynamic)

    return passes_for(compile_module, dynamic)


def around(made, backend, fullgraph: bool, dynamic: bool | None):
    """A compiled function in whose calls backward passes are compiled too."""
    from taeda._dynamo import compiled_autograd, config

    if dynamic is None:
        dynamic = not config.assume_static_by_default
    passes = _passes_of_backend(backend, fullgraph, dynamic)

    @functools.wraps(made)
    def call(*args, **kwargs):
        with compiled_autograd._entered(passes, ignore_active_disable_ctx=False):
            return made(*args, **kwargs)

    call.explain = made.explain
    call._torchdynamo_orig_callable = made._torchdynamo_orig_callable
    return call


@contextlib.contextmanager
def _in_region():
    from taeda._dynamo import compiled_autograd

    with compiled_autograd._running():
        yield


def module_of(graph: dict) -> fx.GraphModule:
    """A graph as a module whose forward takes (inputs, sizes, scalars, hooks,
    packed_data) and returns a tuple of tensors.

    Args:
        graph: as `_compiler` describes it.
    """
    from ._sizes import GraphSizes, SizeText

    out = fx.Graph()
    given = "inputs sizes scalars hooks packed_data".split()
    inputs, sizes, *_ = [out.placeholder(name) for name in given]
    constants = {f"constant_{k}": t for k, t in graph["constants"].items()}
    values = {k: out.get_attr(f"constant_{k}") for k in graph["constants"]}
    for i, entry in enumerate(graph["inputs"]):
        values[entry] = out.call_function(operator.getitem, (inputs, i))
    numbers = GraphSizes(out)
    for i, symbol in enumerate(graph["symbols"]):
        if isinstance(symbol, taeda.SymInt):
            numbers.learn(symbol, out.call_function(operator.getitem, (sizes, i)))

    def value(argument):
        if isinstance(argument, _Value):
            return values[argument]
        if isinstance(argument, (list, tuple)):
            return [value(a) for a in argument]
        if isinstance(argument, taeda.SymInt):
            return numbers.node(SizeText(str(argument)))
        return argument

    for name, arguments, results in graph["rows"]:
        target = _operator(name)
        node = out.call_function(target, *_arguments(target, [*map(value, arguments)]))
        if len(target._schema.returns) == 1 and not _is_list(target):
            values[results[0]] = node
            continue
        for i, entry in enumerate(results):
            if entry >= 0:
                values[entry] = out.call_function(operator.getitem, (node, i))
    out.output(tuple(values[entry] for entry in graph["outputs"]))
    out.eliminate_dead_code()
    return fx.GraphModule(constants, out, f"CompiledAutograd{next(_numbers)}")


def _operator(name: str):
    """The overload of a name such as "aten::add.Tensor"."""
    space, _, rest = name.partition("::")
    base, _, overload = rest.partition(".")
    return getattr(getattr(getattr(taeda.ops, space), base), overload or "default")


def _is_list(target) -> bool:
    return str(target._schema.returns[0].type).endswith("[]")


def _arguments(target, values) -> tuple[tuple, dict]:
    """Arguments as the schema takes them: by name behind its asterisk."""
    args, kwargs = [], {}
    for argument, value in zip(target._schema.arguments, values, strict=True):
        if argument.kwarg_only:
            kwargs[argument.name] = value
        else:
            args.append(value)
    return tuple(args), kwargs
