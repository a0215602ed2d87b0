"""Interpreters, transformers, rewriting and passes tell what PyTorch's tell."""

from __future__ import annotations

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from both import Library, attempt, check, graph_told


def rewrite(L, function, pattern, replacement, **options):
    gm = L.fx.symbolic_trace(function)
    rewriter = L.at("fx.subgraph_rewriter")
    found = rewriter.replace_pattern_with_filters(gm, pattern, replacement, **options)
    gm.graph.lint()
    rows = [[str(m.anchor), str(m.nodes_map), str(m.replacements)] for m in found]
    return rows, graph_told(gm)


def rewriting(L):
    a = L.relu, L.tanh, L.exp, L.sin, L.cos
    relu, tanh, exp, sin, cos = a
    cases = [
        (
            lambda x, y: relu(x + y) + relu(x + x),
            lambda a, b: relu(a + b),
            lambda a, b: tanh(a * b),
        ),
        (
            lambda x, v, w: L.cat([v, w]).sum() + L.max(L.cat([w, v]).sum()) + x,
            lambda a, b: L.cat([a, b]).sum(),
            lambda a, b: L.stack([a, b]),
        ),
        (lambda x: exp(sin(x)) * sin(x), lambda a: sin(a), lambda a: cos(a)),
        (lambda x: exp(exp(exp(x))), lambda a: exp(exp(a)), lambda a: L.log(a)),
        (
            lambda x: (x.sin(), x.cos(), x.sin() + x.cos()),
            lambda a: (a.sin(), a.cos()),
            lambda a: (a.tan(), a.tan() + 1),
        ),
        (
            lambda x: x.view(2, -1) + 1,
            lambda a, b: a.view(2, b),
            lambda a, b: a.reshape(b, 2),
        ),
        (lambda x: L.neg(x) + 1, lambda a: L.neg(a), lambda a: a),
        (lambda x: sin(x) + cos(sin(x)), lambda a: cos(sin(a)), lambda a: a * 2),
        (lambda x: x.sin(), lambda a: exp(a), lambda a: a),
        (lambda x: x.sum(dim=1), lambda a: a.sum(dim=1), lambda a: a.mean(dim=1)),
        (lambda x: x.sum(1), lambda a: a.sum(dim=1), lambda a: a.mean(dim=1)),
    ]
    return [rewrite(L, *case) for case in cases]


def rewriting_with_filters(L):
    def first(match, graph, pattern):
        return str(match.anchors[0]) == "add" and len(match.nodes_map) > 1

    function = (lambda x: L.relu(x + 1) + L.relu(x + 2), lambda a: L.relu(a + 1))
    loose = rewrite(L, *function, lambda a: a * 3, ignore_literals=True)
    none = rewrite(L, *function, lambda a: a, match_filters=[lambda m, g, p: False])
    return loose, none


def modules_by_kind(L):
    nn = L.nn

    class Fake(nn.Module):
        def forward(self, x):
            return x.round()

    gm = L.fx.symbolic_trace(nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 2)))
    modules = dict(gm.named_modules())
    for node in gm.graph.nodes:
        if node.op == "call_module" and type(modules.get(node.target)) is nn.Linear:
            name = f"{node.target}_fake"
            gm.add_submodule(name, Fake())
            with gm.graph.inserting_after(node):
                new = gm.graph.create_node("call_module", name, (node,), {})
            node.replace_all_uses_with(
                new, delete_user_cb=lambda u, new=new: u is not new
            )
    gm.recompile()
    gm.graph.lint()
    return graph_told(gm), str(gm)


def net_of(L):
    nn = L.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(3, 3)
            self.b = nn.Sequential(nn.ReLU(), nn.Linear(3, 3))
            self.w = nn.Parameter(L.ones(3))

        def forward(self, x, y=None):
            u = self.a(x)
            t = (self.b(u + 1) * self.w).sin() + u
            c, d = t.chunk(2)
            return {"r": [c.cos(), d + x[:2]]}

    return L.fx.symbolic_trace(L.filled(Net()))


def splitting(L):
    gm = net_of(L)
    split = L.at("fx.passes.split_module").split_module
    told = []
    for size in (4, 6):
        place = {n: i // size for i, n in enumerate(gm.graph.nodes)}
        for options in (
            {},
            {"keep_original_order": True},
            {"keep_original_node_name": True},
            {"keep_original_input_name": False},
            {"partition_affix": "k"},
            {"tuple_return": True},
        ):
            paths: dict = {}
            cut = split(gm, gm, place.get, paths, **options)
            parts = [[name, m.code] for name, m in cut.named_children()]
            told.append([graph_told(cut), paths, parts, cut(L.values(4, 3))])
    odd = {n: i % 2 for i, n in enumerate(gm.graph.nodes)}
    return told, attempt(split, gm, gm, odd.get)


def shapes(L):
    gm = net_of(L)
    L.at("fx.passes.shape_prop").ShapeProp(gm).propagate(L.values(4, 3))
    notes = [
        [n.meta.get("tensor_meta"), n.meta["type"].__name__] for n in gm.graph.nodes
    ]
    failing = L.fx.symbolic_trace(lambda x: x @ x)
    prop = L.at("fx.passes.shape_prop").ShapeProp(failing)
    return notes, attempt(prop.propagate, L.ones(2, 3))


def fused(L):
    nn = L.nn
    net = nn.Sequential(
        *(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Dropout(), nn.Flatten()),
        *(nn.Linear(18, 4), nn.BatchNorm1d(4)),
    )
    net = L.filled(net).eval()
    opt = L.at("fx.experimental.optimization")
    made = opt.fuse(net)
    kinds = [type(m).__name__ for m in made.modules()]
    return (
        str(made.graph),
        kinds,
        made(L.values(1, 1, 5, 5)),
        str(opt.remove_dropout(net).graph),
    )


def interpreting(L):
    seen = []

    class Watch(L.fx.Interpreter):
        def run_node(self, node):
            seen.append(node.name)
            return super().run_node(node)

        def call_function(self, target, args, kwargs):
            target = L.cos if target is L.sin else target
            return super().call_function(target, args, kwargs)

        def call_method(self, target, args, kwargs):
            target = "neg" if target == "exp" else target
            return super().call_method(target, args, kwargs)

    gm = L.fx.symbolic_trace(lambda x, k=2: L.sin(x).exp() + k)
    sine = next(n for n in gm.graph.nodes if n.name == "sin")
    given = L.fx.Interpreter(gm).run(L.ones(2), initial_env={sine: L.zeros(2)})
    failing = L.fx.Interpreter(L.fx.symbolic_trace(lambda x: x @ x))
    args = [L.ones(2), 3]
    boxed = L.fx.Interpreter(gm).boxed_run(args)
    kept = L.fx.Interpreter(gm, garbage_collect_values=False)
    kept.run(L.ones(2))
    return [
        *(Watch(gm).run(L.ones(2)), seen, given, boxed, args, len(kept.env)),
        attempt(failing.run, L.ones(2, 3)),
        attempt(L.fx.Interpreter(gm).run),
        L.fx.Interpreter(net_of(L)).run(L.values(4, 3)),
    ]


def transforming(L):
    class Swap(L.fx.Transformer):
        def call_function(self, target, args, kwargs):
            if target is L.sigmoid:
                return L.neg(*args, **kwargs)
            return super().call_function(target, args, kwargs)

        def call_method(self, target, args, kwargs):
            target = "abs" if target == "neg" else target
            return super().call_method(target, args, kwargs)

    gm = L.fx.symbolic_trace(lambda x, k=2: L.sigmoid(x).neg() + x * k)
    new = Swap(gm).transform()
    again = L.fx.Transformer(net_of(L)).transform()
    return graph_told(new), new(L.values(2)), graph_told(again)


def feature_paths(L):
    """As torchvision's feature extraction does: nodes named for where they run."""

    class Paths(L.fx.Tracer):
        def __init__(self):
            super().__init__()
            self.path, self.names = "", {}

        def call_module(self, m, forward, args, kwargs):
            before, self.path = self.path, self.path_of_module(m)
            try:
                if not self.is_leaf_module(m, self.path):
                    return forward(*args, **kwargs)
                return self.create_proxy("call_module", self.path, args, kwargs)
            finally:
                self.path = before

        def create_proxy(
            self, kind, target, args, kwargs, name=None, type_expr=None, *_
        ):
            proxy = super().create_proxy(kind, target, args, kwargs, name, type_expr)
            self.names[proxy.node] = f"{self.path}.{proxy.node.name}".strip(".")
            return proxy

    nn = L.nn
    net = L.filled(nn.Sequential(nn.Sequential(nn.Linear(3, 3), nn.ReLU()), nn.Tanh()))
    tracer = Paths()
    graph = tracer.trace(net)
    gm = L.fx.GraphModule(tracer.root, graph, "Features")
    out = gm.graph.output_node()
    gm.graph.erase_node(out)
    wanted = [n for n in gm.graph.nodes if n.op == "call_module"]
    with gm.graph.inserting_after(next(iter(reversed(gm.graph.nodes)))):
        gm.graph.output({tracer.names[n]: n for n in wanted})
    gm.graph.eliminate_dead_code()
    gm.recompile()
    return list(tracer.names.values()), graph_told(gm), gm(L.values(2, 3))


def guided_tracing(L):
    """As transformers does: proxies that carry values answer questions."""

    class Known(L.fx.Proxy):
        def __bool__(self):
            return bool(self.node.meta["known"])

    class Tracer(L.fx.Tracer):
        def proxy(self, node):
            return Known(node, self)

        def create_proxy(self, *args, **kwargs):
            made = super().create_proxy(*args, **kwargs)
            made.node.meta["known"] = 1
            return made

        def iter(self, obj):
            return iter([obj[i] for i in range(2)])

    def fn(x):
        total = 0
        for part in x:
            total = total + part
        return total if x.sum() > 0 else -total

    tracer = Tracer()
    return graph_told(L.fx.GraphModule(L.nn.Module(), tracer.trace(fn)))


def normalized(L):
    F, schemas = L.nn.functional, L.at("fx.operator_schemas")
    net = L.nn.Sequential(L.nn.Linear(3, 3), L.nn.ReLU())
    told = []
    for only in (False, True):
        for target, args, kwargs in (
            (L.relu, (1,), {}),
            (L.sigmoid, (1,), {}),
            (F.relu, (1,), {}),
            (F.linear, (1, 2), {}),
            (L.cat, ([1],), {}),
            (F.layer_norm, (1,), {"normalized_shape": (2,)}),
            (L.ops.aten.add.Tensor, (1, 2), {}),
            (L.ops.aten.add.Tensor, (1,), {}),
        ):
            pair = schemas.normalize_function(
                target, args, kwargs, normalize_to_only_use_kwargs=only
            )
            told.append(pair and [pair.args, pair.kwargs])
        pair = schemas.normalize_module(net, "0", (1,), {}, only)
        told.append([pair.args, pair.kwargs])
    return told, attempt(schemas.normalize_module, net, "9", (1,))


def functional_only(L):
    class Strict(L.fx.Tracer):
        check_mutable_operations = True

    tracer = Strict()
    return attempt(tracer.trace, lambda x: L.relu_(x)), str(
        tracer.trace(lambda x: L.relu(x))
    )


def managed(L):
    def swap(gm):
        changed = gm.graph.find_nodes(op="call_function", target=L.sin)
        for node in changed:
            node.target = L.cos
        base = L.at("fx.passes.infra.pass_base")
        return base.PassResult(gm, bool(changed))

    def clean(gm):
        gm.graph.eliminate_dead_code()

    infra = L.at("fx.passes.infra.pass_manager")
    after = infra.pass_result_wrapper(clean)
    rule = infra.this_before_that_pass_constraint(swap, after)
    manager = infra.PassManager([after, swap], [rule], steps=2)
    gm = L.fx.symbolic_trace(lambda x: (L.exp(x), L.sin(x))[1])
    result = manager(gm)
    broken = infra.PassManager([after, swap], [rule])
    return (
        str(result.graph_module.graph),
        result.modified,
        attempt(broken.validate_constraints),
    )


def partitioned(L):
    support = L.at("fx.passes.operator_support")
    names = ("add", "mul", "sin")
    supported = support.create_op_support(
        lambda _, node: getattr(node.target, "__name__", node.target) in names
    )
    infra = L.at("fx.passes.infra.partitioner")
    told = []
    for fn in (
        lambda x, y: L.sin(x + y).cos() * 2 + x,
        lambda x, y: (x + y).cos() + (x * y),
        lambda x, y: (x.cos(), x.tan()),
    ):
        gm = L.fx.symbolic_trace(fn)
        made = infra.CapabilityBasedPartitioner(gm, supported).partition_and_fuse()
        made.recompile()
        made.graph.lint()
        told.append([made(L.values(2), L.ones(2))])
    return told


def split_by_tags(L):
    """Parts in the order of their tags, whose state has other paths."""

    class Net(L.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = L.nn.Linear(3, 2), L.nn.Linear(3, 2)
            self.inner = L.nn.Sequential(L.nn.Linear(2, 2))
            self.weight = L.nn.Parameter(L.ones(2))

        def forward(self, a, b):
            x, y = self.first(a), self.second(b) + self.weight
            return self.inner(L.cat([x, y])) * self.weight, x

    utils, told = L.at("fx.passes.split_utils"), []
    tags = {"first": "early", "second": "middle", "add": "middle"}
    for returns_tuples in (False, True):
        net = L.filled(Net())
        gm = L.fx.symbolic_trace(net)
        for node in gm.graph.nodes:
            node.tag = tags.get(node.name, "late")
        split, paths = utils.split_by_tags(
            gm, ["early", "middle", "late"], True, returns_tuples
        )
        inside = [(name, graph_told(part)) for name, part in split.named_children()]
        result = split(L.values(1, 3), L.values(1, 3))
        told += [graph_told(split), inside, paths, sorted(split.state_dict()), result]
        told.append(attempt(lambda gm=gm: utils.split_by_tags(gm, ["late", "early"])))
    path = "early.first.bias"
    utils.setattr_recursive(split, path, L.nn.Parameter(L.zeros(2)))
    told += [utils.getattr_recursive(split, path), split.early.first.bias]
    return [*told, utils.getattr_recursive(split, "early.none.bias")]


PROGRAMS = [
    *(split_by_tags, normalized, functional_only, managed, partitioned),
    *(rewriting, modules_by_kind, splitting, shapes, fused, interpreting, transforming),
    *(feature_paths, guided_tracing, rewriting_with_filters),
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_passes_are_equal(program) -> None:
    check(program)


def test_partitions_are_whole_and_without_circles() -> None:
    L = Library("taeda")
    support = L.at("fx.passes.operator_support")
    table = {"_operator.add": None, "_operator.mul": None, "taeda.sin": None}
    infra = L.at("fx.passes.infra.partitioner")

    def fn(x, y):
        a = x + y
        b = a.cos()
        return L.sin(b + a * 2), y * y

    gm = L.fx.symbolic_trace(fn)
    wanted = fn(L.values(2), L.ones(2))
    partitioner = infra.CapabilityBasedPartitioner(gm, support.OperatorSupport(table))
    found = partitioner.propose_partitions()
    assert [[str(n) for n in p.nodes] for p in found] == [
        ["add", "mul", "mul_1"],
        ["add_1", "sin"],
    ]
    made = partitioner.fuse_partitions(found)
    made.recompile()
    kinds = [n.op for n in made.graph.nodes]
    assert kinds.count("call_module") == 2 and kinds.count("call_method") == 1
    got = made(L.values(2), L.ones(2))
    assert all(L.equal(a, b) for a, b in zip(got, wanted, strict=True))


def manipulated(L):
    passes = L.at("fx.passes.graph_manipulation")
    gm = L.fx.symbolic_trace(L.nn.Sequential(L.nn.Linear(3, 2), L.nn.ReLU()))
    wrong = attempt(passes.get_size_of_node, gm, next(iter(gm.graph.nodes)))
    passes.get_size_of_all_nodes(gm, [L.ones(4, 3)])
    sizes = [list(n.size_bytes) for n in gm.graph.nodes if n.op != "output"]
    other = L.fx.symbolic_trace(lambda x: L.sin(x) + L.sin(x))
    passes.replace_target_nodes_with(
        other, "call_function", L.sin, "call_function", L.cos
    )
    return sizes, wrong, graph_told(other)


def test_manipulations_are_equal() -> None:
    check(manipulated)


def minimizer(fn, wrong, **settings):
    """A minimizer whose second way gets the sines wrong that `wrong` picks."""
    import taeda
    from taeda.fx.passes import net_min_base as base

    class Minimizer(base._MinimizerBase):
        def run_a(self, mod, inputs, report_idx=-1):
            return mod(*inputs)

        def run_b(self, mod, inputs, report_idx=-1):
            class Bent(taeda.fx.Interpreter):
                def run_node(self, n):
                    value = super().run_node(n)
                    bent = n.name in wrong and n.op != "placeholder"
                    return value + 1 if bent else value

            return Bent(mod).run(*inputs)

    def compare(a, b, names):
        a, b = (v if isinstance(v, tuple) else (v,) for v in (a, b))
        gap = max(float((x - y).abs().max()) for x, y in zip(a, b, strict=True))
        return gap, gap < 1e-6

    gm = taeda.fx.symbolic_trace(fn)
    made = base._MinimizerSettingBase(**settings)
    return Minimizer(gm, (taeda.ones(3),), compare, made)


@pytest.mark.parametrize("method", ["sequential", "binary", "accumulate", "defined"])
def test_minimizers_find_the_nodes_that_differ(method) -> None:
    def fn(x):
        return (x.exp() + 1).tan() * 2

    found = minimizer(fn, {"tan"}, traverse_method=method).minimize()
    names = {n.name for n in found}
    assert names == ({"exp", "add", "tan", "mul"} if method == "defined" else {"tan"})
    assert minimizer(fn, set(), traverse_method=method).minimize() == set()
    every = minimizer(fn, {"exp", "mul"}, traverse_method="sequential", find_all=True)
    assert {n.name for n in every.minimize()} == {"exp", "mul"}
    assert every.reports[0][0] == "Run and compare exp"


def test_minimizers_skip_and_refuse() -> None:
    def fn(x):
        return x.exp().sin().tan()

    skipping = minimizer(fn, {"tan"}, traverse_method="skip")
    assert {n.name for n in skipping.minimize(skip_nodes=["sin"])} == {"tan"}
    with pytest.raises(RuntimeError, match="'skip_nodes' can't be None"):
        skipping.minimize()
    with pytest.raises(RuntimeError, match="Unknown traverse method"):
        minimizer(fn, {"tan"}, traverse_method="none").minimize()
    assert minimizer(fn, {"tan"}).minimize(end="sin") == set()


def test_drawings_show_nodes_and_edges() -> None:
    L = Library("taeda")
    gm = net_of(L)
    L.at("fx.passes.shape_prop").ShapeProp(gm).propagate(L.values(4, 3))
    drawer = L.at("fx.passes.graph_drawer").FxGraphDrawer(gm, "net")
    text = drawer.get_dot_graph().to_string()
    edges = sum(len(n.users) for n in gm.graph.nodes)
    assert text.count("->") == edges and text.count("[label=") == len(gm.graph.nodes)
    assert "op_code=call_module" in text and "shape=(4, 3)" in text
    assert list(drawer.get_all_dot_graphs()) == ["net"]


def test_fake_propagation_computes_nothing_and_knows_all_shapes() -> None:
    L = Library("taeda")
    gm = net_of(L)
    L.at("fx.passes.fake_tensor_prop").FakeTensorProp(gm).propagate(L.values(4, 3))
    kinds = {type(n.meta["val"]).__name__ for n in gm.graph.nodes if "val" in n.meta}
    assert "FakeTensor" in kinds and "Tensor" not in kinds
    assert tuple(
        next(n for n in gm.graph.nodes if n.name == "mul").meta["val"].shape
    ) == (*(4, 3),)
