"""`Node`: one call, input or output of a graph."""

from __future__ import annotations

import operator

import taeda

from ._names import qualified_name, type_text
from ._visit import rebuild, spell
from .immutable_collections import immutable_dict

__all__ = ["Node", "has_side_effect", "map_aggregate", "map_arg"]

# What an argument may be beside nodes and containers; others are refused by tracers.
base_types = (
    *(str, int, float, bool, complex, taeda.dtype, taeda.Tensor, taeda.device),
    *(taeda.memory_format, taeda.layout, taeda.SymInt, taeda.SymBool, taeda.SymFloat),
)
Argument = object  # what `Node.args` holds; a name for annotations
Target = object  # a function, or the name of a method, module or attribute
_KINDS = ("placeholder", "get_attr", "output", "root") + (
    _CALLS := ("call_function", "call_method", "call_module")
)

# Functions whose calls stay though nobody uses the result. Grows by
# `has_side_effect`, called while modules are imported.
_side_effectful_functions: set = {
    *(operator.setitem, taeda._assert, taeda._assert_async),
    taeda._C._set_grad_enabled,
}
# Functions that draw from a generator, for the same reason.
_RANDOM = frozenset(
    "rand randn randint randperm rand_like randn_like randint_like normal poisson"
    " bernoulli multinomial".split()
)


def has_side_effect(fn):
    """Marks a function as one whose calls must stay in a graph; gives it back."""
    _side_effectful_functions.add(fn)
    return fn


def map_aggregate(a, fn):
    """The same structure of tuples, lists, dicts and slices with `fn` of each entry."""
    return rebuild(a, fn)


def map_arg(a, fn):
    """The same structure with `fn` of each node in it."""
    if not callable(fn):
        raise AssertionError("fx.map_arg(a, fn): fn must be a callable")
    return rebuild(a, lambda x: fn(x) if isinstance(x, Node) else x)


class Node:
    """One step of a graph.

    Nodes are made by a graph's methods (`Graph.call_function`, ...). `op` says what
    kind of step it is, and with it what `target` means:

    - placeholder: an input; its name. `args` holds its default, if it has one.
    - get_attr: a parameter, buffer or other attribute; its path in the module.
    - call_function: a call of `target(*args, **kwargs)`.
    - call_method: a call of the method `target` of `args[0]`.
    - call_module: a call of the submodule at the path `target`.
    - output: the result is `args[0]`.

    Attributes:
        graph: the graph that it belongs to.
        name: the name of its value, unique in the graph.
        users: the nodes that use it, as the keys of a dict.
        type: the annotation of its value, or None.
        meta: what passes note about it; copied with the node.

    Example:
        >>> graph = taeda.fx.symbolic_trace(lambda x: x + 1).graph
        >>> [(n.op, n.name, n.args) for n in graph.nodes]
        [('placeholder', 'x', ()), ('call_function', 'add', (x, 1)), \
('output', 'output', (add,))]
    """

    __slots__ = ("__dict__", "__weakref__", "graph", "meta", "name", "type", "users")

    def __init__(self, graph, name, op, target, args, kwargs, return_type=None) -> None:
        wanted = callable(target) if op == "call_function" else isinstance(target, str)
        if op not in _KINDS:
            raise AssertionError(f"op '{op}' is no kind of node")
        if not wanted:
            kind = "Callable" if op == "call_function" else "str"
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type "
                f"{taeda.typename(target)} but a {kind} is expected"
            )
        self.graph, self.name = graph, name
        self._op, self._target = op, target
        self.type, self.meta, self.users = return_type, {}, {}
        self._prev = self._next = self
        self._erased, self._rank = False, 0
        self._args, self._kwargs = (), immutable_dict()
        self._input_nodes: dict[Node, None] = {}
        self._set_inputs(args, kwargs)

    def _rename(self, candidate: str) -> None:
        """Takes a name like the candidate; its own stays taken in the graph."""
        if candidate == self.name:
            return
        names = self.graph._graph_namespace
        self.name = names.create_name(candidate)
        names.associate_name_with_obj(self.name, self)

    # Kind and target: the graph finds nodes by them ------------------------------

    def _reindexed(field: str):
        def change(self, value) -> None:
            listed = self.graph._forget(self)
            setattr(self, field, value)
            if listed:
                self.graph._remember(self)

        return property(operator.attrgetter(field), change)

    op = _reindexed("_op")
    target = _reindexed("_target")
    del _reindexed

    # Place in the list -----------------------------------------------------------

    next = property(operator.attrgetter("_next"), doc="The node after this one.")
    prev = property(operator.attrgetter("_prev"), doc="The node before this one.")

    def prepend(self, x: Node) -> None:
        """Moves a node of the same graph to the place before this one."""
        if x.graph is not self.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if x is self:
            return
        x._unlink()
        x._prev, x._next = self._prev, self
        self._prev._next = self._prev = x

    def append(self, x: Node) -> None:
        """Moves a node of the same graph to the place after this one."""
        if x is not self:
            self._next.prepend(x)

    def _unlink(self) -> None:
        # The node keeps its own links, so that a loop that stands on it goes on.
        self._prev._next, self._next._prev = self._next, self._prev
        self.graph._ranked = False

    def _position(self) -> int:
        if not self.graph._ranked:
            self.graph._rank_nodes()
        return self._rank

    def __lt__(self, other: Node) -> bool:
        return self._position() < other._position()

    def __le__(self, other: Node) -> bool:
        return self._position() <= other._position()

    def __gt__(self, other: Node) -> bool:
        return self._position() > other._position()

    def __ge__(self, other: Node) -> bool:
        return self._position() >= other._position()

    # Arguments -------------------------------------------------------------------

    @property
    def args(self) -> tuple:
        """Positional arguments; assigning them brings tables of users up to date."""
        return self._args

    @args.setter
    def args(self, args: tuple) -> None:
        self._set_inputs(args, self._kwargs)

    @property
    def kwargs(self) -> dict:
        """Keyword arguments, in the same way."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, kwargs: dict) -> None:
        self._set_inputs(self._args, kwargs)

    def _set_inputs(self, args, kwargs) -> None:
        for node in self._input_nodes:
            node.users.pop(self, None)
        found: dict[Node, None] = {}

        def use(node):
            found[node] = None
            return node

        self._args, self._kwargs = map_arg(tuple(args), use), map_arg(kwargs, use)
        self._input_nodes = found
        for node in found:
            node.users[self] = None

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes among the arguments, each once."""
        return list(self._input_nodes)

    def update_arg(self, idx: int, arg) -> None:
        """Puts another value in place of one positional argument."""
        args = list(self._args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg) -> None:
        """Puts a value before the positional argument of this index."""
        if not 0 <= idx <= len(self._args):
            raise AssertionError(
                f"insert_arg: index {idx} is not between 0 and {len(self._args)}"
            )
        self.args = (*self._args[:idx], arg, *self._args[idx:])

    def update_kwarg(self, key: str, arg) -> None:
        """Sets one keyword argument."""
        self.kwargs = {**self._kwargs, key: arg}

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Uses another node wherever `old_input` stands among the arguments."""
        hooks = getattr(self.graph.owning_module, "_replace_hooks", None)
        for hook in hooks or ():
            hook(old=old_input, new=new_input.name, user=self)

        def swap(node):
            return new_input if node is old_input else node

        self._set_inputs(map_arg(self._args, swap), map_arg(self._kwargs, swap))

    def replace_all_uses_with(
        self, replace_with: Node, delete_user_cb=None, *, propagate_meta: bool = False
    ) -> list[Node]:
        """Lets the users of this node use another one.

        Args:
            replace_with: the other node.
            delete_user_cb: a function of a user; False leaves that one as it is.
            propagate_meta: give this node's `meta` to the other one, which must have
                none.

        Returns:
            The nodes that were changed.
        """
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError(
                    f"replace_all_uses_with: {replace_with} already has .meta keys"
                )
            replace_with.meta.update(self.meta)
        chosen = [u for u in self.users if delete_user_cb is None or delete_user_cb(u)]
        for user in chosen:
            user.replace_input_with(self, replace_with)
        return chosen

    # What is known of it ---------------------------------------------------------

    @property
    def stack_trace(self) -> str | None:
        """Where the program made it, if the tracer recorded that."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether it must stay though nobody uses it.

        Inputs and outputs; submodules that say so by `_is_impure`; functions that were
        marked (`has_side_effect`), write to arguments, or draw random numbers.
        """
        if self.op == "call_module":
            owner = self.graph.owning_module
            if owner is None:
                raise AssertionError("is_impure: the graph has no owning module")
            return getattr(owner.get_submodule(self.target), "_is_impure", False)
        if self.op == "call_function":
            return _writes(self.target, impure_random)
        return self.op in ("placeholder", "output")

    def normalized_arguments(
        self,
        root,
        arg_types=None,
        kwarg_types=None,
        normalize_to_only_use_kwargs: bool = False,
    ):
        """The arguments in the order of the callee's signature, defaults filled in.

        Args:
            root: the module in which targets of call_module are looked up.
            arg_types, kwarg_types: types of the arguments, to choose an overload.
            normalize_to_only_use_kwargs: give all of them by keyword.

        Returns:
            An ArgsKwargsPair, or None where there is no signature.
        """
        from . import operator_schemas as schemas

        only = normalize_to_only_use_kwargs
        given = (self.target, self.args, self.kwargs)
        if self.op == "call_function":
            return schemas.normalize_function(*given, arg_types, kwarg_types, only)
        if self.op == "call_module":
            return schemas.normalize_module(root, *given, only)
        return None

    # Text ------------------------------------------------------------------------

    def __repr__(self) -> str:
        naming = self.graph._naming
        return naming(self) if naming else self.name

    def format_node(
        self,
        placeholder_names: list | None = None,
        maybe_return_typename: list | None = None,
        *,
        include_tensor_metadata: bool = False,
    ) -> str | None:
        """The node as one line of the graph's text."""
        if self.op == "output":
            if self.type and maybe_return_typename:
                maybe_return_typename[0] = f" -> {type_text(self.type)}"
            return f"return {self.args[0]}"
        kind = "" if self.type is None else f"{type_text(self.type)} "
        if include_tensor_metadata:
            kind = self._tensor_text() or kind
        if self.op == "placeholder" and placeholder_names:
            placeholder_names.append(self.target + (f": {kind}" if kind else ""))
            return None
        tail = ""
        if self.op in _CALLS:
            tail = f"(args = {_text(self.args)}, kwargs = {_text(self.kwargs)})"
        elif self.op == "placeholder" and self.args:
            tail = f"(default={self.args[0]})"
        return (
            f"%{self.name} : {kind}[num_users={len(self.users)}] = "
            f"{self.op}[target={_target_text(self.target)}]{tail}"
        )

    def _tensor_text(self) -> str:
        from ._codegen import tensor_text

        value = next(
            (
                self.meta[k]
                for k in ("val", "tensor_meta", "example_value")
                if k in self.meta
            ),
            None,
        )
        if not isinstance(value, taeda.Tensor):
            return ""
        return f'Tensor "{tensor_text(value, stride=True, device=True)}"'


def _writes(target, impure_random: bool) -> bool:
    from taeda._ops import OpOverload, OpOverloadPacket

    if target in _side_effectful_functions:
        return True
    if isinstance(target, OpOverloadPacket) and "" in target._texts:
        target = target.default
    if isinstance(target, OpOverload):
        if target._schema.is_mutable or target in _side_effectful_functions:
            return True
        return impure_random and taeda.Tag.nondeterministic_seeded in target.tags
    name = getattr(target, "__name__", "")
    return name in _RANDOM and target is getattr(taeda, name, None)


def _leaf_text(a) -> str:
    return f"%{a}" if isinstance(a, Node) else str(a)


def _text(a, longest: float = float("inf")) -> str:
    return spell(a, _leaf_text, longest=longest)


def _target_text(target) -> str:
    if isinstance(target, str):
        return target
    module = getattr(target, "__module__", None)
    if module in ("builtins", "_operator"):
        return f"{module.strip('_')}.{target.__name__}"
    return qualified_name(target)


_format_arg, _get_qualified_name, _type_repr = _text, qualified_name, type_text
