"""Under `fullgraph=True` nothing runs as it is written unless the program asks for it.

Each way in which a compiled function is left to CPython, or a graph to its calls, is an
error there that names the cause, or is told. Note [Errors of graphs] in driver.cpp.
"""

from __future__ import annotations

import functools
import itertools

import pytest
import taeda
from taeda import nn
from taeda._dynamo.exc import (
    BackendCompilerFailed,
    TorchRuntimeError,
    Unsupported,
)
from taeda._dynamo.utils import counters
from taeda.compiler import _default

BACKENDS = ["eager", "aot_eager", "inductor"]


@pytest.fixture(autouse=True)
def forgets():
    taeda.compiler.reset()
    counters.clear()
    yield
    taeda.compiler.reset()


def whole(function, backend="eager"):
    return taeda.compile(function, fullgraph=True, backend=backend)


def fails(x):
    y = x + 1
    return y, {}["key"]


def test_what_is_raised_while_a_graph_is_captured_is_an_error() -> None:
    compiled = whole(fails)
    for _ in range(2):
        with pytest.raises(Unsupported, match=r"raised KeyError\('key'\)") as told:
            compiled(taeda.ones(1))
        assert isinstance(told.value.__cause__, KeyError)
        assert 'return y, {}["key"]' in str(told.value)
        assert f"line {fails.__code__.co_firstlineno + 2}, in fails" in str(told.value)
    with pytest.raises(KeyError):
        taeda.compile(fails, backend="eager")(taeda.ones(1))


def test_what_is_not_implemented_says_so_itself() -> None:
    def missing(x):
        raise NotImplementedError("fold_space: not implemented")

    for _ in range(2):
        with pytest.raises(NotImplementedError, match="fold_space"):
            whole(missing)(taeda.ones(1))


def test_the_end_of_the_process_is_no_error_of_a_graph() -> None:
    def ends(x):
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        whole(ends)(taeda.ones(1))


def test_guards_that_fail_at_once() -> None:
    count = itertools.count()

    @functools.lru_cache(maxsize=0)
    def turn():
        return next(count)

    compiled = whole(lambda x: x + turn())
    for _ in range(10):  # more often than recompile_limit
        with pytest.raises(Unsupported, match="guards fail at once"):
            compiled(taeda.ones(1))


def test_generators_and_arguments_that_do_not_fit() -> None:
    def rows(x):
        yield x + 1

    with pytest.raises(Unsupported, match="a generator or coroutine is no graph"):
        whole(rows)(taeda.ones(1))
    with pytest.raises(TypeError, match="takes 1 positional argument but 2"):
        whole(fails)(1, 2)


@pytest.mark.parametrize("stance", ["force_eager", "eager_on_recompile"])
def test_a_stance_that_asks_for_eager_gets_it(stance: str) -> None:
    compiled = whole(lambda x: x + 1)
    with taeda.compiler.set_stance(stance):
        assert compiled(taeda.ones(1)).tolist() == [2]
    assert counters["stats"]["unique_graphs"] == 0


@taeda.compiler.allow_in_graph
def reads(x):
    """What stand-ins let through, and traces of operators do not."""
    return x * 2 if x.is_meta or bool(x.sum() > 0) else x


@pytest.mark.parametrize("backend", BACKENDS[1:])
@pytest.mark.parametrize("dynamic", [False, True])
def test_a_graph_that_no_backend_can_trace(backend: str, dynamic, caplog) -> None:
    def program(x):
        return reads(x).reshape(x.shape[0], -1)

    settings = {"backend": backend, "dynamic": dynamic}
    compiled = taeda.compile(program, fullgraph=True, **settings)
    for _ in range(2):
        with pytest.raises(BackendCompilerFailed, match=backend) as told:
            compiled(taeda.ones(2, 2))
        assert told.value.__cause__ is told.value.inner_exception
    taeda.compiler.reset()
    found = taeda.compile(program, **settings)(taeda.ones(2, 2))
    assert found.tolist() == [[2, 2], [2, 2]]
    assert "a graph runs as it was captured" in caplog.text


def test_more_kinds_of_inputs_than_there_are_versions(caplog) -> None:
    def call(fullgraph: bool):
        made = _default.compile_function(
            taeda.neg, [taeda.ones(1)], fuse=False, fullgraph=fullgraph
        )
        return [made(taeda.ones(n)).sum().item() for n in range(1, 19)]

    with pytest.raises(BackendCompilerFailed, match="more than 16 kinds of inputs"):
        call(fullgraph=True)
    assert call(fullgraph=False) == [-n for n in range(1, 19)]
    assert caplog.text.count("more than 16 kinds of inputs") == 1


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (lambda x: x.nonzero() + 1, "sizes follow from the elements of tensors"),
        (lambda x: x * x.sum().item(), "it reads elements of tensors"),
        (lambda x: taeda.from_numpy(x.numpy() + 1), "it reads elements of tensors"),
    ],
)
def test_what_no_graph_of_operators_holds_is_told(program, reason, caplog) -> None:
    x = taeda.tensor([0.0, 3.0, 4.0])
    assert taeda.equal(whole(program, "inductor")(x), program(x))
    assert "a graph runs as it was captured, call by call" in caplog.text
    assert reason in caplog.text


def test_a_graph_that_raises_where_the_program_does_not(caplog) -> None:
    class Broken:
        repeatable = True

        def __call__(self, *given):
            raise ArithmeticError("of the graph")

    compiled = whole(lambda x: x + 1, lambda gm, inputs: Broken())
    assert compiled(taeda.ones(1)).tolist() == [2]
    assert "raised ArithmeticError('of the graph')" in caplog.text


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("backend", BACKENDS)
def test_elements_are_checked_by_graphs(backend: str, dynamic: bool) -> None:
    def loss(x, y, variance):
        return nn.functional.gaussian_nll_loss(x * 2, y, variance)

    settings = {"fullgraph": True, "backend": backend, "dynamic": dynamic}
    compiled = taeda.compile(loss, **settings)
    for n in (3, 4):
        x, y = taeda.randn(n, 4, requires_grad=True), taeda.randn(n, 4)
        variance = taeda.rand(n, 4).requires_grad_()
        leaves = [x, variance]
        found = compiled(x, y, variance)
        expected = loss(x, y, variance)
        assert found.item() == pytest.approx(expected.item(), rel=1e-5)
        for a, b in zip(
            taeda.autograd.grad(found, leaves),
            taeda.autograd.grad(expected, leaves),
            strict=True,
        ):
            assert taeda.allclose(a, b, rtol=1e-4)
        with pytest.raises(ValueError, match="var has negative"):
            compiled(x, y, variance - 1)
    # Not in this file: pytest makes an `assert` something else.
    told: dict = {}
    exec("def positive(x):\n    assert x.sum() > 0\n    return x * 2", told)
    asserting = taeda.compile(told["positive"], **settings)
    assert asserting(taeda.ones(2)).tolist() == [2, 2]
    with pytest.raises(AssertionError):
        asserting(-taeda.ones(2))


def density(x, scale):
    found = taeda.distributions.Normal(x, scale)
    return found.log_prob(x + 1), taeda.distributions.Gamma(scale, scale).entropy()


@pytest.mark.parametrize("backend", BACKENDS)
def test_distributions_check_nothing_in_a_graph(backend: str) -> None:
    x, scale = taeda.randn(3), taeda.rand(3) + 1
    for got, wanted in zip(
        whole(density, backend)(x, scale), density(x, scale), strict=True
    ):
        assert taeda.allclose(got, wanted, rtol=1e-5)
    assert whole(density, backend)(x, -scale)[0].isnan().all()
    with pytest.raises(ValueError, match="constraint"):
        density(x, -scale)

    def asks(x):
        return taeda.distributions.Exponential(x, validate_args=True).mean

    with pytest.raises(Unsupported):
        whole(asks, backend)(x.abs() + 1)
    assert taeda.compile(asks, backend=backend)(x * 0 + 2).tolist() == [0.5] * 3


def held(a, b):
    a, b = a.sum(), b.sum()
    return max(a, b), min(a, b, 7), max(0, min(1, b)), max([2, a, 3, b])


@pytest.mark.parametrize("dynamic", [None, True])
def test_extrema_of_single_elements_are_in_the_graph(dynamic) -> None:
    compiled = taeda.compile(held, fullgraph=True, backend="eager", dynamic=dynamic)
    for a, b in ((1.0, 2.0), (2.0, 1.0), (-9.0, -8.0), (5.0, 5.0)):
        args = taeda.tensor([a, 0]), taeda.tensor([b, 0])
        assert [float(v) for v in compiled(*args)] == [float(v) for v in held(*args)]
    with pytest.raises(Unsupported):  # neither is larger
        whole(lambda x: max(x, 0))(taeda.ones(2))
    assert whole(lambda x: max([1, 2], key=lambda n: -n) * x)(taeda.ones(1)) == 1


def test_an_error_of_a_call_is_a_runtime_error_of_the_program() -> None:
    with pytest.raises(TorchRuntimeError, match="shape") as caught:
        whole(lambda x: x.view(7))(taeda.ones(2))
    assert isinstance(caught.value, Unsupported)
    assert isinstance(caught.value.__cause__, RuntimeError)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("wrapped", [False, True])
def test_classes_of_one_hot_are_checked_in_a_graph(backend: str, wrapped: bool) -> None:
    one_hot = nn.functional.one_hot
    compiled = whole((lambda x, n: one_hot(x, n) + 0) if wrapped else one_hot, backend)
    assert compiled(taeda.tensor([0, 2]), 3).tolist() == [[1, 0, 0], [0, 0, 1]]
    for wrong in ([0, 3], [-1, 0]):
        with pytest.raises(RuntimeError, match="Class values must be"):
            compiled(taeda.tensor(wrong), 3)


def makes_a_leaf(x):
    leaf = taeda.ones(2, requires_grad=True)
    return leaf, leaf * 2 + x


def exchanges(x, y):
    x.data = y
    y.data = taeda.zeros([0])
    return x, x.detach() + 1


def through(name: str):
    """The backend as one that a program's own hands graphs on to."""
    return lambda module, inputs: taeda._dynamo.lookup_backend(name)(module, inputs)


@pytest.mark.parametrize("handed_on", [False, True])
@pytest.mark.parametrize("backend", BACKENDS)
def test_leaves_and_data_of_a_graph_are_the_program_s(backend, handed_on) -> None:
    chosen = through(backend) if handed_on else backend
    leaf, out = whole(makes_a_leaf, chosen)(taeda.ones(2))
    out.sum().backward()
    assert leaf.grad.tolist() == [2.0, 2.0]
    x, y = taeda.ones(3, requires_grad=True), taeda.ones(5, requires_grad=True)
    found, more = whole(exchanges, chosen)(x, y)
    assert found is x and x.shape == more.shape == (5,) and y.shape == (0,)


@pytest.mark.parametrize("backend", BACKENDS)
def test_lists_of_tensors_take_a_number_of_a_tensor(backend: str) -> None:
    def added(x, scale):
        return taeda._foreach_add([x], 1 - scale)

    x, scale = taeda.ones(2), taeda.tensor(0.25, dtype=taeda.float64)
    assert whole(added, backend)(x, scale)[0].tolist() == [1.75, 1.75]


def test_a_function_may_compile_another_one() -> None:
    def double(x):
        return x * 2

    def outer(x):
        again = taeda.compile(fullgraph=True)(double)
        return taeda.compile(double, backend="eager")(again(x))

    assert whole(outer)(taeda.ones(1)).item() == 4
