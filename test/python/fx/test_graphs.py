"""Graphs, nodes and graph modules: built, changed, copied and checked."""

from __future__ import annotations

import copy
import importlib
import operator
import pathlib
import pickle
import sys
import warnings

import pytest
import taeda

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from both import attempt, check, graph_told


def by_hand(L):
    graph = L.fx.Graph()
    x = graph.placeholder("x", L.Tensor)
    n = graph.placeholder("n", default_value=3)
    y = graph.call_function(L.sin, (x,))
    z = graph.call_method("add", (y, 1), {"alpha": 2})
    with graph.inserting_before(z):
        a = graph.call_function(L.clamp, (y,), {"min": 0, "max": n})
        b = graph.call_function(operator.setitem, (a, slice(0, 1), 2.0))
    with graph.inserting_after(z):
        c = graph.call_function(operator.iadd, (z, [a, (n,)][0]), name="c")
    with graph.inserting_after(c):
        graph.call_function(L.cos, (c,), type_expr=L.Tensor)
    graph.output({"w": (z, None), "dtype": L.float32}, dict)
    gm = L.fx.GraphModule({}, graph)
    graph.lint()
    shown = [n.format_node() for n in graph.nodes]
    return graph_told(gm), gm(L.ones(2)), shown, b.is_impure(), repr(b)


def state_by_path(L):
    holder = L.nn.Module()
    holder.inner = L.filled(L.nn.Linear(3, 3))
    holder.add_module("0", L.nn.Sequential(L.nn.ReLU()))
    graph = L.fx.Graph()
    y = graph.call_module("inner", (graph.placeholder("x"),))
    y = graph.call_module("0.0", (y,))
    graph.output(graph.call_function(L.matmul, (y, graph.get_attr("inner.weight"))))
    gm = L.fx.GraphModule(holder, graph)
    wrong = attempt(L.fx.GraphModule, {"inner": holder.inner}, graph)
    return graph_told(gm), gm(L.values(2, 3)), sorted(gm.state_dict()), wrong


def users(L):
    graph = L.fx.symbolic_trace(lambda x, y: (x + y) * (x - y) + [x, x][0]).graph
    rows = [
        [str(list(n.users)), str(n.all_input_nodes), n.next.name, n.prev.name]
        for n in graph.nodes
    ]
    first, second, *_ = graph.nodes
    return rows, first < second, first <= first, second > first, len(graph.nodes)


def updates(L):
    gm = L.fx.symbolic_trace(lambda x, y: L.add(x, y))
    x, y, add, _ = gm.graph.nodes
    add.update_arg(1, 7)
    add.update_kwarg("alpha", 3)
    used = [u.name for u in y.users]
    add.replace_input_with(x, y)
    add.insert_arg(0, x)
    rows = str(gm.graph)
    add.args = (y, [1, {"k": x}])
    frozen = attempt(add.args[1].append, 3), attempt(add.kwargs.update, {"a": 1})
    return used, rows, str(gm.graph), frozen, [type(a).__name__ for a in add.args]


def moves(L):
    graph = L.fx.symbolic_trace(lambda x: (x.sin(), x.cos(), x.tan())).graph
    _, sin, cos, tan, out = graph.nodes
    sin.append(tan)
    cos.prepend(tan)
    before = [n.name for n in graph.nodes], [n.name for n in reversed(graph.nodes)]
    tan.replace_all_uses_with(sin, delete_user_cb=lambda u: u is out)
    graph.erase_node(tan)
    for node in graph.nodes:
        if node.op == "call_method":
            with graph.inserting_after(node):
                graph.call_function(L.relu, (node,))
    graph.lint()
    return before, str(graph), tan in graph.nodes


def queries(L):
    graph = L.fx.symbolic_trace(lambda x: L.relu(x) + L.relu(x).sin()).graph
    relus = graph.find_nodes(op="call_function", target=L.relu)
    relus[0].target = L.tanh
    again = graph.find_nodes(op="call_function", target=L.relu)
    sines = graph.find_nodes(op="call_method", target="sin")
    last = graph.output_node()
    return (
        str(relus),
        str(again),
        str(sines),
        str(last),
        str(graph.find_nodes(op="placeholder")),
    )


def names(L):
    graph = L.fx.Graph()
    x = graph.placeholder("x")
    made = [graph.call_function(L.sin, (x,)).name for _ in range(3)]
    wanted = "wave wave wave_1 wave_7 wave wave_7 return 0th a.b max __call__ XmlParser"
    for name in wanted.split():
        made.append(graph.create_node("call_function", L.cos, (x,), name=name).name)
    made.append(graph.call_method("__add__", (x, 1)).name)
    made.append(graph.call_method("__len__", (x,)).name)
    made.append(graph.placeholder("lambda").name)
    return made


def dead_code(L):
    def fn(x):
        _a = x.exp()
        _b = _a + 1
        _c = L.rand(3) * x
        _d = L._assert(x.sum() > 0, "text") if False else None
        x[0].add_(1)
        return x * 2

    gm = L.fx.symbolic_trace(fn)
    changed = gm.graph.eliminate_dead_code()
    kept = L.fx.symbolic_trace(lambda x: (x.sin(), x)[1])
    stays = kept.graph.eliminate_dead_code(lambda n: n.op != "placeholder")
    return str(gm.graph), changed, gm.graph.eliminate_dead_code(), stays


def broken(L):
    def used_before(graph, x, y, z):
        y.prepend(z)

    def foreign(graph, x, y, z):
        z.args = (L.fx.Graph().placeholder("q"),)

    def twice(graph, x, y, z):
        z.name = "x"

    told = []
    for harm in (used_before, foreign, twice):
        graph = L.fx.Graph()
        x = graph.placeholder("x")
        y = graph.call_function(L.sin, (x,))
        z = graph.call_function(L.cos, (y,))
        graph.output(z)
        harm(graph, x, y, z)
        told.append(attempt(graph.lint))
    graph = L.fx.Graph()
    told.append(attempt(graph.create_node, "call_nothing", "x"))
    told.append(attempt(graph.create_node, "call_function", "x"))
    told.append(attempt(graph.create_node, "call_method", L.sin))
    told.append(attempt(graph.inserting_before, L.fx.Graph().placeholder("x")))
    told.append(attempt(graph.create_node, "call_method", "x", [1]))
    gm = L.fx.symbolic_trace(L.nn.Sequential(L.nn.ReLU()))
    next(n for n in gm.graph.nodes if n.op == "call_module").target = "9"
    told.append(attempt(gm.graph.lint))
    return [*told, attempt(gm.graph.erase_node, next(iter(gm.graph.nodes)))]


def copies(L):
    source = L.fx.symbolic_trace(lambda x: L.sin(x) * 2).graph
    for i, node in enumerate(source.nodes):
        node.meta["index"] = i
    target, env = L.fx.Graph(), {}
    result = target.graph_copy(source, env)
    target.output(result)
    twin = copy.deepcopy(source)
    metas = [[n.meta.get("index") for n in g.nodes] for g in (target, twin)]
    return str(target), len(env), str(twin), metas


def submodules(L):
    nn = L.nn
    net = L.filled(nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3)))
    gm = L.fx.symbolic_trace(net)
    gm.add_submodule("deep.er", nn.Linear(1, 1))
    gm.add_submodule("used.inner", nn.ReLU())
    calls = {n.target: n for n in gm.graph.nodes if n.op == "call_module"}
    with gm.graph.inserting_after(calls["1"]):
        new = gm.graph.call_module("used.inner", (calls["1"],))
    calls["2"].replace_all_uses_with(new)
    gm.graph.erase_node(calls["2"])
    named = [n for n, _ in gm.named_modules()]
    gm.delete_all_unused_submodules()
    gm.recompile()
    left = [n for n, _ in gm.named_modules()]
    result = gm(L.values(2, 3))
    wrong = [gm.delete_submodule(p) for p in ("no", "0.weight", "used.no", "0")]
    return named, left, result, wrong


def readable(L):
    gm = L.fx.symbolic_trace(L.nn.Sequential(L.nn.Linear(3, 3), L.nn.ReLU()))
    L.at("fx.passes.shape_prop").ShapeProp(gm).propagate(L.ones(2, 3))
    wide = L.fx.symbolic_trace(lambda x: x.sum() + 1)
    for node in wide.graph.nodes:
        node.meta["val"] = L.ones(2, 3)
        node.meta["custom"] = {"k": "v" * 50}
        node.stack_trace = '  File "a.py", line 3, in forward\n    return x + 1\n'
    shown = wide.print_readable(False, include_stride=True, include_device=True)
    return gm.print_readable(print_output=False), shown, str(wide)


def transformed_code(L):
    gm = L.fx.symbolic_trace(lambda x: x + 1)
    with gm.graph.on_generate_code(lambda before: lambda body: ["y = x\n", *body]):
        gm.recompile()
        inside = [line for line in gm.code.split("\n") if "COUNTER" not in line]
    gm.recompile()
    return inside, gm.code


PROGRAMS = [
    *(by_hand, state_by_path, users, updates, moves, queries, names, dead_code, broken),
    *(copies, submodules, readable, transformed_code),
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_graphs_are_equal(program) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(program)


class Net(taeda.nn.Module):
    """At the top of a module, so that it can be pickled."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = taeda.nn.Linear(3, 3)
        self.scale = taeda.nn.Parameter(taeda.ones(3))

    def forward(self, x, k: int = 2):
        y = self.lin(x).relu() * self.scale
        return {"a": [y, taeda.ops.aten.add.Tensor(taeda.ones(1), k)], "b": len_of(x)}


@taeda.fx.wrap
def len_of(x) -> int:
    return len(x)


def test_pickled_graphs_are_the_same_and_run() -> None:
    gm = taeda.fx.symbolic_trace(Net())
    gm.note = "kept"
    graph_only = pickle.loads(pickle.dumps(gm.graph))
    twin = pickle.loads(pickle.dumps(gm))
    assert str(twin.graph) == str(gm.graph) == str(graph_only)
    assert twin.code == gm.code and type(twin).__name__ == "Net" and twin.note == "kept"
    assert type(twin) is not type(gm) and isinstance(twin, taeda.fx.GraphModule)
    assert twin.graph.owning_module is twin
    x = taeda.ones(2, 3)
    assert taeda.equal(twin(x)["a"][0], gm(x)["a"][0]) and twin(x)["b"] == 2


def test_deep_copies_share_nothing() -> None:
    gm = taeda.fx.symbolic_trace(Net())
    gm.first = next(iter(gm.graph.nodes))
    gm.train(False)
    twin = copy.deepcopy(gm)
    with taeda.no_grad():
        gm.scale.zero_()
    x = taeda.ones(2, 3)
    assert gm(x)["a"][0].sum() == 0 != twin(x)["a"][0].sum()
    assert str(twin.graph) == str(gm.graph) and not twin.training
    assert twin.first is next(iter(twin.graph.nodes)) is not gm.first
    assert twin.graph.owning_module is twin
    shallow = copy.copy(gm)
    assert shallow.graph is gm.graph and shallow.lin is gm.lin


def test_wrapped_functions_stay_calls_also_when_code_is_traced_again() -> None:
    gm = taeda.fx.symbolic_trace(Net())
    again = taeda.fx.symbolic_trace(gm)
    assert 'fx._symbolic_trace.wrap("' in gm.code
    assert [n.target for n in again.graph.nodes if n.name == "len_of"] == [len_of]
    with pytest.raises(NotImplementedError, match="top level of a module"):
        taeda.fx.wrap("len_of")
    with pytest.raises(RuntimeError, match="either a callable or string name"):
        taeda.fx.wrap(3)


def test_an_error_in_generated_code_shows_the_line_once(capfd) -> None:
    inner = taeda.fx.symbolic_trace(lambda x, y: x @ y)
    outer = taeda.fx.GraphModule({}, taeda.fx.Graph())
    outer.add_submodule("inner", inner)
    x = outer.graph.placeholder("x")
    outer.graph.output(outer.graph.call_module("inner", (x, x)))
    outer.recompile()
    with pytest.raises(RuntimeError, match="mat1 and mat2"):
        outer(taeda.ones(2, 3))
    shown = capfd.readouterr().err
    assert shown.count("Call using an FX-traced Module, line 5 of") == 1
    assert "matmul = x @ y" in shown and "<--- HERE" in shown


def test_tabular_form(capsys) -> None:
    taeda.fx.symbolic_trace(lambda x: x + 1).graph.print_tabular()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["opcode", "name", "target", "args", "kwargs"]
    assert set(lines[1]) == {"-", " "}
    assert lines[2].split() == ["placeholder", "x", "x", "()", "{}"]
    assert lines[3] == "call_function  add     <built-in function add>  (x, 1)  {}"


def test_source_of_generated_code_can_be_inspected() -> None:
    import inspect

    gm = taeda.fx.symbolic_trace(lambda x: x + 1)
    assert "add = x + 1" in inspect.getsource(gm.forward)


def test_a_module_is_written_as_a_package(tmp_path, monkeypatch) -> None:
    net = taeda.nn.Sequential(taeda.nn.Linear(3, 3), taeda.nn.ReLU())

    class Owner(taeda.nn.Module):
        def __init__(self):
            super().__init__()
            self.lin, self.act = net
            self.scale = taeda.nn.Parameter(taeda.rand(3))
            self.register_buffer("shift", taeda.rand(3))

        def forward(self, x):
            return self.act(self.lin(x)) * self.scale + self.shift

    gm = taeda.fx.symbolic_trace(Owner())
    monkeypatch.chdir(tmp_path)
    with pytest.warns(UserWarning, match="act"):
        gm.to_folder("written_module", "Written")
    monkeypatch.syspath_prepend(str(tmp_path))
    folder = "written_module"
    Written = importlib.import_module(folder).Written

    x = taeda.rand(2, 3)
    assert taeda.equal(Written()(x), gm(x))


PROGRAM = """
import pickle, torch
from torch.fx import GraphModule, symbolic_trace
from torch.fx.experimental.proxy_tensor import make_fx

net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
gm = symbolic_trace(net)
twin = pickle.loads(pickle.dumps(gm))
x = torch.ones(1, 2)
assert torch.equal(twin(x), net(x)) and isinstance(twin, GraphModule)
print(symbolic_trace(lambda x: torch.relu(x)).code.strip())
print(make_fx(lambda x: x.sin())(x).code.strip().split(chr(10))[1].strip())
print(gm.print_readable(False).split("(")[1])
"""


def test_programs_that_say_torch_get_code_that_says_torch(tmp_path) -> None:
    import subprocess

    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    command = [sys.executable, "-m", "taeda.as_torch", str(path)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert told.splitlines()[:5] == [
        "def forward(self, x):",
        "    relu = torch.relu(x);  x = None",
        "    return relu",
        "sin = torch.ops.aten.sin.default(x_1);  x_1 = None",
        "torch.nn.Module):",
    ]


def test_importing_the_package_does_not_import_graphs() -> None:
    import subprocess

    text = "import sys, taeda; print([m for m in sys.modules if 'taeda.fx' in m])"
    told = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, check=True
    )
    assert told.stdout.strip() == "[]"
