"""Exported programs as files.

Note [Files of programs]
A `.pt2` file is a zip archive: `models/model.json` has the graph, its signature and the
structures of its arguments; three members written by `taeda.save` have the state, the
constants and the example. Reading one makes nodes, numbers and tensors: operators are
looked up by name among those that are registered, functions in a short list, containers
among registered types. Nothing is unpickled but tensors, and no code is run.
"""

from __future__ import annotations

import functools
import io
import json
import operator
import os
import re
import zipfile

import taeda
from taeda import nn
from taeda._higher_order_ops._operators import operator_of
from taeda._ops import OpOverload
from taeda.fx.graph import Graph
from taeda.fx.graph_module import GraphModule
from taeda.fx.node import Node
from taeda.utils import _pytree as pytree

from . import graph_signature as sig
from ._guards import Symbol, ValueRanges, value_of
from ._tracer import force_name
from .exported_program import ExportedProgram, ModuleCallEntry, ModuleCallSignature

__all__ = ["load", "save"]

_VERSION = 1
_MODEL = "models/model.json"
_STATE = "data/weights/model.pt"
_CONSTANTS = "data/constants/model.pt"
_EXAMPLE = "data/sample_inputs/model.pt"
_NUMBERS = (
    "add and_ eq floordiv ge getitem gt invert le lt mod mul ne neg not_ or_ pow sub"
    " truediv"
)
_FUNCTIONS = {f"operator.{n}": getattr(operator, n) for n in _NUMBERS.split()}
_FUNCTIONS |= {
    f"sym.{n}": getattr(taeda, f"sym_{n}")
    for n in ("float", "int", "max", "min", "not", "sqrt")
}
_FUNCTIONS["set_grad_enabled"] = taeda._C._set_grad_enabled
_ARGUMENTS = {
    kind.__name__: kind
    for kind in (
        sig.TensorArgument,
        sig.SymIntArgument,
        sig.SymFloatArgument,
        sig.SymBoolArgument,
        sig.ConstantArgument,
    )
}


# To data ---------------------------------------------------------------------------


def _target(target):
    if isinstance(target, OpOverload):
        packet = target.overloadpacket
        return ["op", target.namespace, packet.__name__, target._overloadname]
    if getattr(target, "namespace", None) == "higher_order":
        return ["higher_order", target.name()]
    packet = getattr(target, "overloadpacket", None)
    if packet is not None:  # a size of a tensor
        name = str(target).split(".")[-1]
        return ["op", "aten", packet.__name__, name]
    for name, function in _FUNCTIONS.items():
        if function is target:
            return ["function", name]
    raise NotImplementedError(f"export.save: no name for the function {target}")


def _data(value):
    """An argument as JSON holds it: all but numbers and texts are dicts of an entry."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, Node):
        return {"node": value.name}
    if isinstance(value, float):
        return {"float": repr(value)}
    if isinstance(value, complex):
        return {"complex": [repr(value.real), repr(value.imag)]}
    if isinstance(value, (list, tuple)):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {kind: [_data(v) for v in value]}
    if isinstance(value, dict):
        return {"dict": [[_data(k), _data(v)] for k, v in value.items()]}
    if isinstance(value, slice):
        return {"slice": [_data(v) for v in (value.start, value.stop, value.step)]}
    if isinstance(value, taeda.device):
        return {"device": str(value)}
    for kind in ("dtype", "layout", "memory_format"):
        if isinstance(value, getattr(taeda, kind)):
            return {kind: str(value).split(".")[-1]}
    if isinstance(value, taeda.Tensor):
        return {"tensor": _tensor(value)}
    if isinstance(value, (taeda.SymInt, taeda.SymFloat, taeda.SymBool)):
        return {"symbol": repr(value)}
    raise NotImplementedError(f"export.save: no form for {type(value)}")


def _tensor(t) -> list:
    sizes, strides = ([_data(n) for n in v] for v in (tuple(t.shape), t.stride()))
    return [_data(t.dtype), sizes, strides, str(t.device), bool(t.requires_grad)]


def _node(node) -> dict:
    notes = {
        key: node.meta[key] for key in ("stack_trace", "condition") if key in node.meta
    }
    stack = node.meta.get("nn_module_stack")
    if stack is not None:
        notes["nn_module_stack"] = [[k, *v] for k, v in stack.items()]
    target = _target(node.target) if node.op == "call_function" else node.target
    fields = {"name": node.name, "kind": node.op, "target": target}
    fields |= {"args": _data(tuple(node.args)), "kwargs": _data(dict(node.kwargs))}
    if "val" in node.meta:
        fields["value"] = _data(node.meta["val"])
    return fields | {"meta": notes}


def _graphs(module) -> dict:
    """The graphs of a module's children, by name: their nodes and children."""
    return {
        name: {"nodes": [_node(n) for n in child.graph.nodes], "graphs": _graphs(child)}
        for name, child in module.named_children()
        if isinstance(child, GraphModule)
    }


def _argument(arg) -> list:
    if isinstance(arg, sig.ConstantArgument):
        return ["ConstantArgument", arg.name, _data(arg.value)]
    return [type(arg).__name__, arg.name]


def _spec(spec) -> list:
    kept = getattr(spec, "persistent", None)
    return [spec.kind.name, _argument(spec.arg), spec.target, kept]


def _call(entry) -> list:
    found = entry.signature
    if found is None:
        return [entry.fqn, None]
    specs = [pytree.treespec_dumps(s) for s in (found.in_spec, found.out_spec)]
    arguments = [[_argument(a) for a in v] for v in (found.inputs, found.outputs)]
    return [entry.fqn, [*arguments, *specs, found.forward_arg_names]]


def _hints(program) -> dict[str, int]:
    """The sizes that symbols had in the example."""
    found: dict[str, int] = {}
    derived = []
    for node in program.graph.nodes:
        value = node.meta.get("val")
        values = value.shape if isinstance(value, taeda.Tensor) else [value]
        for n in values:
            if not isinstance(n, taeda.SymInt):
                continue
            if re.fullmatch(r"s\d+", repr(n)):
                found[repr(n)] = n.node.hint()
            else:
                derived.append(n)
    for n in derived:
        roots = {*re.findall(r"\bs\d+\b", repr(n))} - found.keys()
        if len(roots) == 1:
            found |= _root(n, *roots, found)
    return found


def _root(n, name: str, known: dict[str, int]) -> dict[str, int]:
    """The size of a symbol that is no input's: that at which a derived dim is right.

    Derived dims are `a * root + b`: none is larger than the size and the numbers in it.
    """
    most = n.node.hint() + sum(map(int, re.findall(r"\b\d+\b", repr(n))))
    for size in range(most + 1):
        if value_of(repr(n), known | {name: size}) == n.node.hint():
            return {name: size}
    raise ValueError(f"export.save: no size of {name} gives {n} = {n.node.hint()}")


def _program(program) -> dict:
    specs = program.graph_signature
    return {
        "version": _VERSION,
        "library": taeda.__version__,
        "nodes": [_node(n) for n in program.graph.nodes],
        "graphs": _graphs(program.graph_module),
        "inputs": [_spec(s) for s in specs.input_specs],
        "outputs": [_spec(s) for s in specs.output_specs],
        "ranges": [
            [str(name), _data(r.lower), _data(r.upper)]
            for name, r in program.range_constraints.items()
        ],
        "hints": _hints(program),
        "guards": program._guards,
        "calls": [_call(entry) for entry in program.module_call_graph],
        "dialect": program.dialect,
    }


def _saved(value) -> bytes:
    memory = io.BytesIO()
    taeda.save(value, memory)
    return memory.getvalue()


def save(ep, f, extra_files=None) -> None:
    """Writes an exported program.

    Args:
        ep: the program.
        f: a path (usually `NAME.pt2`), or a file that is open for bytes.
        extra_files: name -> text or bytes that is written too.

    Raises:
        TypeError: no exported program.
        NotImplementedError: a container of the arguments that has no name for files; a
            function of the graph that files do not hold.
    """
    if not isinstance(ep, ExportedProgram):
        raise TypeError(
            "The 'ep' parameter must be an instance of 'ExportedProgram', got "
            f"'{type(ep).__name__}' instead."
        )
    leaves = None
    if ep.example_inputs is not None:
        leaves = pytree.tree_leaves(ep.example_inputs)
        leaves = [v if isinstance(v, taeda.Tensor) else _data(v) for v in leaves]
    members = {
        "archive_format": b"pt2",
        "archive_version": b"0",
        _MODEL: json.dumps(_program(ep)).encode(),
        _STATE: _saved(dict(ep.state_dict)),
        _CONSTANTS: _saved(dict(ep.constants)),
        _EXAMPLE: _saved(leaves),
    }
    for name, content in (extra_files or {}).items():
        content = content.encode() if isinstance(content, str) else content
        members[f"extra/{name}"] = content
    with zipfile.ZipFile(f, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            archive.writestr(f"archive/{name}", content)


# From data -------------------------------------------------------------------------


class _Reader:
    """Makes a program of what `_program` wrote."""

    def __init__(self, data: dict) -> None:
        from taeda._subclasses import FakeTensorMode
        from taeda.fx.experimental.symbolic_shapes import ShapeEnv

        self.data, self.nodes = data, {}
        self.env = ShapeEnv()
        self.mode = FakeTensorMode(
            shape_env=self.env, static_shapes=True, allow_non_fake_inputs=True
        )
        self.symbols: dict[str, object] = {}
        for name, hint in sorted(data["hints"].items(), key=lambda s: int(s[0][1:])):
            make = functools.partial(self.env.create_size, hint, None, "marked")
            self._symbol(name, make)
        for name, *_ in data["ranges"]:
            if name[0] == "u" and name[1:].isdigit():
                make = functools.partial(self.env.create_unbacked_symint, size=False)
                self._symbol(name, make)
            elif name.startswith("zuf"):
                self._symbol(name, self.env.create_unbacked_symfloat)

    def _symbol(self, name: str, make) -> None:
        # Names are numbered: those that the program has not are passed over.
        for _ in range(10_000):
            made = make()
            if repr(made) == name:
                self.symbols[name] = made
                return
        raise ValueError(f"export.load: no symbol is called {name!r}")

    def value(self, data):
        """What `_data` wrote."""
        if not isinstance(data, dict):
            return data
        ((kind, content),) = data.items()
        if kind == "node":
            return self.nodes[content]
        if kind == "float":
            return float(content)
        if kind == "complex":
            return complex(*map(float, content))
        if kind in ("tuple", "list"):
            items = [self.value(v) for v in content]
            return tuple(items) if kind == "tuple" else items
        if kind == "dict":
            return {self.value(k): self.value(v) for k, v in content}
        if kind == "slice":
            return slice(*map(self.value, content))
        if kind == "device":
            return taeda.device(content)
        if kind in ("dtype", "layout", "memory_format"):
            found = getattr(taeda, content, None)
            if isinstance(found, getattr(taeda, kind)):
                return found
        if kind == "tensor":
            return self.tensor(content)
        if kind == "symbol":
            return self.number(content)
        raise ValueError(f"export.load: {kind} {content!r} is not known")

    def number(self, text: str):
        """A number that depends on symbols; None where its symbols have no hint."""
        try:
            return value_of(text, self.symbols)
        except ValueError:
            return None

    def tensor(self, content):
        """The stand-in that a node notes."""
        from taeda._subclasses.fake_tensor import FakeTensor

        dtype, sizes, strides, device, requires_grad = content
        sizes, strides = ([self.value(n) for n in v] for v in (sizes, strides))
        dtype = self.value(dtype)
        elem = taeda.empty_strided(sizes, strides, dtype=dtype, device="meta")
        made = FakeTensor(self.mode, elem, device)
        return made.requires_grad_(requires_grad)

    def target(self, data):
        """A function of the graph, by its name.

        Raises:
            ValueError: no operator and no function of the list.
        """
        kind, *path = data
        if kind == "function" and path[0] in _FUNCTIONS:
            return _FUNCTIONS[path[0]]
        if kind == "higher_order" and operator_of(*path) is not None:
            return operator_of(*path)
        if kind == "op" and not any(name.startswith("__") for name in path):
            namespace, name, overload = path
            packet = getattr(getattr(taeda.ops, namespace), name, None)
            found = getattr(packet, overload, None)
            if found is not None:
                return found
        raise ValueError(f"export.load: there is no function {data}")

    def module(self, data: dict) -> GraphModule:
        """A graph as a module, with those that it names."""
        root = nn.Module()
        for name, inner in data["graphs"].items():
            root.add_module(name, self.module(inner))
        outer, self.nodes = self.nodes, {}
        graph = self.graph(data["nodes"])
        self.nodes = outer
        return GraphModule(root, graph)

    def graph(self, rows: list) -> Graph:
        """A graph."""
        graph = Graph()
        for fields in rows:
            kind, target = fields["kind"], fields["target"]
            if kind == "call_function":
                target = self.target(target)
            elif kind not in ("placeholder", "output", "get_attr"):
                raise ValueError(f"export.load: a node of the kind {kind!r}")
            args, kwargs = self.value(fields["args"]), self.value(fields["kwargs"])
            node = graph.create_node(kind, target, args, kwargs, fields["name"])
            force_name(node, fields["name"])
            self.nodes[fields["name"]] = node
            node.meta.update(fields["meta"])
            stack = fields["meta"].get("nn_module_stack")
            if stack is not None:
                node.meta["nn_module_stack"] = {k: (p, c) for k, p, c in stack}
            if "value" in fields:
                node.meta["val"] = self.value(fields["value"])
        return graph

    def argument(self, data):
        """An argument of the signature."""
        kind, name, *value = data
        return _ARGUMENTS[kind](name, *map(self.value, value))

    def signature(self) -> sig.ExportGraphSignature:
        """The signature of the graph."""
        inputs = [
            sig.InputSpec(sig.InputKind[kind], self.argument(arg), target, kept)
            for kind, arg, target, kept in self.data["inputs"]
        ]
        outputs = [
            sig.OutputSpec(sig.OutputKind[kind], self.argument(arg), target)
            for kind, arg, target, _ in self.data["outputs"]
        ]
        return sig.ExportGraphSignature(inputs, outputs)

    def calls(self) -> list[ModuleCallEntry]:
        """The submodules."""
        entries = []
        for path, found in self.data["calls"]:
            made = None
            if found is not None:
                inputs, outputs, in_spec, out_spec, names = found
                arguments = [[self.argument(a) for a in v] for v in (inputs, outputs)]
                specs = [pytree.treespec_loads(s) for s in (in_spec, out_spec)]
                made = ModuleCallSignature(*arguments, *specs, names)
            entries.append(ModuleCallEntry(path, made))
        return entries


def load(f, extra_files=None):
    """Reads an exported program that `save` wrote.

    Args:
        f: a path, or a file that is open for bytes.
        extra_files: a dict whose entries become the texts of files of these names.

    Returns:
        The `ExportedProgram`.

    Raises:
        zipfile.BadZipFile: no archive, or a damaged one.
        ValueError: an archive of another kind or version, or with what no program has.
    """
    with zipfile.ZipFile(os.fspath(f) if isinstance(f, os.PathLike) else f) as archive:
        try:
            data = json.loads(archive.read(f"archive/{_MODEL}"))
            state, constants, leaves = (
                taeda.load(
                    io.BytesIO(archive.read(f"archive/{name}")), weights_only=True
                )
                for name in (_STATE, _CONSTANTS, _EXAMPLE)
            )
        except KeyError as error:
            raise ValueError(f"export.load: no exported program: {error}") from None
        if not isinstance(data, dict) or data.get("version") != _VERSION:
            raise ValueError(
                f"export.load: expected a program of version {_VERSION} that this "
                f"library wrote, got one with {sorted(data)[:8]}"
            )
        for name in list(extra_files or ()):
            extra_files[name] = archive.read(f"archive/extra/{name}").decode()
    reader = _Reader(data)
    module, calls = reader.module(data), reader.calls()
    if leaves is not None:
        leaves = pytree.tree_unflatten(
            [reader.value(v) for v in leaves], calls[0].signature.in_spec
        )
    module.shape_env, module.meta["dialect"] = reader.env, data["dialect"]
    ranges = {
        Symbol(name): ValueRanges(reader.value(low), reader.value(high))
        for name, low, high in data["ranges"]
    }
    return ExportedProgram(
        module,
        module.graph,
        reader.signature(),
        state,
        ranges,
        calls,
        leaves,
        constants,
        guards=data["guards"],
    )
