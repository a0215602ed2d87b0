"""Guards that a program leaves out, and ranks that ask each other for theirs."""

from __future__ import annotations

import builtins
import importlib

import pytest
import taeda

SCALE = 2.0
TABLE = [1.0, 2.0]
OTHER = taeda.ones(2)


def counting():
    """A backend that runs graphs as captured, and the list of what it was given."""
    graphs = []

    def backend(gm, inputs):
        graphs.append(gm)
        return gm.forward

    return backend, graphs


def filtered(function, keep, backend, **settings):
    options = {"guard_filter_fn": keep}
    return taeda.compile(
        function, backend=backend, options=options, fullgraph=True, **settings
    )


def scaled(x):
    return x * SCALE


def with_table(x):
    return x * TABLE[0] + x * TABLE[1]


def test_a_changed_global_is_not_noticed(monkeypatch) -> None:
    keep = taeda.compiler.skip_guard_on_globals_unsafe
    backend, graphs = counting()
    compiled = filtered(scaled, keep, backend)
    x = taeda.ones(2)
    assert compiled(x).tolist() == [2, 2]
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    assert compiled(x).tolist() == [2, 2] and len(graphs) == 1
    assert compiled(taeda.ones(3)).tolist() == [3, 3, 3] and len(graphs) == 2


def test_without_a_filter_it_is(monkeypatch) -> None:
    backend, graphs = counting()
    compiled = taeda.compile(scaled, backend=backend)
    assert compiled(taeda.ones(2)).tolist() == [2, 2]
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    assert compiled(taeda.ones(2)).tolist() == [3, 3] and len(graphs) == 2


@pytest.mark.parametrize("now", [[5.0], (), {}, None, 7, {0: 1}])
def test_what_was_a_list_may_be_anything(monkeypatch, now) -> None:
    backend, graphs = counting()
    compiled = filtered(
        with_table, taeda.compiler.skip_guard_on_globals_unsafe, backend
    )
    assert compiled(taeda.ones(2)).tolist() == [3, 3]
    monkeypatch.setitem(globals(), "TABLE", now)
    assert compiled(taeda.ones(2)).tolist() == [3, 3] and len(graphs) == 1


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_no_guard_at_all(backend) -> None:
    compiled = filtered(
        lambda x, n: x * n, taeda.compiler.skip_all_guards_unsafe, backend
    )
    assert compiled(taeda.ones(2), 3).tolist() == [3, 3]
    # Another size, dtype and number: the graph is the first call's.
    assert compiled(taeda.ones(4), 5).tolist() == [3, 3, 3, 3]
    assert compiled(taeda.ones(2, 2).double(), 5).tolist() == [[3, 3], [3, 3]]
    assert compiled.explain()["graphs"] == 1


@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_no_guard_on_symbols(backend) -> None:
    def program(x):
        return x * 2 if x.shape[0] > 4 else x * x.shape[0]

    compiled = filtered(
        program, taeda.compiler.skip_all_guards_unsafe, backend, dynamic=True
    )
    assert compiled(taeda.ones(3)).tolist() == [3, 3, 3]
    assert compiled(taeda.ones(2)).tolist() == [2, 2]
    assert compiled(taeda.ones(6)).tolist() == [6] * 6
    assert compiled.explain()["graphs"] == 1
    # A symbol is read off a dim that has to be there.
    assert compiled(taeda.tensor(1.0).reshape(1, 1)).tolist() == [[1]]


def test_tensors_alone() -> None:
    keep = taeda.compiler.keep_tensor_guards_unsafe
    backend, graphs = counting()
    compiled = filtered(lambda x, n: x * n, keep, backend)
    assert compiled(taeda.ones(2), 3).tolist() == [3, 3]
    assert compiled(taeda.ones(2), 4).tolist() == [3, 3] and len(graphs) == 1
    assert compiled(taeda.ones(3), 4).tolist() == [4] * 3 and len(graphs) == 2


class Scaled(taeda.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = taeda.nn.Dropout(0.0)
        self.factor = 2.0

    def forward(self, x):
        return self.inner(x) * self.factor


def test_modules() -> None:
    library = taeda.compiler.skip_guard_on_inbuilt_nn_modules_unsafe
    every = taeda.compiler.skip_guard_on_all_nn_modules_unsafe
    for keep, after_factor in ((library, 2), (every, 1)):
        net = Scaled()
        backend, graphs = counting()
        compiled = filtered(net, keep, backend)
        assert compiled(taeda.ones(2)).tolist() == [2, 2]
        net.inner.p = 1.0
        assert compiled(taeda.ones(2)).tolist() == [2, 2] and len(graphs) == 1
        net.factor = 3.0
        compiled(taeda.ones(2))
        assert len(graphs) == after_factor


def test_parameters_are_still_the_modules() -> None:
    net = taeda.nn.Linear(2, 2)
    compiled = filtered(net, taeda.compiler.skip_all_guards_unsafe, "inductor")
    x = taeda.randn(3, 2)
    assert taeda.equal(compiled(x), net(x))
    with taeda.no_grad():
        net.weight = taeda.nn.Parameter(taeda.eye(2))
        net.bias = taeda.nn.Parameter(taeda.ones(2))
    assert taeda.allclose(compiled(x), x + 1)


def test_a_changed_container_is_changed_where_it_is_one() -> None:
    def program(x, seen):
        seen.append(x.shape[0])
        return x + 1

    compiled = filtered(program, taeda.compiler.skip_all_guards_unsafe, "eager")
    seen = []
    compiled(taeda.ones(2), seen)
    assert seen == [2]
    # What is no list cannot be written to as one: that is another capture.
    with pytest.raises(AttributeError, match="append"):
        compiled.__wrapped__(taeda.ones(2), ())


def test_what_a_filter_sees() -> None:
    seen = []

    def keep(entries):
        seen.extend(entries)
        return [True] * len(entries)

    net = Scaled()
    compiled = filtered(lambda x: net(x) + OTHER * SCALE, keep, "eager")
    compiled(taeda.ones(2))
    by_name = {(e.name, e.guard_type): e for e in seen}
    tensor = by_name["x", "TENSOR_MATCH"]
    assert tensor.has_value and isinstance(tensor.value, taeda.Tensor)
    assert not tensor.is_global and tensor.derived_guard_types == ()
    number = by_name["G['SCALE']", "CONSTANT_MATCH"]
    assert number.is_global and number.value == 2.0
    assert by_name["G['OTHER']", "TENSOR_MATCH"].value is OTHER
    factor = next(e for e in seen if e.name.endswith(".factor"))
    source = factor.orig_guard.source
    assert source.is_unspecialized_nn_module() and source.is_local()
    assert not source.is_unspecialized_builtin_nn_module()
    inner = next(e for e in seen if e.name.endswith("['inner']"))
    assert inner.orig_guard.source.is_unspecialized_builtin_nn_module()


@pytest.mark.parametrize(
    ("keep", "said"),
    [(lambda e: [], "expected 1 results"), (lambda e: [1], "expected bools, got 1")],
)
def test_a_filter_that_answers_something_else(keep, said) -> None:
    compiled = filtered(lambda x: x + 1, keep, "eager")
    for _ in range(2):
        with pytest.raises(AssertionError, match=said):
            compiled(taeda.ones(2))


def test_a_filter_that_raises() -> None:
    def keep(entries):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        filtered(lambda x: x + 1, keep, "inductor")(taeda.ones(2))


PROGRAMS = ("scaled", "with_table")


@pytest.fixture
def theirs():
    return importlib.import_module("torch")


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize(
    "keep",
    [
        "skip_guard_on_globals_unsafe",
        "skip_all_guards_unsafe",
        "keep_tensor_guards_unsafe",
        "skip_guard_on_all_nn_modules_unsafe",
    ],
)
def test_graphs_are_as_many_as_in_pytorch(theirs, name, keep) -> None:
    def counts(library):
        library._dynamo.reset()
        graphs = []

        def backend(gm, inputs):
            graphs.append(gm)
            return gm.forward

        # PyTorch caches by code, so that each library gets a function of its own.
        own = {"SCALE": 2.0, "TABLE": [1.0, 2.0], "__builtins__": builtins}
        made = type(scaled)(globals()[name].__code__, own)
        options = {"guard_filter_fn": getattr(library.compiler, keep)}
        compiled = library.compile(made, backend=backend, options=options)
        out = [compiled(library.ones(2)).tolist()]
        own.update(SCALE=5.0, TABLE=[3.0, 4.0, 5.0])
        out += [compiled(library.ones(2)).tolist(), len(graphs)]
        return [*out, compiled(library.ones(4)).tolist(), len(graphs)]

    assert counts(taeda) == counts(theirs)


def test_ranks_capture_together() -> None:
    answers = []
    guards = importlib.import_module("taeda.compiler._guards")
    backend, graphs = counting()
    compiled = taeda.compile(lambda x: x + 1, backend=backend)
    hook = guards._frames_module().set_guard_hook

    def ask(found):
        answers.append(found)
        return found and len(answers) != 2

    hook(ask)
    try:
        for _ in range(4):
            assert compiled(taeda.ones(2)).tolist() == [2, 2]
    finally:
        assert hook(None) is True
    # Not at the first call; the second time another rank has no graph.
    assert answers == [True, True, True] and len(graphs) == 2


def test_guard_collectives_without_ranks() -> None:
    setting = taeda.compiler.set_enable_guard_collectives
    assert setting(True) is False
    try:
        compiled = taeda.compile(lambda x: x + 1, backend="eager")
        assert compiled(taeda.ones(2)).tolist() == [2, 2]
        assert compiled(taeda.ones(2)).tolist() == [2, 2]
    finally:
        assert setting(False) is True


def test_the_decorator_takes_one_too(monkeypatch) -> None:
    keep = taeda.compiler.skip_guard_on_globals_unsafe
    compiled = taeda._dynamo.optimize("eager", guard_filter_fn=keep)(scaled)
    assert compiled(taeda.ones(2)).tolist() == [2, 2]
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    assert compiled(taeda.ones(2)).tolist() == [2, 2]


def test_variables_are_called_as_in_the_program() -> None:
    """As in PyTorch, by whose tests this one is made."""

    def keep(entries):
        return [not (e.name == "y" and e.value is None) for e in entries]

    def function(x, y):
        return x if y is None else x + y

    compiled = filtered(function, keep, "eager")
    compiled(taeda.ones(2), None)
    assert compiled(taeda.ones(2), taeda.ones(2)).tolist() == [1, 1]
