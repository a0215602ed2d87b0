"""Graphs over symbols: one trace and one set of kernels for all sizes."""

from __future__ import annotations

import threading

import pytest
import taeda
from taeda import nn
from taeda.compiler import _default
from taeda.nn import functional as F

SIZES = (4, 2, 3, 7, 64, 1, 0, 5)
CHECKED = {"check": True}  # each kernel is held to its calls


@pytest.fixture
def graphs(monkeypatch):
    """What was compiled, as a function that gives (versions, regions) of each."""
    made = []
    compile_graph = _default._compiler.compile

    class Watched:
        @staticmethod
        def compile(*args, **settings):
            made.append(compile_graph(*args, **settings))
            return made[-1]

    def told():
        texts = [graph.graphs() for graph in made]
        return [
            (len(t), sum(text.count("region(") for pair in t for text in pair if text))
            for t in texts
        ]

    monkeypatch.setattr(_default, "_compiler", Watched)
    return told


def chain(x):
    return (x * 2 + 1).tanh() * x


def rows(x):
    return F.softmax(x * 2, -1) + 1, (x + 1).mean(0), x.sum(-1) * 2


def norms(x):
    return F.layer_norm(x * 1.5, (12,)) * 2, F.group_norm(x.view(-1, 4, 3), 2) + 1


def products(x):
    scores = x @ x.t() / 3
    return scores.softmax(-1) @ x, F.linear(x, x) + 1


def heads(x):
    split = x.view(x.shape[0], 3, 4).transpose(0, 1)
    return F.scaled_dot_product_attention(split, split, split) * 2


def reshaped(x):
    y = (x.reshape(-1) * 2 + 1).view(x.shape[0] * 3, 4)
    return y.sum(1) * 3, x.t().reshape(-1) + 1, x.unsqueeze(1).expand(-1, 2, 12) * 2


def parts(x):
    a, b, c = x.chunk(3, -1)
    return (a * b + c).tanh(), x[: x.shape[0] // 2] * 2 + 1, taeda.cat([x, x * 2]) * 3


def numbers(x):
    """Sizes as scalars, in results and among sizes."""
    made = taeda.arange(x.shape[0]).unsqueeze(1) * 1.0
    return x.sum(0) / max(x.shape[0], 1), x * x.shape[0] + made, x.numel() // 2


def shown(x):
    """Results that are views: of inputs, of each other."""
    y = x * 2
    return y.view(-1), y, x.view(-1), (x.sum(0) * 2).expand(x.shape[0], 12)


PROGRAMS = [chain, rows, norms, products, heads, reshaped, parts, numbers, shown]


def outcome(function, x) -> list:
    results = function(x)
    results = list(results) if isinstance(results, tuple) else [results]
    loss = [r.cos().sum() for r in results if taeda.is_tensor(r) and r.requires_grad]
    if not loss:
        return results
    return [*results, taeda.autograd.grad(sum(loss), x)[0]]


def near(ours, theirs) -> None:
    taeda.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5, equal_nan=True)


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("program", PROGRAMS)
def test_one_graph_gives_what_is_given_eagerly(program, grad, graphs) -> None:
    compiled = taeda.compile(program, dynamic=True, options=CHECKED)
    for n in SIZES:
        x = taeda.randn(n, 12, requires_grad=grad)
        for ours, theirs in zip(outcome(compiled, x), outcome(program, x), strict=True):
            if not taeda.is_tensor(ours):
                assert type(ours) is int and ours == theirs
                continue
            assert ours.shape == theirs.shape
            near(ours, theirs)
    # Graphs of 0 and 1 are others.
    assert all(versions == 1 for versions, _ in graphs())
    assert len(graphs()) <= 4


def test_a_training_step_is_compiled_twice_for_30_batches(graphs) -> None:
    net = nn.Sequential(
        *(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 5))
    )

    def step(x, y):
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        return loss

    def results(function, given):
        net.zero_grad()
        return [function(*given).detach(), *(p.grad for p in net.parameters())]

    compiled = taeda.compile(step, options=CHECKED)
    for n in range(2, 32):
        given = taeda.randn(n, 8), taeda.randint(0, 5, (n,))
        ours, theirs = results(compiled, given), results(step, given)
        near(ours, theirs)
    # For the first batch, and for all others.
    assert [versions for versions, _ in graphs()] == [1, 1]
    assert all(regions > 0 for _, regions in graphs())


def test_kernels_are_shared_between_programs_of_other_symbols(
    tmp_path, monkeypatch
) -> None:
    monkeypatch.setenv("TAEDA_CACHE_DIR", str(tmp_path))
    for shape in ((6, 8), (10, 4), (3, 90)):
        compiled = taeda.compile(chain, dynamic=True, options={"blocking": True})
        compiled(taeda.randn(shape))
        taeda._dynamo.reset()
    assert len(list(tmp_path.rglob("*.so"))) == 1


def test_numbers_are_arguments_of_kernels(graphs) -> None:
    def scaled(x, n: int):
        return (x * n + 1) / n

    compiled = taeda.compile(scaled, dynamic=True, options=CHECKED)
    for n in (2, 3, -4, 1000, 7):
        x = taeda.randn(5, 6)
        taeda.testing.assert_close(compiled(x, n), scaled(x, n))
    assert [regions for _, regions in graphs()] == [1]


def test_a_number_that_the_trace_fixes_has_a_graph_of_its_own(graphs) -> None:
    def divided(x, n: int):
        x = x * 1
        x[0] = n / 4
        return x + 1

    compiled = taeda.compile(divided, dynamic=True, options=CHECKED)
    for n in (3, 5, 3, 9):
        x = taeda.zeros(3)
        assert taeda.equal(compiled(x, n), divided(x, n))
    assert graphs()[0][0] == 3


def test_a_tangent_that_does_not_arrive() -> None:
    def two(x):
        return x.exp() * 2, x.sin() * 3

    compiled = taeda.compile(two, dynamic=True, options=CHECKED)
    for n in (3, 5, 9):
        for chosen in (0, 1):
            x = taeda.randn(n, 4, requires_grad=True)
            ours = taeda.autograd.grad(compiled(x)[chosen].sum(), x)[0]
            theirs = taeda.autograd.grad(two(x)[chosen].sum(), x)[0]
            taeda.testing.assert_close(ours, theirs)


def test_inputs_are_written_at_all_sizes() -> None:
    def written(x, y):
        x.mul_(2).add_(y)
        return x.sum(-1)

    compiled = taeda.compile(written, dynamic=True, options={"blocking": True})
    for n in (4, 2, 7, 64):
        x, y = taeda.randn(n, 6), taeda.randn(n, 6)
        other = x.clone()
        taeda.testing.assert_close(compiled(x, y), written(other, y))
        taeda.testing.assert_close(x, other)


@pytest.mark.parametrize("dtype", [taeda.bfloat16, taeda.float64, taeda.int64])
def test_other_dtypes(dtype) -> None:
    def both(x):
        return (x * 3 + 1).amax(-1), (x * 2 - x).sum(0)

    compiled = taeda.compile(both, dynamic=True, options=CHECKED)
    for n in (4, 3, 100):
        x = (taeda.randn(n, 65) * 4).to(dtype)
        taeda.testing.assert_close(compiled(x), both(x))


def test_strides_that_are_no_products_of_sizes() -> None:
    compiled = taeda.compile(rows, dynamic=True, options=CHECKED)
    for n in (4, 6, 9):
        wide = taeda.randn(n, n + 20)
        for x in (wide[:, :12], wide.t()[:12].t(), wide[:, 1:13]):
            taeda.testing.assert_close(compiled(x), rows(x))


def test_long_rows_go_by_pieces_and_to_the_calls() -> None:
    compiled = taeda.compile(rows, dynamic=True, options={"blocking": True})
    for length in (30, 5000, 9001, 100_000):
        x = taeda.randn(2, length)
        taeda.testing.assert_close(compiled(x), rows(x), rtol=1e-4, atol=1e-4)


def test_threads_share_a_graph_at_other_sizes() -> None:
    compiled = taeda.compile(rows, dynamic=True, options={"blocking": True})
    compiled(taeda.randn(4, 12))
    failures = []

    def work(n: int) -> None:
        x = taeda.randn(n, 12, requires_grad=True)
        want = outcome(rows, x)
        for _ in range(30):
            found = outcome(compiled, x)
            failures.extend(
                n
                for a, b in zip(found, want, strict=True)
                if not taeda.allclose(a, b, rtol=1e-4, atol=1e-5)
            )

    threads = [threading.Thread(target=work, args=(n,)) for n in (2, 5, 33)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_checks_of_elements() -> None:
    def loss(x, var):
        return F.gaussian_nll_loss(x, x * 2, var)

    compiled = taeda.compile(loss, dynamic=True, options=CHECKED)
    for n in (4, 2, 7):
        x, var = taeda.randn(n, 3), taeda.rand(n, 3)
        near(compiled(x, var), loss(x, var))
        with pytest.raises(ValueError, match="negative"):
            compiled(x, -var)


def test_gradients_are_cleared_at_all_sizes() -> None:
    net = nn.Linear(4, 4)
    optimizer = taeda.optim.SGD(net.parameters(), lr=0.0)

    def step(x):
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        return loss.detach(), net.weight.grad.clone()

    compiled = taeda.compile(step, options={"blocking": True})
    for n in (4, 2, 7, 9, 3):
        x = taeda.randn(n, 4)
        taeda.testing.assert_close(compiled(x), step(x))


def test_a_symbolic_trace_that_fails_leaves_one_with_numbers(monkeypatch) -> None:
    """An operator that refuses symbols is traced with the numbers of each call."""
    monkeypatch.setenv("TAEDA_COMPILE_STRICT", "1")
    seen = []

    def refusing(x, n):
        seen.append(type(n))
        if isinstance(n, taeda.SymInt):
            raise NotImplementedError("a symbol")
        return x * n

    env = taeda.fx.experimental.symbolic_shapes.ShapeEnv()
    n = env.create_size(3, "n", "marked")
    compiled = _default.compile_function(refusing, None, fuse=False, symbols=[None, n])
    x = taeda.ones(2)
    assert compiled(x, 3).tolist() == [3, 3]
    assert compiled(x, 4).tolist() == [4, 4]
    assert compiled(x, 3).tolist() == [3, 3]
    assert seen == [taeda.SymInt, int, taeda.SymInt, int]


def test_kernels_over_symbols_are_looked_at(monkeypatch):
    made = []
    monkeypatch.setattr(_default, "wanted", lambda name: True)
    monkeypatch.setattr(_default, "_show", made.append)
    x = taeda.randn(5, 4)
    taeda.compile(chain, dynamic=True)(x)
    ((region,),) = made[-1].regions()
    assert region.inputs == [("float32", [5, 4], [4, 1])]
    (result,) = region.run([x])
    assert taeda.equal(result, chain(x))
    with pytest.raises(NotImplementedError, match="symbols"):
        region.cuda()
