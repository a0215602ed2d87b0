"""An exported program by core operators, without writes."""

from __future__ import annotations

import contextlib
import copy
import functools
import re

import taeda
from taeda import nn
from taeda._functorch.levels import below, functional_level
from taeda._subclasses._symbolic_rules import rule_of
from taeda.fx.experimental._above import call_with_floats
from taeda.fx.experimental.proxy_tensor import ProxyTorchDispatchMode
from taeda.fx.graph_module import GraphModule
from taeda.fx.interpreter import Interpreter
from taeda.fx.proxy import Proxy
from taeda.utils import _pytree as pytree

from . import graph_signature as sig
from ._tracer import ExportTracer, force_name, names_of

__all__ = ["decomposed"]

_MUTATIONS = {
    sig.InputKind.PARAMETER: sig.OutputKind.PARAMETER_MUTATION,
    sig.InputKind.BUFFER: sig.OutputKind.BUFFER_MUTATION,
    sig.InputKind.USER_INPUT: sig.OutputKind.USER_INPUT_MUTATION,
}


class _Tracer(ExportTracer):
    """Nodes have the notes of the node that is taken apart."""

    source = None

    def create_node(self, kind: str, target, args, kwargs, name=None, type_expr=None):
        """As always, with notes of where it comes from."""
        made = super().create_node(kind, target, args, kwargs, name, type_expr)
        made.meta.pop("stack_trace", None)
        if self.source is not None:
            for key in ("nn_module_stack", "stack_trace", "custom"):
                if key in self.source.meta:
                    made.meta[key] = self.source.meta[key]
        return made


class _Rerun(Interpreter):
    """Runs the graph inside of the level that takes writes away."""

    def __init__(self, module, run: _Decomposition) -> None:
        super().__init__(module)
        self.run_, self.extra_traceback = run, False

    def run_node(self, n):
        """As always; new nodes come from this one."""
        run = self.run_
        run.tracer.source = n
        calls = n.op == "call_function" and hasattr(n.target, "overloadpacket")
        with run.laying_out() if calls else contextlib.nullcontext():
            result = super().run_node(n)
        if n.name in self.run_.noted:
            self.run_.noted[n.name] = result
        return result

    def call_function(self, target, args, kwargs):
        """By the table, else as it is; composites without an entry stay whole."""
        run = self.run_
        if target is taeda._C._set_grad_enabled:
            return None
        if target in (taeda.ops.aten.item.default, _scalar()):
            return run.number(args[0])
        if target is taeda.ops.aten._assert_scalar.default:
            return run.assertion(target, args)
        if getattr(target, "namespace", None) == "higher_order":
            return run.branches(target, args)
        if target in run.written:
            return run.written[target](*args, **kwargs)
        if run.stays_whole(target, args, kwargs):
            return run.whole(target, args, kwargs)
        if any(isinstance(a, taeda.SymFloat) for a in (*args, *kwargs.values())):
            return call_with_floats(target, args, kwargs)
        return super().call_function(target, args, kwargs)


class _Decomposition:
    def __init__(self, program, table) -> None:
        self.program, self.table = program, table
        self.written = dict(self.table)
        self.tracer = _Tracer({}, {})
        self.tracer.root = nn.Module()
        self.mode = ProxyTorchDispatchMode(self.tracer, "symbolic", self.written)
        self.level = functional_level(is_transform=False)
        self.specs: dict[str, sig.InputSpec] = {}
        self.bodies: dict[str, GraphModule] = {}  # taken apart, by their names
        # Old names in signatures of calls, and what has them in the rerun.
        self.noted: dict = {}

    def stays_whole(self, op, args, kwargs) -> bool:
        """Whether a composite has no entry in the table, or cannot be taken apart."""
        from .decomp_utils import _is_composite

        if not isinstance(op, taeda._ops.OpOverload) or op in _readers():
            return False
        if op._schema.is_mutable or op in _casts():
            return False
        if rule_of(op, args, kwargs) is not None:
            return True  # what it calls, or C++ on the way to it, would fix symbols
        if op in self.table:
            return False
        return _is_composite(op) or op in _seen_as_parts()

    def laying_out(self):
        """A context in which operators ask of sizes what their results' are."""
        self.mode.env = self.env
        return self.mode.laying_out()

    def number(self, tensor):
        """The number in a tensor: the same symbol as in the graph that is rerun."""
        value = self.tracer.source.meta["val"]
        inside = self.level.unwrap(tensor)
        proxy = self.tracer.create_proxy("call_function", _scalar(), (inside,), {})
        self.tracer.track(value, proxy)
        return value

    def branches(self, target, args):
        """A call with graphs, which are taken apart by themselves."""
        source, tracer = self.tracer.source, self.tracer
        inside = pytree.tree_map_only(taeda.Tensor, self.level.unwrap, args)
        given = [
            self.body(old.target, value)
            if isinstance(value, nn.Module)
            else tracer.create_arg(value)
            for value, old in zip(inside, source.args, strict=True)
        ]
        node = tracer.create_node(
            "call_function", target, tuple(given), {}, source.name
        )
        only = functools.partial(pytree.tree_map_only, taeda.Tensor)
        values = only(lambda v: v.without_history(), tuple(source.meta["val"]))
        proxy = Proxy(node, tracer)
        tracer.track(values, proxy)
        for i, number in enumerate(values):
            if isinstance(number, taeda.SymInt):
                tracer.track(number, proxy[i])
        return only(self.level.wrap, values)

    def body(self, path: str, module):
        """The node of a graph that a call takes."""
        if path not in self.bodies:
            with below(self.level):
                self.mode.enabled = False
                try:
                    self.bodies[path] = _Body(module, self).run()
                finally:
                    self.mode.enabled = True
        return self.tracer.create_node("get_attr", path, (), {})

    def assertion(self, target, args) -> None:
        """What was said of a number is said again: it is known to hold by now."""
        text = self.tracer.source.meta.get("condition")
        if text is not None:
            condition = self.tracer.sizes.read(text)
            given = (condition, args[1])
            made = self.tracer.create_node("call_function", target, given, {})
            made.meta["condition"] = text

    def whole(self, op, args, kwargs):
        """A call that is recorded as it is."""
        inside = pytree.tree_map_only(taeda.Tensor, self.level.unwrap, (args, kwargs))
        with below(self.level):
            self.mode.enabled = False
            try:
                rule = rule_of(op, *inside)
                result = (rule or op)(*inside[0], **inside[1])
            finally:
                self.mode.enabled = True
            name = op.overloadpacket.__name__
            proxy = self.tracer.create_proxy("call_function", op, *inside, name)
            self.tracer.track(result, proxy)
        return pytree.tree_map_only(taeda.Tensor, self.level.wrap, result)

    def placeholders(self) -> list:
        """The inputs of the new graph, with the values of the old ones."""
        values = []
        specs = self.program.graph_signature.input_specs
        nodes = [n for n in self.program.graph.nodes if n.op == "placeholder"]
        for node, spec in zip(nodes, specs, strict=True):
            made = self.tracer.graph.placeholder(node.name)
            force_name(made, node.name)
            made.target = node.name
            made.meta.update(node.meta)
            value = node.meta.get("val")
            if isinstance(value, (taeda.Tensor, taeda.SymInt)):
                self.tracer.track(value, Proxy(made, self.tracer))
            self.specs[made.name] = spec
            values.append(value)
        self.tracer.first_user_input = next(
            (
                n
                for n in self.tracer.graph.nodes
                if self.specs[n.name].kind is sig.InputKind.USER_INPUT
            ),
            self.tracer.graph._root,
        )
        return values

    def run(self):
        """Records the new graph; gives the program."""
        from taeda._subclasses.fake_tensor import maybe_get_fake_mode

        values = self.placeholders()
        tensors = [v for v in values if isinstance(v, taeda.Tensor)]
        modes = (maybe_get_fake_mode(t) for t in tensors)
        fake_mode = next((m for m in modes if m is not None), None)
        self.tracer.fake_mode = fake_mode
        env = None if fake_mode is None else fake_mode.shape_env
        self.env, self.seen = env, [] if env is None else list(env.guards)
        self.noted = {arg.name: None for arg in _noted(self.program.module_call_graph)}
        with taeda.no_grad(), fake_mode or contextlib.nullcontext(), self._recording():
            return self._inside(values)

    @contextlib.contextmanager
    def _recording(self):
        """A context: what runs is recorded, below the level."""
        fake_mode = self.tracer.fake_mode
        before = None if fake_mode is None else fake_mode.on_item
        if fake_mode is not None:
            fake_mode.on_item = self.mode.learn_item
        try:
            with self.mode, self.level:
                yield
        finally:
            if fake_mode is not None:
                fake_mode.on_item = before

    def wrapped(self, values: list) -> list:
        """The inputs as they are inside of the level."""
        tensors = [v for v in values if isinstance(v, taeda.Tensor)]
        made = self.level.wrap_inputs(tensors)
        inside = dict(zip(map(id, tensors), made, strict=True))
        return [inside.get(id(v), v) for v in values]

    def _inside(self, values: list):
        inputs = self.wrapped(values)
        rerun = _Rerun(self.program.graph_module, self)
        result = rerun.run(*inputs, enable_io_processing=False)
        self._check_sizes()
        self.tracer.source = None
        outputs, specs = [], []
        names = list(self.specs)
        for name, value, inside in zip(names, values, inputs, strict=True):
            if inside is value or not self.level.is_changed(inside):
                continue
            spec = self.specs[name]
            is_input = spec.kind is sig.InputKind.USER_INPUT
            if spec.kind is sig.InputKind.CONSTANT_TENSOR:
                raise RuntimeError(
                    f"run_decompositions: Constant {spec.target} is mutated in the "
                    "forward method, which no signature has: register it as a buffer"
                )
            outputs.append(self.level.unwrap(inside))
            specs.append((_MUTATIONS[spec.kind], name if is_input else spec.target))
        old = self.program.graph_signature.output_specs
        for value, spec in zip(result, old, strict=True):
            is_tensor = isinstance(value, taeda.Tensor)
            outputs.append(self.level.unwrap(value) if is_tensor else value)
            specs.append((spec.kind, spec.target))
        return self._finish(outputs, specs)

    def _check_sizes(self) -> None:
        """Refuses a graph that holds for fewer sizes than the program does."""
        new = [] if self.env is None else self.env.guards[len(self.seen) :]
        lost = [g for g in new if g.startswith("Eq(") and not re.search(r"\bu\d", g)]
        if lost:
            raise RuntimeError(
                "run_decompositions: operators that it takes apart need sizes as they "
                f"are in the example ({lost[0]}); take them out of the table"
            )

    def _finish(self, outputs: list, kinds: list):
        tracer, program = self.tracer, self.program
        with below(self.level):
            args = names_of(outputs, tracer)
            nodes = tuple(tracer.create_arg(v) for v in outputs)
        nodes = tuple(
            _without_copy(node) if kind in _MUTATIONS.values() else node
            for node, (kind, _) in zip(nodes, kinds, strict=True)
        )
        for node, arg in zip(nodes, args, strict=True):
            if isinstance(node, taeda.fx.Node):
                arg.name = node.name
        tracer.graph.output(nodes)
        names = self._names()
        constants = dict(program.constants)
        for name, target in tracer.constant_names.items():
            constants[target] = tracer.constants[target]
            arg = sig.TensorArgument(name)
            kind = sig.InputKind.CONSTANT_TENSOR
            self.specs[name] = sig.InputSpec(kind, arg, target)
        module = GraphModule(program.graph_module, tracer.graph)
        for path, body in self.bodies.items():
            setattr(module, path, body)
        tracer.graph.eliminate_dead_code(lambda n: n.is_impure(impure_random=False))
        module.recompile()
        module.shape_env = program.graph_module.shape_env
        module.meta["dialect"] = "ATEN"
        order = [n.name for n in tracer.graph.nodes if n.op == "placeholder"]
        outputs = [
            sig.OutputSpec(kind, arg, target)
            for (kind, target), arg in zip(kinds, args, strict=True)
        ]
        signature = sig.ExportGraphSignature([self.specs[n] for n in order], outputs)
        calls = self._calls(names)
        return program._update(
            module, signature, constants=constants, module_call_graph=calls
        )

    def _names(self) -> dict[str, str]:
        """The new names of what signatures of calls name."""
        found = {}
        with below(self.level):
            for old, value in self.noted.items():
                if isinstance(value, taeda.Tensor):
                    node = self.tracer.create_arg(self.level.unwrap(value))
                    found[old] = node.name
        return found

    def _calls(self, names: dict[str, str]) -> list:
        """The calls of submodules, by the new names."""
        calls = copy.deepcopy(self.program.module_call_graph)
        for arg in _noted(calls):
            arg.name = names.get(arg.name, arg.name)
        return calls


class _Body(_Decomposition):
    """The graph of a branch or of a turn of a loop.

    Args:
        module: the graph.
        outer: takes the program around it apart.
    """

    def __init__(self, module, outer) -> None:
        super().__init__(module, outer.table)
        self.tracer.fake_mode, self.env = outer.tracer.fake_mode, outer.env

    def run(self) -> GraphModule:
        """The new graph; the old one where it writes to its inputs."""
        tracer, module, values = self.tracer, self.program, []
        for node in module.graph.find_nodes(op="placeholder"):
            made = tracer.graph.placeholder(node.name)
            made.meta.update(node.meta)
            values.append(node.meta["val"])
            tracer.track(values[-1], Proxy(made, tracer))
        tracer.first_user_input = tracer.graph._root
        with self._recording():
            inputs = self.wrapped(values)
            result = _Rerun(module, self).run(*inputs, enable_io_processing=False)
            pairs = zip(values, inputs, strict=True)
            changed = any(a is not b and self.level.is_changed(b) for a, b in pairs)
        if changed or tracer.constant_names:
            return module
        tracer.source = None
        result = pytree.tree_map_only(taeda.Tensor, self.level.unwrap, result)
        tracer.graph.output(tracer.create_arg(result))
        made = GraphModule(module, tracer.graph)
        for path, body in self.bodies.items():
            setattr(made, path, body)
        tracer.graph.eliminate_dead_code(lambda n: n.is_impure(impure_random=False))
        made.recompile()
        return made


def _noted(calls: list) -> list:
    """What names nodes in the signatures of submodules' calls."""
    return [
        arg
        for entry in calls[1:]
        if entry.signature is not None
        for arg in (*entry.signature.inputs, *entry.signature.outputs)
        if not isinstance(arg, sig.ConstantArgument)
    ]


def _without_copy(node):
    """The new value of a whole tensor itself, in place of its copy."""
    if node.target is taeda.ops.aten.copy.default:
        old, new = (n.meta["val"] for n in node.args[:2])
        if (old.shape, old.dtype) == (new.shape, new.dtype):
            return node.args[1]
    return node


def _scalar():
    return taeda.ops.aten._local_scalar_dense.default


def _casts() -> tuple:
    return (taeda.ops.aten.to.dtype,)


def _readers() -> tuple:
    """Operators that give numbers: sizes of tensors."""
    aten = taeda.ops.aten
    return (aten.sym_size.int, aten.sym_stride.int, aten.sym_numel.default)


def _seen_as_parts() -> tuple:
    """Kernels that a mode of Python sees as what they are made of in PyTorch."""
    aten = taeda.ops.aten
    return (aten.linear.default, aten.matmul.default)


def decomposed(program, table):
    """See `ExportedProgram.run_decompositions`."""
    from .decomp_utils import CustomDecompTable

    table = CustomDecompTable() if table is None else table
    return _Decomposition(program, table).run()
