"""Backward passes in which some results of a graph have no gradient: no calls are made
for these, as in eager passes, where zeros in their place would give NaN."""

import gc
import itertools
import threading
import weakref

import pytest
import taeda
import taeda.nn.functional as F


@pytest.fixture(autouse=True)
def strict(monkeypatch):
    """What cannot be compiled raises here; elsewhere it would run as it is."""
    monkeypatch.setenv("TAEDA_COMPILE_STRICT", "1")


@pytest.fixture(autouse=True)
def double_precision():
    """A softmax's logarithm and a norm of short rows lose digits by what they are."""
    before = taeda.get_default_dtype()
    taeda.set_default_dtype(taeda.float64)
    yield
    taeda.set_default_dtype(before)


@pytest.fixture(params=["aot_eager", "inductor"])
def backend(request):
    return request.param


def gradients(function, inputs, which, calls=1):
    """Of the sum of the results `which`, for each input."""
    leaves = [x.detach().clone().requires_grad_() for x in inputs]
    for _ in range(calls):
        results = function(*leaves)
        sum(results[i].sum() for i in which).backward()
    return [x.grad for x in leaves]


def subsets(count):
    for size in range(1, count + 1):
        yield from itertools.combinations(range(count), size)


def same(a, b) -> bool:
    if a is None or b is None:
        return a is b
    return taeda.allclose(a, b, rtol=1e-9, atol=1e-11, equal_nan=True)


def compare(function, *inputs, backend):
    compiled = taeda.compile(function, backend=backend, fullgraph=True)
    for which in (*subsets(len(function(*inputs))), (0,)):
        want = gradients(function, inputs, which, calls=2)
        found = gradients(compiled, inputs, which, calls=2)
        assert all(map(same, found, want)), (which, found, want)


def test_behind_a_division_by_zero(backend):
    def f(x):
        return (x / x.detach()).sqrt(), x.sqrt(), x * 3

    compare(f, taeda.tensor([0.0, 4.0]), backend=backend)
    compiled = taeda.compile(f, backend=backend)
    (found,) = gradients(compiled, [taeda.tensor([0.0, 4.0])], [2])
    assert found.tolist() == [3.0, 3.0]


def test_results_of_one_call(backend):
    def f(x):
        low, high = x.aminmax(dim=0)
        left, middle, right = x.split(1, dim=1)
        return low.log(), high, left.exp(), middle * right

    compare(f, taeda.rand(4, 3) - 0.5, backend=backend)


def test_layers_with_several_results(backend):
    def f(x, w):
        y = F.layer_norm(x @ w, (4,))
        z = F.dropout(y, 0.0).softmax(-1)
        return y, z.log(), (z * w[0]).sum(), x.norm()

    compare(f, taeda.randn(3, 4), taeda.randn(4, 4), backend=backend)


def test_writes_to_inputs_that_get_a_gradient(backend):
    def f(x, y):
        y = y * 1
        x = x * 1
        x.mul_(y)
        return x.sqrt(), y * x.detach()

    compare(f, taeda.zeros(3), taeda.randn(3), backend=backend)


def test_more_sets_than_are_kept(backend):
    def f(x, y):
        return x * y, x.sin(), y.cos(), x + y, y.exp()

    compare(f, taeda.randn(3), taeda.randn(3), backend=backend)


def test_a_graph_is_kept_and_inputs_may_be_asked_for(backend):
    f = taeda.compile(lambda x, y: (x.sqrt() * y, x * y), backend=backend)
    x = taeda.zeros(3, requires_grad=True)
    y = taeda.ones(3, requires_grad=True)
    _, b = f(x, y)
    for _ in range(2):
        (found,) = taeda.autograd.grad(b.sum(), x, retain_graph=True)
        assert found.tolist() == [1.0] * 3
    (found,) = taeda.autograd.grad(b.sum(), y)
    assert found.tolist() == [0.0] * 3
    with pytest.raises(RuntimeError, match="second time"):
        taeda.autograd.grad(b.sum(), y)


def test_a_second_derivative_is_refused(backend):
    f = taeda.compile(lambda x: (x.exp(), x * x * x), backend=backend)
    x = taeda.randn(3, requires_grad=True)
    (found,) = taeda.autograd.grad(f(x)[1].sum(), x, create_graph=True)
    assert same(found.detach(), 3 * x.detach() ** 2)
    with pytest.raises(RuntimeError, match="does not currently support double backw"):
        taeda.autograd.grad(found.sum(), x)


def test_a_function_gets_what_it_gets_eagerly(backend):
    class Pair(taeda.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, a, b):
            return (a + 1) * 2 + (b + 1).exp()

    def f(x):
        a, b = Pair.apply(x)
        return a.sin(), b.sqrt()

    x = taeda.tensor([0.0, 1.0])
    compiled = taeda.compile(f, backend=backend)
    for which in subsets(2):
        want = gradients(f, [x], which)[0]
        assert same(gradients(compiled, [x], which)[0], want)


def test_threads_ask_for_different_gradients(backend):
    def f(x):
        return x.sqrt(), x * 3, x * x

    compiled = taeda.compile(f, backend=backend)
    x = taeda.tensor([0.0, 4.0])
    expected = {which: gradients(f, [x], which) for which in subsets(3)}
    gradients(compiled, [x], (0, 1, 2))
    wrong = []

    def work(all_sets):
        for which in all_sets:
            if not same(gradients(compiled, [x], which)[0], expected[which][0]):
                wrong.append(which)

    orders = [list(expected), list(expected)[::-1], list(expected)]
    threads = [threading.Thread(target=work, args=(order,)) for order in orders]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []


def test_a_trace_that_is_kept_holds_no_tensor(backend):
    compiled = taeda.compile(lambda x: (x.sin(), x.cos()), backend=backend)
    x = taeda.randn(3, requires_grad=True)
    results = compiled(x)
    results[0].sum().backward()
    seen = [weakref.ref(t) for t in (x, *results)]
    del x, results
    gc.collect()
    assert [r() for r in seen] == [None] * 3


def test_a_compiled_function_ends_with_its_trace(backend):
    class Owner:
        pass

    owner = Owner()
    compiled = taeda.compile(lambda x: (x.sin(), x.cos()), backend=backend)
    compiled.owner = owner
    compiled(taeda.randn(3, requires_grad=True))[1].sum().backward()
    seen = weakref.ref(owner)
    del owner, compiled
    gc.collect()
    assert seen() is None
