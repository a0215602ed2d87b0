"""Operators of control flow in recorded programs: a node with graphs."""

from __future__ import annotations

import contextlib

import taeda
from taeda.fx.proxy import Proxy
from taeda.utils import _pytree as pytree

from ._branches import add_graph

__all__ = ["RECORDERS"]

_NUMBERS = (int, taeda.SymInt)


def _cond(mode, *args):
    from taeda.export._branches import record_cond

    return record_cond(mode, *args)


@contextlib.contextmanager
def _unseen(mode):
    """A context: the mode does not record what is done inside."""
    before, mode.enabled = mode.enabled, False
    try:
        yield
    finally:
        mode.enabled = before


class _Underivable(taeda.autograd.Function):
    """What a node gives, where something that it reads needs a gradient."""

    @staticmethod
    def forward(ctx, name: str, source, *values):
        """The values, which `source` is said to take part in."""
        ctx.name = name
        ctx.mark_non_differentiable(*(v for v in values if not _may_need(v)))
        return tuple(v.view_as(v) for v in values)

    @staticmethod
    def backward(ctx, *grads):
        """Raises: the graph holds no derivative of the operator."""
        raise RuntimeError(f"{ctx.name}: a recorded one has no derivative")


def _may_need(t) -> bool:
    return t.dtype.is_floating_point or t.dtype.is_complex


class _Loop:
    """One call that becomes a node.

    Args:
        mode: records the program.
        name: the operator's.
    """

    def __init__(self, mode, name: str) -> None:
        self.mode, self.name = mode, name
        self.bodies: list = []
        self.graphs: list = []  # (name, what the body returns)

    def stand_in(self, value):
        """An argument of a body, like the value."""
        if isinstance(value, taeda.Tensor):
            made = value.detach().clone(memory_format=taeda.preserve_format)
            return made.requires_grad_(value.requires_grad and taeda.is_grad_enabled())
        return self.mode.env.create_unbacked_symint(size=False)

    def another(self, value):
        """A result like what a body gave."""
        if isinstance(value, taeda.Tensor):
            return value.detach().clone(memory_format=taeda.preserve_format)
        return self.mode.env.create_unbacked_symint(size=False)

    def run(self, graph: str, function, given: tuple, form=tuple):
        """The results of a body, leaves and structure.

        Args:
            form: what its graph returns of the nodes of the results.
        """
        before = [_version(t) for t in pytree.tree_leaves(given)]
        tracer, leaves, spec = self.mode.record_function(function, given, True)
        if before != [_version(t) for t in pytree.tree_leaves(given)]:
            raise RuntimeError(f"{self.name}: a function writes to its arguments")
        tracer.graph.output(form([tracer.create_arg(t) for t in leaves]))
        self.bodies.append(tracer)
        self.graphs.append(graph)
        return leaves, spec

    def source(self, given, leaves):
        """A tensor that needs a gradient where results do, or None."""
        read = [*pytree.tree_leaves(given), *leaves]
        needs = (t for t in read if isinstance(t, taeda.Tensor) and t.requires_grad)
        return next(needs, None) if taeda.is_grad_enabled() else None

    def emit(self, values: tuple, rest: list | None, source, make) -> tuple:
        """Adds the node; its results.

        Args:
            values: the node's arguments behind the graphs.
            rest: the list that is its last argument, before what bodies read besides;
                None for an empty tuple.
            source: see `source`.
            make: () -> results that look like those of the node.
        """
        mode, tracer = self.mode, self.mode.tracer
        nodes = list(dict.fromkeys(n for body in self.bodies for n in body.inputs))
        graphs = [
            add_graph(tracer, name, body, nodes)
            for name, body in zip(self.graphs, self.bodies, strict=True)
        ]
        last = tuple(nodes) if rest is None else [*tracer.create_arg(rest), *nodes]
        args = (*tracer.create_arg(values), last)
        target = getattr(taeda.ops.higher_order, self.name)
        node = tracer.create_node(
            "call_function", target, (*graphs, *args), {}, self.name
        )
        proxy = Proxy(node, tracer)
        with _unseen(mode), taeda.no_grad():
            results = make()
        if source is not None:
            with _unseen(mode):
                results = self._marked(results, source)
        with _unseen(mode):
            tracer.track(tuple(results), proxy)
            for i, number in enumerate(results):
                if isinstance(number, taeda.SymInt):
                    tracer.track(number, proxy[i])
        return tuple(results)

    def _marked(self, results, source) -> list:
        tensors = [t for t in results if isinstance(t, taeda.Tensor)]
        marked = iter(_Underivable.apply(self.name, source, *tensors))
        return [next(marked) if isinstance(t, taeda.Tensor) else t for t in results]


def _version(value):
    return value._version if isinstance(value, taeda.Tensor) else None


def _check_like(name: str, found, wanted) -> None:
    def like(t):
        return (str(tuple(t.shape)), t.dtype) if isinstance(t, taeda.Tensor) else int

    a, b = [*map(like, found)], [*map(like, wanted)]
    if a != b:
        raise RuntimeError(
            f"{name}: values must stay like they are, got {a} for {b} before"
        )


def _unrolls(mode, source) -> bool:
    """Whether the program's own loop is recorded: it may ask for a derivative."""
    return source is not None and mode.differentiates


def _while_loop(mode, cond_fn, body_fn, carried: tuple):
    leaves, spec = pytree.tree_flatten(carried)
    numbers = [x for x in leaves if not isinstance(x, taeda.Tensor)]
    if numbers and (mode.env is None or any(type(x) not in _NUMBERS for x in numbers)):
        return NotImplemented
    loop = _Loop(mode, "while_loop")
    with _unseen(mode):
        given = pytree.tree_unflatten([*map(loop.stand_in, leaves)], spec)
    test, _ = loop.run("while_loop_cond_graph", cond_fn, given, _single)
    found, shape = loop.run("while_loop_body_graph", body_fn, given)
    if shape != spec:
        raise RuntimeError(
            "while_loop: body_fn should return the same number of elements as "
            f"carried_inputs: expected {len(leaves)}, got {len(found)}"
        )
    _check_like("while_loop", found, leaves)
    source = loop.source(leaves, [*test, *found])
    if _unrolls(mode, source) and mode.tracing_mode == "real":
        return NotImplemented

    def make():
        if mode.tracing_mode == "real":
            return pytree.tree_leaves(taeda.while_loop(cond_fn, body_fn, carried))
        return [*map(loop.another, found)]

    results = loop.emit((tuple(leaves),), None, source, make)
    return pytree.tree_unflatten(list(results), spec)


def _single(nodes: list):
    if len(nodes) != 1:
        raise RuntimeError(
            "while_loop: cond_fn must return a boolean scalar tensor or a boolean but "
            f"got {len(nodes)} values"
        )
    return nodes[0]


def _rows(found: list, count) -> list:
    return [y.new_empty((count, *y.shape)) for y in found]


def _scan(mode, combine_fn, init, rows: list, spec):
    """`rows` are the leaves of what is gone over, along their first dim."""
    from taeda._higher_order_ops import scan

    begun, shape = pytree.tree_flatten(init)
    loop = _Loop(mode, "scan")
    with _unseen(mode):
        carry = pytree.tree_unflatten([*map(loop.stand_in, begun)], shape)
        item = [loop.stand_in(x.select(0, 0)) for x in rows]
        item = pytree.tree_unflatten(item, spec)
    shapes = []

    def step(carry, item):
        from taeda._higher_order_ops.scan import checked

        found = checked(combine_fn(carry, item), carry)
        shapes.append(pytree.tree_flatten(found[1])[1])
        return found

    found, _ = loop.run("scan_combine_graph", step, (carry, item), list)
    source = loop.source((begun, rows), found)
    if _unrolls(mode, source):
        return NotImplemented

    def make():
        if mode.tracing_mode == "real":
            xs = pytree.tree_unflatten(rows, spec)
            return pytree.tree_leaves(scan(combine_fn, init, xs))
        last = [*map(loop.another, found[: len(begun)])]
        return last + _rows(found[len(begun) :], rows[0].size(0))

    results = loop.emit((begun, rows), None, source, make)
    last = pytree.tree_unflatten(list(results[: len(begun)]), shape)
    return last, list(results[len(begun) :]), shapes[0]


def _map(mode, f, rows: list, spec, args: tuple):
    from taeda._higher_order_ops import map as map_rows

    leaves, shape = pytree.tree_flatten(args)
    if not all(isinstance(x, taeda.Tensor) for x in leaves):
        leaves = []  # constants, which the function knows
    loop = _Loop(mode, "map_impl")
    with _unseen(mode):
        item = pytree.tree_unflatten([loop.stand_in(x[0]) for x in rows], spec)
        given = tuple(map(loop.stand_in, leaves))

    def call(item, *given):
        rest = pytree.tree_unflatten(list(given), shape) if leaves else args
        return f(item, *rest)

    found, out = loop.run("body_graph", call, (item, *given))
    source = loop.source((rows, args), found)
    if _unrolls(mode, source):
        return NotImplemented

    def make():
        if mode.tracing_mode == "real":
            xs = pytree.tree_unflatten(rows, spec)
            return pytree.tree_leaves(map_rows(f, xs, *args))
        return _rows(found, rows[0].size(0))

    results = loop.emit((rows,), leaves, source, make)
    return pytree.tree_unflatten(list(results), out)


def _associative_scan(mode, combine_fn, rows: list, spec):
    from taeda._higher_order_ops import associative_scan

    loop = _Loop(mode, "associative_scan")
    with _unseen(mode):
        items = [
            pytree.tree_unflatten([loop.stand_in(x.select(0, 0)) for x in rows], spec)
            for _ in range(2)
        ]
    found, shape = loop.run("associative_scan_combine_graph", combine_fn, tuple(items))
    _check_like("associative_scan", found, pytree.tree_leaves(items[0]))
    source = loop.source(rows, found)
    if _unrolls(mode, source):
        return NotImplemented

    def make():
        if mode.tracing_mode == "real":
            xs = pytree.tree_unflatten(rows, spec)
            return pytree.tree_leaves(
                associative_scan(combine_fn, xs, 0, combine_mode="generic")
            )
        return _rows(found, rows[0].size(0))

    results = loop.emit((rows,), None, source, make)
    return list(results)


RECORDERS = {
    "associative_scan": _associative_scan,
    "cond": _cond,
    "map": _map,
    "scan": _scan,
    "while_loop": _while_loop,
}
