"""Calls of operators in graphs, copies of proxies and errors of passes."""

from __future__ import annotations

import copy
import pathlib
import pickle
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from both import Library, check, graph_told


def packets(L):
    """A packet is the target itself, with proxies in lists too."""
    aten = L.ops.aten
    traces = [
        lambda x: aten.sigmoid(x),
        lambda x: aten.cat([x, aten.add(x, 1)]),
        lambda x: aten.cat.default((x, x)),
    ]
    modules = [L.fx.symbolic_trace(f) for f in traces]
    x = L.values(3)
    return [graph_told(gm) for gm in modules], [gm(x) for gm in modules]


def schemas(L):
    """Functions of a namespace have the signatures of their operators."""
    find = L.at("fx.operator_schemas").get_signature_for_torch_op
    functions = (
        L.linalg.det,
        L.linalg.vector_norm,
        L.special.erfcx,
        L.fft.rfft,
        L.nn.functional.linear,
    )
    names = [[list(s.parameters) for s in find(f)] for f in functions]
    pool = L.ops.aten.max_pool2d_with_indices.default._schema
    return names, [a.default_value for a in pool.arguments]


def defaults_of_lists(L):
    """A list that a pattern writes out is the default that a call leaves out."""
    pool = L.ops.aten.max_pool2d_with_indices.default
    gm = L.fx.symbolic_trace(lambda x: pool(x, [2, 2], stride=[2, 2]))

    def pattern(x, size, stride):
        return pool(x, size, stride, padding=[0, 0])

    return len(L.at("fx.subgraph_rewriter").replace_pattern(gm, pattern, pattern))


def copied_proxies(L):
    class Named(L.fx.Tracer):
        def __init__(self, name):
            super().__init__()
            self.name = name

    node = list(L.fx.symbolic_trace(lambda x: 2 * x).graph.nodes)[1]
    proxy = L.fx.Proxy(node, Named("mine"))
    twin = copy.deepcopy(proxy)
    same = twin.node is node, twin.tracer is proxy.tracer
    return same, twin.tracer.name, twin.node.name, type(twin).__name__


def stand_ins_keep_what_nodes_have(L):
    trace = L.at("fx._symbolic_trace")

    class Tagged(trace.PHWithMeta):
        def __init__(self):
            super().__init__("key")
            self.name = self.tag = "mine"

    graph = L.fx.Tracer().trace(lambda x: x + 1, {"x": Tagged()})
    node = next(iter(graph.nodes))
    return node.name, node.tag, node.ph_key


def older_codegens(L):
    class Listed(L.at("fx.graph").CodeGen):
        def generate_output(self, output_args):
            return f"return list({output_args!r})"

    gm = L.fx.symbolic_trace(lambda a, b: (a + b, a - b))
    gm.graph.set_codegen(Listed())
    gm.recompile()
    return gm.code, type(gm(L.values(2), L.values(2))).__name__


def pickled_packets(L):
    cat = L.ops.aten.cat
    gm = L.fx.symbolic_trace(lambda x: cat([x, x]))
    twin = pickle.loads(pickle.dumps(gm))
    return twin(L.values(2)), twin.code


def replicas(L):
    gm = L.fx.symbolic_trace(lambda x: x.relu())
    return gm._replicate_for_data_parallel()(L.values(4))


@pytest.mark.parametrize(
    "program",
    [
        packets,
        schemas,
        defaults_of_lists,
        copied_proxies,
        stand_ins_keep_what_nodes_have,
        older_codegens,
        pickled_packets,
        replicas,
    ],
)
def test_calls_are_equal(program) -> None:
    check(program)


@pytest.mark.parametrize("name", ["taeda", "torch"])
def test_generated_files_say_what_was_traced(name) -> None:
    L = Library(name)
    gm = L.fx.symbolic_trace(lambda x: x + 1)
    file = gm.forward.__code__.co_filename
    assert file.startswith("<eval_with_key>") and "test_calls.py" in file
    assert file.endswith("in <lambda>")


@pytest.mark.parametrize("name", ["taeda", "torch"])
def test_pass_managers_name_the_pass_that_failed(name) -> None:
    L = Library(name)
    passes = L.at("fx.passes.infra.pass_manager")

    def first(gm):
        return L.at("fx.passes.infra.pass_base").PassResult(gm, False)

    def fails(gm):
        raise ValueError("bad")

    def gives_nothing(gm):
        return None

    class Whole:
        def __call__(self, gm):
            raise ValueError("bad")

    gm = L.fx.symbolic_trace(lambda x: x + 1)
    with pytest.raises(Exception, match="Whole"):
        passes.PassManager([passes.pass_result_wrapper(Whole())])(gm)
    for wrong, cause in ((fails, ValueError), (gives_nothing, TypeError)):
        with pytest.raises(Exception, match=f"{wrong.__name__}.*first") as caught:
            passes.PassManager([first, wrong])(gm)
        assert isinstance(caught.value.__cause__, cause)
    manager = passes.PassManager([first])
    for wrong in (3, lambda a, b: None):
        with pytest.raises(TypeError):
            manager.add_checks(wrong)
