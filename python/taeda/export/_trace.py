"""Runs a module on stand-ins and makes an exported program of what it called."""

from __future__ import annotations

import contextlib

import taeda
from taeda import nn
from taeda._dynamo.exc import UserError, UserErrorType
from taeda.fx._patches import tracing
from taeda.fx.experimental._sizes import Sizes
from taeda.fx.graph_module import GraphModule
from taeda.fx.proxy import Proxy
from taeda.utils import _pytree as pytree

from . import graph_signature as sig
from ._guards import Symbol, ValueRanges, check_named, holds_always, pretty
from ._inputs import Inputs, identifier
from ._shape_trees import leaf_shapes
from ._state import State
from ._tracer import ExportMode, ExportTracer, force_name, names_of, program_trace
from .dynamic_shapes import INT_OO, AdditionalInputs, ShapesCollection
from .exported_program import ExportedProgram, ModuleCallEntry, ModuleCallSignature

__all__ = ["trace"]

_DRAFT = (
    "\n\nThe error above occurred when calling {}.export.export. If you would like to "
    "view some more information about this error, and get a list of all other errors "
    "that may occur in your export call, you can replace your `export()` call with "
    "`draft_export()`."
)


class _Export:
    """One export; see `export.export`."""

    def __init__(self, mod, args, kwargs, preserved) -> None:
        from taeda._subclasses import FakeTensorMode
        from taeda.fx.experimental.symbolic_shapes import ShapeEnv

        self.mod, self.state = mod, State(mod)
        for path in preserved:
            mod.get_submodule(path)
        self.inputs = Inputs(mod.forward, args, kwargs)
        self.env = ShapeEnv()
        self.fake_mode = FakeTensorMode(
            shape_env=self.env, static_shapes=True, allow_non_fake_inputs=True
        )
        paths = {id(m): path for path, m in reversed(self.state.modules.items())}
        self.tracer = ExportTracer(paths, self.state.attributes, preserved)
        self.tracer.root = nn.Module()
        self.tracer.fake_mode = self.fake_mode
        self.mode = ExportMode(self.tracer, "symbolic")
        self.mode.env = self.env
        self.fake_mode.on_item = self.mode.learn_item

    def program(self, dynamic_shapes) -> ExportedProgram:
        """Runs the module and gives the program."""
        if isinstance(dynamic_shapes, (ShapesCollection, AdditionalInputs)):
            inputs = self.inputs
            dynamic_shapes = dynamic_shapes.dynamic_shapes(
                self.mod, inputs.args, inputs.kwargs
            )
        self.inputs.assign_shapes(leaf_shapes(self.inputs.combined, dynamic_shapes))
        values = self.inputs.stand_ins(self.fake_mode)
        fakes = self._placeholders(values)
        result = self._run(values, fakes)
        outputs, self.out_spec = pytree.tree_flatten(result)
        self._write_buffers()
        self.output_specs = self._output(outputs)
        self._assert_said()
        guards = self._conditions()
        check_named(self.inputs.symbols, guards)
        return self._finish(guards)

    def _conditions(self) -> list[str]:
        """The guards that sizes of inputs must meet, as text over symbols.

        Operators also ask for what decides how they lay out a result. What holds for
        all sizes that are tried is left out, and that a size is not some number.
        """
        found = []
        symbols = self.inputs.symbols
        for i, guard in enumerate(self.env.guards):
            if any(word[0] == "u" for word in _words(guard)):
                continue
            by_operator = i in self.mode.internal
            layout = guard.startswith("Ne(") or holds_always(guard, symbols)
            if not (by_operator and layout):
                found.append(guard)
        return found

    def _placeholders(self, values: list) -> dict:
        """Inputs of the graph: state, then the caller's; gives id -> stand-in."""
        tracer, state = self.tracer, self.state
        fakes: dict[int, taeda.Tensor] = {}
        self.specs: dict[str, sig.InputSpec] = {}
        for path, tensor in state.all().items():
            is_parameter = path in state.parameters
            kind = sig.InputKind.PARAMETER if is_parameter else sig.InputKind.BUFFER
            # As in PyTorch, which takes the prefix for a trace of its own.
            short = path.removeprefix("self_")
            proxy = self._placeholder(f"{'p' if is_parameter else 'b'}_{short}")
            fake = self.fake_mode.from_tensor(tensor)
            fakes[id(tensor)] = fake
            tracer.track(fake, proxy)
            tracer.known[id(tensor)] = tensor, proxy
            kept = None if is_parameter else path in state.persistent
            arg = sig.TensorArgument(proxy.node.name)
            self.specs[proxy.node.name] = sig.InputSpec(kind, arg, path, kept)
        renamed: dict[str, str] = {}
        for leaf, value in zip(self.inputs.leaves, values, strict=True):
            proxy = self._placeholder(leaf.name)
            tracer.first_user_input = tracer.first_user_input or proxy.node
            renamed[leaf.name] = proxy.node.name
            self._take(proxy, leaf, value)
        self.inputs.rename(renamed)
        if tracer.first_user_input is None:
            tracer.first_user_input = tracer.graph._root
        return fakes

    def _placeholder(self, name: str) -> Proxy:
        node = self.tracer.graph.placeholder(identifier(name))
        taken = {n.name for n in self.tracer.graph.nodes if n is not node}
        if identifier(name) not in taken:
            force_name(node, identifier(name))
        node.target = node.name
        return Proxy(node, self.tracer)

    def _take(self, proxy, leaf, value) -> None:
        name = leaf.name = proxy.node.name
        if isinstance(value, taeda.Tensor):
            self.tracer.track(value, proxy)
            if value is not leaf.value:
                self.tracer.known[id(leaf.value)] = leaf.value, proxy
            arg = sig.TensorArgument(name)
        elif isinstance(value, taeda.SymInt):
            self.tracer.track(value, proxy)
            arg = sig.SymIntArgument(name)
        else:
            proxy.node.meta["val"] = value
            arg = sig.ConstantArgument(name, value)
        self.specs[name] = sig.InputSpec(sig.InputKind.USER_INPUT, arg, None)

    def _run(self, values: list, fakes: dict):
        from taeda.compiler import _exporting

        args, kwargs = pytree.tree_unflatten(values, self.inputs.spec)
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.state.replaced(fakes))
            stack.enter_context(tracing(self.tracer))
            stack.enter_context(_exporting())
            stack.enter_context(self.fake_mode)
            stack.enter_context(self.mode)
            return run_exported(self.mod, args, kwargs)

    def _write_buffers(self) -> None:
        """What was assigned to buffers is copied into them at the end."""
        names = {s.target: n for n, s in self.specs.items() if s.target is not None}
        nodes = {n.name: n for n in self.tracer.graph.nodes}
        for path, value in self.state.written.items():
            if path not in names or not isinstance(value, taeda.Tensor):
                raise ValueError(
                    f"export: {path} was assigned during export; only a registered "
                    "buffer that is there before may be"
                )
            args = (nodes[names[path]], self.tracer.create_arg(value))
            target = taeda.ops.aten.copy_.default
            node = self.tracer.create_node(
                "call_function", target, args, {}, "copy__default"
            )
            node.meta["val"] = value

    def _assert_said(self) -> None:
        """Checks what the program said of numbers that come from data."""
        tracer = self.tracer
        rank = {node: i for i, node in enumerate(tracer.graph.nodes)}
        for text in reversed(self.env.deferred_runtime_asserts):
            sizes = Sizes(tracer)
            sizes.sources = tracer.sizes.sources
            names = _words(text)
            made = {n: tracer.sizes.made[n] for n in names if n in tracer.sizes.made}
            sizes.made = {n: node for n, node in made.items() if node in rank}
            owners = [
                sizes.sources[n][0].node
                for n in names - set(sizes.made)
                if n in sizes.sources
            ]
            found = [*sizes.made.values(), *owners]
            if not found:
                continue
            place = max(found, key=rank.__getitem__).next
            with tracer.graph.inserting_before(place):
                condition = sizes.read(text)
                message = (
                    f"Runtime assertion failed for expression {text} on node "
                    f"'{condition}'"
                )
                target = taeda.ops.aten._assert_scalar.default
                args = (condition, message)
                node = tracer.create_node("call_function", target, args, {})
                node.meta["condition"] = text

    def _output(self, outputs: list) -> list[sig.OutputSpec]:
        for value in outputs:
            if not isinstance(value, (taeda.Tensor, *_OUTPUTS)):
                raise UserError(
                    UserErrorType.INVALID_OUTPUT,
                    f"Unsupported output type {type(value)}: exported programs return "
                    "pytree containers of tensors and numbers",
                )
        tracer = self.tracer
        self.mode.at_end()
        args = names_of(outputs, tracer)
        values = tuple(tracer.create_arg(v) for v in outputs)
        tracer.graph.output(values)
        kind = sig.OutputKind.USER_OUTPUT
        return [sig.OutputSpec(kind, arg, None) for arg in args]

    def _finish(self, guards: list[str]) -> ExportedProgram:
        tracer, state = self.tracer, self.state
        for name, target in tracer.constant_names.items():
            self.specs[name] = sig.InputSpec(
                sig.InputKind.CONSTANT_TENSOR, sig.TensorArgument(name), target
            )
        graph = tracer.graph
        module = GraphModule(tracer.root, graph)
        module.shape_env = self.env
        order = [n.name for n in graph.nodes if n.op == "placeholder"]
        signature = sig.ExportGraphSignature(
            [self.specs[name] for name in order], self.output_specs
        )
        constants = dict(tracer.constants)
        table = {}
        for path, tensor in state.all().items():
            is_kept = path in state.parameters or path in state.persistent
            (table if is_kept else constants)[path] = tensor
        return ExportedProgram(
            module,
            graph,
            signature,
            table,
            self._ranges(),
            self._module_calls(),
            (self.inputs.args, self.inputs.kwargs),
            constants,
            guards=self._guards(guards),
        )

    def _ranges(self) -> dict:
        """Symbol -> its range; of sizes that come from data what was said of them."""
        used = {
            Symbol(repr(size))
            for node in self.tracer.graph.nodes
            for size in _symbols_of(node.meta.get("val"))
        }
        used |= self.inputs.roots
        ranges = {s: r for s, r in self.inputs.ranges.items() if s in used}
        said = [text for text, _ in self.env._native.assertions()]
        for node in self.tracer.graph.nodes:
            value = node.meta.get("val")
            values = value.shape if isinstance(value, taeda.Tensor) else [value]
            for name in sorted({w for v in values for w in _words(repr(v))}):
                if name[0] == "u" and name[1:].isdigit():
                    least = 0 if name in self.tracer.sizes.sources else -INT_OO
                    found = _range_of(name, said)
                    found.lower = max(found.lower, least)
                    ranges.setdefault(Symbol(name), found)
                elif name.startswith("zuf"):
                    infinite = float("inf")
                    ranges[Symbol(name)] = ValueRanges(-infinite, infinite)
        return ranges

    def _guards(self, guards: list[str]) -> list[str]:
        """What must hold of the caller's inputs, by their names."""
        inputs = self.inputs
        sources = {s.name: s.source for s in inputs.symbols}
        found = []
        for leaf in inputs.leaves:
            value = leaf.stand_in
            if isinstance(value, taeda.Tensor):
                for i, n in enumerate(value.shape):
                    if isinstance(n, int):
                        found.append(f"{leaf.name}.size()[{i}] == {n}")
            elif type(value) in (int, float, bool, str):
                found.append(f"{leaf.name} == {value!r}")
        found += [pretty(text, sources) for text in inputs.equal]
        found += [pretty(text, sources) for text in guards]
        for symbol in inputs.symbols:
            if symbol.low > 2:
                found.append(f"{symbol.source} >= {symbol.low}")
            if symbol.high < INT_OO:
                found.append(f"{symbol.source} <= {symbol.high}")
        return list(dict.fromkeys(found))

    def _module_calls(self) -> list[ModuleCallEntry]:
        names = self.inputs.names
        whole = ModuleCallSignature([], [], self.inputs.spec, self.out_spec, names)
        entries = [ModuleCallEntry("", whole)]
        calls, paths = self.tracer.calls, [p for p in self.state.modules if p]
        for path in dict.fromkeys([*paths, *calls]):
            call = calls.get(path)
            entries.append(ModuleCallEntry(path, call and self._call(*call)))
        return entries

    def _call(self, args, kwargs, result) -> ModuleCallSignature:
        _, in_spec = pytree.tree_flatten((args, kwargs))
        _, out_spec = pytree.tree_flatten(result)
        inputs, outputs = (names_of(v, self.tracer) for v in ((args, kwargs), result))
        return ModuleCallSignature(inputs, outputs, in_spec, out_spec)


_OUTPUTS = (
    *(int, float, bool, str, complex, type(None)),
    *(taeda.SymInt, taeda.SymFloat, taeda.SymBool),
)


def run_exported(mod, args, kwargs):
    """Calls the module; the traces of nodes end here."""
    return mod(*args, **kwargs)


def _words(text: str) -> set[str]:
    import re

    return set(re.findall(r"\b[a-z]+\d+\b", text))


def _symbols_of(value):
    if isinstance(value, taeda.Tensor):
        return [n for n in value.shape if isinstance(n, taeda.SymInt)]
    return [value] if isinstance(value, taeda.SymInt) else []


def _range_of(name: str, said: list[str]) -> ValueRanges:
    """The range of a size that comes from data, by what was said of it."""
    import re

    low, high = (-INT_OO, INT_OO)
    for text in said:
        found = re.fullmatch(rf"{name} >= (-?\d+)", text)
        low = max(low, int(found[1])) if found else low
        found = re.fullmatch(rf"{name} <= (-?\d+)|(-?\d+) >= {name}", text)
        high = min(high, int(found[1] or found[2])) if found else high
    return ValueRanges(low, high)


def _located(error: Exception, place: str) -> None:
    """Adds the program's line to an error about values that nobody knows."""
    text = f"{error}\n\nThe following call raised this error:\n  {place}\n"
    error.args = (text,)


def trace(mod, args, kwargs, dynamic_shapes, preserved) -> ExportedProgram:
    """The exported program of a module; see `export.export`."""
    from taeda.fx.experimental.symbolic_shapes import (
        ConstraintViolationError,
        GuardOnDataDependentSymNode,
    )

    if not isinstance(args, tuple):
        error = UserError(
            UserErrorType.INVALID_INPUT,
            "Expecting `args` to be a tuple of example positional inputs, got "
            f"{type(args)}",
        )
        raise _with_hint(error)
    try:
        return _Export(mod, args, dict(kwargs or {}), preserved).program(dynamic_shapes)
    except GuardOnDataDependentSymNode as error:
        place = _place_of(error)
        if place:
            _located(error, place)
        raise _with_hint(error) from None
    except (UserError, ConstraintViolationError) as error:
        raise _with_hint(error) from None


def _place_of(error) -> str:
    """The program's lines at which an error came up."""
    tb, found = error.__traceback__, None
    while tb is not None:
        found, tb = tb, tb.tb_next
    return "" if found is None else _trace_from(found.tb_frame)


def _trace_from(frame) -> str:
    return program_trace(frame)


def _with_hint(error):
    error.args = (f"{error}{_DRAFT.format(taeda.__name__)}", *error.args[1:])
    return error
