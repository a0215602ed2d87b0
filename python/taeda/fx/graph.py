"""`Graph`: the steps of a function, in order."""

from __future__ import annotations

import copy
import warnings

import taeda

from ._codegen import (
    CodeGen,
    PythonCode,
    _PyTreeCodeGen,
    _PyTreeInfo,
    inplace_methods,
    magic_methods,
    reflectable_magic_methods,
)
from ._names import Namespace, snake_case
from ._pickle import reduce_graph
from .node import Node, map_arg

__all__ = ["CodeGen", "Graph", "PythonCode"]

# Names that programs import from here, as from torch.fx.graph.
_SHARED = (_PyTreeCodeGen, _PyTreeInfo, magic_methods, inplace_methods)
_SHARED += (reflectable_magic_methods,)
_Namespace, _snake_case = Namespace, snake_case


class _Nodes:
    """The nodes of a graph in order, or backwards. Changes during a loop are safe."""

    def __init__(self, graph: Graph, step: str = "_next") -> None:
        self.graph, self._step = graph, step

    def __len__(self) -> int:
        return self.graph._len

    def __iter__(self):
        node = root = self.graph._root
        while (node := getattr(node, self._step)) is not root:
            if not node._erased:
                yield node

    def __reversed__(self):
        return iter(_Nodes(self.graph, "_prev" if self._step == "_next" else "_next"))


class _Place:
    """Where a graph inserts nodes; as a context, until its end."""

    def __init__(self, graph: Graph, insert) -> None:
        self.graph, self.before = graph, graph._insert
        graph._insert = insert

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exception) -> None:
        self.graph._insert = self.before


class Graph:
    """A function as a list of nodes, which may be read, changed and run.

    A `GraphModule` makes a callable of it.

    Args:
        owning_module: the GraphModule that it belongs to.
        tracer_cls: the class of the tracer that makes it.
        tracer_extras: arguments that the tracer needs when it is made anew.

    Example:
        >>> graph = taeda.fx.Graph()
        >>> x = graph.placeholder("x")
        >>> graph.output(graph.call_function(taeda.sin, (x,)))
        output
        >>> print(graph)
        graph():
            %x : [num_users=1] = placeholder[target=x]
            %sin : [num_users=1] = call_function[target=taeda.sin](args = (%x,), \
kwargs = {})
            return sin
    """

    def __init__(self, owning_module=None, tracer_cls=None, tracer_extras=None) -> None:
        self._len, self._ranked, self._naming = 0, False, None
        # (op, target of a call_function, else None) -> nodes. See `find_nodes`.
        self._index: dict = {}
        self._graph_namespace = Namespace()
        self._owning_module = owning_module
        self._tracer_cls, self._tracer_extras = tracer_cls, tracer_extras
        self._codegen = CodeGen()
        # A ring: the root, which is no step, stands between the last and the first.
        self._root = Node(self, "", "root", "", (), {})
        self._insert = self._root.prepend

    @property
    def owning_module(self):
        """The GraphModule that it belongs to, or None."""
        return self._owning_module

    @owning_module.setter
    def owning_module(self, mod) -> None:
        self._owning_module = mod

    # Nodes -----------------------------------------------------------------------

    @property
    def nodes(self) -> _Nodes:
        """The nodes in order; `reversed` of it is the other way round."""
        return _Nodes(self)

    def output_node(self) -> Node:
        """The last node, which must be the output."""
        last = self._root._prev
        if last.op != "output":
            raise AssertionError(f"Expected output node, got op={last.op}")
        return last

    def find_nodes(self, *, op: str, target=None, sort: bool = True) -> list[Node]:
        """The nodes of a kind, on request only those with a target.

        Args:
            op: the kind; a call_function needs a target.
            target: a function, method's name or path.
            sort: in the graph's order; else in the order in which they were made.
        """
        if op == "call_function" and target is None:
            raise AssertionError("target must not be None for call_function op")
        key = (op, target if op == "call_function" else None)
        found = [n for n in self._index.get(key, ()) if target in (None, n.target)]
        return sorted(found) if sort else found

    def _forget(self, node: Node) -> bool:
        listed = self._index.get(_key(node), {})
        return listed.pop(node, self) is None

    def _remember(self, node: Node) -> None:
        self._index.setdefault(_key(node), {})[node] = None

    def _rank_nodes(self) -> None:
        for position, node in enumerate(self.nodes):
            node._rank = position
        self._ranked = True

    def _call_hooks(self, kind: str, node: Node) -> None:
        for hook in getattr(self.owning_module, f"_{kind}_node_hooks", None) or ():
            hook(node)

    def inserting_before(self, n: Node | None = None) -> _Place:
        """New nodes stand before `n` (None: at the beginning) from now on.

        As a context, until its end.
        """
        if n is None:
            return self.inserting_after(self._root)
        self._check_own(n, "before")
        return _Place(self, n.prepend)

    def inserting_after(self, n: Node | None = None) -> _Place:
        """New nodes stand right after `n` (None: at the end) from now on.

        As a context, until its end.
        """
        if n is None:
            return self.inserting_before(self._root)
        self._check_own(n, "after")
        return _Place(self, n.append)

    def _check_own(self, n: Node, side: str) -> None:
        if n.graph is not self:
            raise AssertionError(f"Node to insert {side} is not in graph.")

    def create_node(
        self, op: str, target, args=None, kwargs=None, name=None, type_expr=None
    ) -> Node:
        """A new node at the place where the graph inserts.

        Args:
            op: its kind, see `Node`.
            target: what it calls or names.
            args: a tuple of arguments.
            kwargs: keyword arguments.
            name: what its name is made of; by default the target.
            type_expr: the annotation of its value.

        Raises:
            AssertionError: `args` is no tuple, `kwargs` no dict, `op` unknown.
            ValueError: the target does not fit the kind.
        """
        if args and not isinstance(args, tuple):
            raise AssertionError(f"args must be a tuple, got {type(args)}")
        if kwargs and not isinstance(kwargs, dict):
            raise AssertionError(f"kwargs must be a dict, got {type(kwargs)}")
        candidate = self._target_to_str(target) if name is None else name
        name = self._graph_namespace.create_name(candidate)
        node = Node(self, name, op, target, args or (), kwargs or {}, type_expr)
        self._call_hooks("create", node)
        self._graph_namespace.associate_name_with_obj(name, node)
        self._insert(node)
        self._remember(node)
        self._len += 1
        return node

    def erase_node(self, to_erase: Node) -> None:
        """Takes a node out.

        Raises:
            RuntimeError: it has users, or belongs to another graph.
        """
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had "
                f"{len(to_erase.users)} users in the graph: {to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            warnings.warn(f"erase_node({to_erase}) on an erased node", stacklevel=2)
            return
        self._call_hooks("erase", to_erase)
        self._forget(to_erase)
        to_erase._unlink()
        to_erase._erased = True
        self._len -= 1
        args, kwargs = to_erase.args, to_erase.kwargs
        to_erase._set_inputs(
            map_arg(args, lambda n: None), map_arg(kwargs, lambda n: None)
        )

    # One method for each kind ----------------------------------------------------

    def placeholder(self, name: str, type_expr=None, default_value=...) -> Node:
        """An input, with a default where one is given."""
        args = () if default_value is ... else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr=None) -> Node:
        """A parameter, buffer or submodule of the owning module, by its path.

        Warns where the owning module has no such thing.
        """
        owner = self.owning_module
        if owner is not None and not _is_state(owner, qualified_name):
            warnings.warn(
                f"get_attr: the owning GraphModule has no module, parameter or buffer "
                f"{qualified_name!r}; add one (add_submodule, register_buffer, ...)",
                stacklevel=2,
            )
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_function(
        self, the_function, args=None, kwargs=None, type_expr=None, name=None
    ):
        """A call of a function."""
        return self.create_node(
            "call_function", the_function, args, kwargs, name, type_expr
        )

    def call_method(self, method_name: str, args=None, kwargs=None, type_expr=None):
        """A call of a method of `args[0]`."""
        return self.create_node(
            "call_method", method_name, args, kwargs, type_expr=type_expr
        )

    def call_module(self, module_name: str, args=None, kwargs=None, type_expr=None):
        """A call of a submodule of the owning module, by its path."""
        owner = self.owning_module
        if owner is not None and not _has_path(owner, module_name):
            warnings.warn(
                f"call_module: the owning GraphModule has no submodule {module_name!r}"
                "; add it by add_submodule",
                stacklevel=2,
            )
        return self.create_node(
            "call_module", module_name, args, kwargs, type_expr=type_expr
        )

    def output(self, result, type_expr=None) -> Node:
        """The end: `result` is what the function returns."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def create_size_node(self, tensor_node: Node, dim: int) -> Node:
        """A node that reads a size of a tensor."""
        return self._reading("sym_size", tensor_node, dim)

    def create_stride_node(self, tensor_node: Node, dim: int) -> Node:
        """A node that reads a stride of a tensor."""
        return self._reading("sym_stride", tensor_node, dim)

    def create_storage_offset_node(self, tensor_node: Node) -> Node:
        """A node that reads a tensor's place in its storage."""
        return self._reading("sym_storage_offset", tensor_node)

    def _reading(self, name: str, tensor_node: Node, *dim: int) -> Node:
        packet = getattr(taeda.ops.aten, name)
        operator = packet.int if dim else packet.default
        made = self.call_function(operator, (tensor_node, *dim))
        known = tensor_node.meta.get("val", tensor_node.meta.get("example_value"))
        if known is not None:
            made.meta["val"] = operator(known, *dim)
        return made

    # Copies ----------------------------------------------------------------------

    def node_copy(self, node: Node, arg_transform=lambda x: x) -> Node:
        """A copy of a node, perhaps of another graph.

        Args:
            node: the node.
            arg_transform: gives for each node among its arguments the one here.
        """
        given = [map_arg(a, arg_transform) for a in (node.args, node.kwargs)]
        made = self.create_node(node.op, node.target, *given, node.name, node.type)
        made.meta = copy.copy(node.meta)
        return made

    def graph_copy(self, g: Graph, val_map: dict, return_output_node: bool = False):
        """Copies the nodes of a graph to here, all but its output.

        Args:
            g: the graph.
            val_map: node there -> node here; what it holds already is not copied, what
                is copied is added.
            return_output_node: give the output node of `g` too.

        Returns:
            What stands here for the result of `g`; None where it has no output.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], val_map.__getitem__)
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, val_map.__getitem__)
        return None

    def __deepcopy__(self, memo=None) -> Graph:
        twins: dict = {}
        made = Graph(tracer_cls=self._tracer_cls, tracer_extras=self._tracer_extras)
        ended = made.graph_copy(self, twins, return_output_node=True)
        made._codegen = copy.deepcopy(self._codegen)
        if ended is not None:
            result, old = ended
            twins[old] = made.output(result, type_expr=old.type)
            twins[old].meta = copy.copy(old.meta)
        for old, new in twins.items():
            (memo if memo is not None else {})[id(old)] = new
        return made

    def __reduce__(self):
        return reduce_graph(self)

    # Code and text ---------------------------------------------------------------

    def set_codegen(self, codegen: CodeGen) -> None:
        """The object that writes the graph's code."""
        self._codegen = codegen

    def on_generate_code(self, make_transformer) -> _Transformed:
        """Changes the lines of generated code from now on.

        Args:
            make_transformer: a function of the present transformer (or None) that gives
                a new one: from a list of lines to a list of lines.

        Returns:
            A context at whose end the present transformer is back.
        """
        return _Transformed(self._codegen, make_transformer)

    def process_inputs(self, *args):
        """The placeholders' values for the arguments of the generated function."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out):
        """What the generated function returns for the graph's output."""
        return self._codegen.process_outputs(out)

    def _target_to_str(self, target) -> str:
        name = target.__name__ if callable(target) else target
        if not callable(target) and name.startswith("__") and name.endswith("__"):
            name = name[2:-2]
        return snake_case(name)

    def python_code(self, root_module: str, **options) -> PythonCode:
        """The graph as the text of a Python function.

        Args:
            root_module: the name of the module in it, commonly "self".
            options: `verbose` (types and origins), `include_stride`, `include_device`,
                `colored`, `expanded_def` (an argument a line), `additional_meta`.

        Returns:
            The text, and the objects that its global names stand for.
        """
        # Within one text names of nodes and of globals share a scope, and only there.
        scope = Namespace()
        self._naming = lambda node: scope.create_name(node.name, node)
        try:
            return self._codegen._gen_python_code(
                self.nodes, root_module, scope, **options
            )
        finally:
            self._naming = None

    def __str__(self) -> str:
        lines = [node.format_node() for node in self.nodes]
        return "\n    ".join(["graph():", *lines])

    def print_tabular(self) -> None:
        """Prints a line for each node: kind, name, target, arguments."""
        rows = [("opcode", "name", "target", "args", "kwargs")]
        for n in self.nodes:
            rows.append(tuple(map(str, (n.op, n.name, n.target, n.args, n.kwargs))))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        rows.insert(1, tuple("-" * width for width in widths))
        for row in rows:
            cells = (cell.ljust(w) for cell, w in zip(row, widths, strict=True))
            print("  ".join(cells).rstrip())

    # Checks ----------------------------------------------------------------------

    def lint(self) -> None:
        """Checks that the graph is well-formed.

        Raises:
            RuntimeError: a node is used before it is defined, belongs to another graph,
                has a name twice, or names what the owning module does not have.
        """
        from ._lint import lint

        lint(self)

    def eliminate_dead_code(self, is_impure_node=None) -> bool:
        """Takes out what nobody uses, and the same in graphs that it refers to.

        Args:
            is_impure_node: whether a node must stay; by default `Node.is_impure`.

        Returns:
            Whether anything was taken out.
        """
        self.lint()
        stays = is_impure_node or Node.is_impure
        before = self._len
        for node in reversed(self.nodes):
            if not node.users and not stays(node):
                self.erase_node(node)
        changed = self._len < before
        used = {n.target for n in self.find_nodes(op="get_attr")}
        for name, child in getattr(self.owning_module, "_modules", {}).items():
            if name in used and isinstance(child, taeda.fx.GraphModule):
                changed |= child.graph.eliminate_dead_code()
                child.recompile()
        return changed


class _Transformed:
    """A transformer of code that was put in; as a context, until its end."""

    def __init__(self, codegen: CodeGen, make_transformer) -> None:
        self.codegen, self.before = codegen, codegen._body_transformer
        codegen._body_transformer = make_transformer(self.before)

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exception) -> None:
        self.codegen._body_transformer = self.before


def _key(node: Node) -> tuple:
    return node.op, node.target if node.op == "call_function" else None


def _has_path(module, path: str) -> bool:
    for part in path.split("."):
        module = getattr(module, part, None)
    return module is not None


def _is_state(module, path: str) -> bool:
    inner, _, name = path.rpartition(".")
    if inner and not _has_path(module, inner):
        return False
    owner = module.get_submodule(inner)
    found = getattr(owner, name, None)
    kinds = (taeda.nn.Module, taeda.nn.Parameter)
    return isinstance(found, kinds) or name in owner._buffers
