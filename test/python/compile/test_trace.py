"""Programs as forward and backward graphs: values, gradients and effects are those of
the eager program."""

import copy
import functools
import gc

import pytest
import taeda
import taeda.nn.functional as F
from taeda import nn


@pytest.fixture(autouse=True)
def strict(monkeypatch):
    """What cannot be compiled raises here; elsewhere it would run as it is."""
    monkeypatch.setenv("TAEDA_COMPILE_STRICT", "1")


@pytest.fixture(params=["aot_eager", "inductor"])
def backend(request):
    return request.param


def is_compiled(t) -> bool:
    return type(t.grad_fn).__name__ == "CompiledFunctionBackward" or (
        t.grad_fn is not None and t.grad_fn.name() == "CompiledFunctionBackward"
    )


def tensors(*shapes, grad=True):
    made = [taeda.randn(*shape) for shape in shapes]
    return [t.requires_grad_(grad) for t in made]


def copies(values):
    made = []
    for v in values:
        c = v.detach().clone()
        made.append(c.requires_grad_(v.requires_grad))
    return made


def close(a, b) -> bool:
    """Equal but for what fusion may change: rounding."""
    return a.dtype == b.dtype and taeda.allclose(a, b, rtol=1e-5, atol=1e-6)


def compare(function, *inputs, backend="aot_eager", calls=2):
    """Calls a function and its compiled form; results, gradients and what inputs
    hold afterwards must agree. Returns the last results of both."""
    compiled = taeda.compile(function, backend=backend, fullgraph=True)
    for _ in range(calls):
        mine, theirs = copies(inputs), copies(inputs)
        taeda.manual_seed(3)
        want = function(*mine)
        drawn = taeda.rand(2)
        taeda.manual_seed(3)
        got = compiled(*theirs)
        assert taeda.equal(drawn, taeda.rand(2))
        want_all = want if isinstance(want, tuple) else (want,)
        got_all = got if isinstance(got, tuple) else (got,)
        assert len(want_all) == len(got_all)
        for a, b in zip(want_all, got_all, strict=True):
            assert a.shape == b.shape and a.stride() == b.stride()
            assert close(a, b) and a.requires_grad == b.requires_grad
        for a, b in zip(mine, theirs, strict=True):
            assert close(a.detach(), b.detach())
        outs = [a for a in want_all if a.requires_grad]
        if outs:
            sum((a * a).sum() for a in outs).backward()
            sum((b * b).sum() for b in got_all if b.requires_grad).backward()
        for a, b in zip(mine, theirs, strict=True):
            assert (a.grad is None) == (b.grad is None)
            assert a.grad is None or close(a.grad, b.grad)
    return want, got


def test_pointwise_chains(backend):
    a, b = tensors((4, 5), (5,))
    _, got = compare(lambda a, b: (a * b).sin().exp() / 2, a, b, backend=backend)
    assert is_compiled(got)


def test_mlp(backend):
    def mlp(x, w1, b1, w2):
        h = F.gelu(F.linear(x, w1, b1))
        return F.linear(h, w2), h.mean()

    x, *ws = tensors((8, 16), (32, 16), (32,), (4, 32))
    compare(mlp, x.detach(), *ws, backend=backend)
    compare(mlp, x, *ws, backend=backend)


def test_softmax_and_layer_norm(backend):
    def f(x, w, b):
        return F.layer_norm(x, (6,), w, b).softmax(-1).log()

    compare(f, *tensors((3, 4, 6), (6,), (6,)), backend=backend)


def train(model, x, backend, seeds=(1, 2, 3), **options):
    """Three steps of a model and of its compiled copy, which must go the same way."""
    other = copy.deepcopy(model)
    compiled = taeda.compile(other, backend=backend)
    mine = taeda.optim.SGD(model.parameters(), lr=0.01)
    theirs = taeda.optim.SGD(other.parameters(), lr=0.01)
    for seed in seeds:
        for module, call, optimizer in (
            (model, model, mine),
            (other, compiled, theirs),
        ):
            taeda.manual_seed(seed)
            optimizer.zero_grad()
            out = call(x)
            out = out[0] if isinstance(out, tuple) else out
            (out * out).mean().backward()
            optimizer.step()
            module.last = out.detach()
        assert is_compiled(out)
        assert close(model.last, other.last)
    pairs = zip(model.parameters(), other.parameters(), strict=True)
    assert all(close(p.detach(), q.detach()) for p, q in pairs)
    pairs = zip(model.buffers(), other.buffers(), strict=True)
    assert all(close(p, q) for p, q in pairs)


def test_convolutions_with_statistics_and_dropout(backend):
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.3),
        nn.Linear(8 * 16, 5),
    )
    train(model, taeda.randn(4, 3, 8, 8), backend)


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(width)
        self.second = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x):
        return F.relu(x + self.second(F.relu(self.norm(self.first(x)))))


def test_residual_network(backend):
    model = nn.Sequential(nn.Conv2d(3, 6, 3), Residual(6), Residual(6))
    train(model, taeda.randn(2, 3, 9, 9), backend)


def test_lstm(backend):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = nn.LSTMCell(4, 6)
            self.out = nn.Linear(6, 2)

        def forward(self, x):
            h = c = taeda.zeros(x.shape[1], 6)
            for t in range(x.shape[0]):
                h, c = self.cell(x[t], (h, c))
            return self.out(h)

    train(Net(), taeda.randn(5, 3, 4), backend)
    train(nn.LSTM(4, 6, num_layers=2), taeda.randn(5, 3, 4), backend)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )
        self.drop = nn.Dropout(0.2)

    def forward(self, x):
        b, t, c = x.shape
        shape = (b, t, self.heads, c // self.heads)
        parts = self.qkv(self.ln1(x)).split(c, dim=2)
        q, k, v = [p.view(shape).transpose(1, 2) for p in parts]
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.drop(self.proj(y.transpose(1, 2).reshape(b, t, c)))
        return x + self.drop(self.mlp(self.ln2(x)))


def test_transformer_blocks_with_dropout(backend):
    train(nn.Sequential(Block(16, 2), Block(16, 2)), taeda.randn(2, 5, 16), backend)


def test_random_numbers_are_those_of_the_program(backend):
    def f(x):
        noise = taeda.randn(3, 4)
        taeda.rand(2)  # unread, but drawn
        return F.dropout(x, 0.5, True) * noise + taeda.rand_like(x)

    compare(f, *tensors((3, 4)), backend=backend)


# Writes ----------------------------------------------------------------------


def test_writes_to_what_the_program_made(backend):
    def f(x):
        y = x * 2
        y.add_(1)
        y[1:].mul_(3)
        y[:, 0] = 5
        return y.sin()

    compare(f, *tensors((3, 4)), backend=backend)


def test_writes_to_inputs(backend):
    def f(x, y):
        x.add_(y)
        y[0].zero_()
        return x * y

    compare(f, *tensors((3, 4), (3, 4), grad=False), backend=backend)


def test_writes_to_an_input_that_is_no_leaf(backend):
    def f(x, w):
        x.mul_(w)
        return x.exp()

    for compiled in (f, taeda.compile(f, backend=backend)):
        taeda.manual_seed(0)
        a, w = tensors((3,), (3,))
        x = a * 2
        y = compiled(x, w)
        (y + x).sum().backward()
        if compiled is f:
            want = (x.detach(), y.detach(), a.grad, w.grad)
    got = (x.detach(), y.detach(), a.grad, w.grad)
    assert all(close(p, q) for p, q in zip(want, got, strict=True))


def test_writes_without_gradients(backend):
    def step(p, g):
        with taeda.no_grad():
            p.add_(g, alpha=-0.1)
        return p * 2

    p, g = taeda.randn(3).requires_grad_(), taeda.randn(3)
    _, got = compare(step, p, g, backend=backend)
    assert got.requires_grad


def test_an_input_that_is_written_and_given_back_is_itself(backend):
    f = taeda.compile(lambda x: (x.add_(1), x.view(-1)), backend=backend)
    x = taeda.zeros(2, 2)
    same, view = f(x)
    assert same is x and view.data_ptr() == x.data_ptr()
    view[0] = 7
    assert x[0, 0] == 7 and x[1, 1] == 1


def test_inputs_that_share_memory_run_as_they_are(monkeypatch):
    monkeypatch.delenv("TAEDA_COMPILE_STRICT")
    f = taeda.compile(lambda x, y: (x.add_(1), y * 2)[1], backend="aot_eager")
    base = taeda.zeros(4)
    assert taeda.equal(f(base[:3], base[1:]), taeda.tensor([2.0, 2.0, 0.0]))
    # Nor does a graph that was made for others run.
    f = taeda.compile(lambda x, y: (x.add_(1), y * 2)[1], backend="aot_eager")
    f(taeda.zeros(3), taeda.zeros(3))
    base = taeda.zeros(4)
    assert taeda.equal(f(base[:3], base[1:]), taeda.tensor([2.0, 2.0, 0.0]))


# Results ---------------------------------------------------------------------


def test_results_that_are_views_of_each_other(backend):
    def f(x):
        y = x * 2
        return y, y.view(-1), y[0]

    compare(f, *tensors((2, 3)), backend=backend)
    x = taeda.ones(2, 3)
    y, flat, row = taeda.compile(f, backend=backend)(x)
    y[0, 0] = 9
    assert flat[0] == 9 and row[0] == 9


def test_equal_results_are_different_tensors(backend):
    f = taeda.compile(lambda x: (x + 1, x + 1, x.clone()), backend=backend)
    x = taeda.zeros(3)
    a, b, c = f(x)
    a.fill_(5)
    c.fill_(6)
    assert taeda.equal(b, taeda.ones(3)) and taeda.equal(x, taeda.zeros(3))


def test_views_of_inputs(backend):
    compare(lambda x: (x.t(), x[0] * 2), *tensors((2, 3)), backend=backend)


def test_results_without_gradients(backend):
    def f(x):
        return x.argmax(1), x.detach() * 2, (x > 0), x.sum()

    compare(f, *tensors((4, 5)), backend=backend)


def test_constants_and_no_results(backend):
    def f(x):
        scale = taeda.tensor([1.0, 2.0, 3.0])
        return x * scale, scale

    compare(f, *tensors((2, 3)), backend=backend)


def test_lists_of_tensors(backend):
    def f(x):
        a, b, c = x.chunk(3, dim=1)
        return taeda.stack([c, a]), taeda.cat([b, a], 1).unbind(0)[0]

    compare(f, *tensors((2, 6)), backend=backend)


def test_places_in_the_storage_of_an_input(backend):
    def f(x):
        return x.as_strided((2, 2), (1, 2), 1) * 2, x.as_strided((2,), (2,))

    compiled = taeda.compile(f, backend=backend)
    base = taeda.arange(12.0)
    for x in (base[4:], base[4:], base[2:10]):
        for a, b in zip(f(x), compiled(x), strict=True):
            assert taeda.equal(a, b)


def test_complex_numbers(backend):
    def f(x):
        z = taeda.view_as_complex(x)
        return taeda.view_as_real(z.conj() * z * 2j), z.abs()

    compare(f, *tensors((3, 2)), backend=backend)


def test_indexing(backend):
    def f(x, i):
        y = x[i]
        y = y.index_add(0, i, x[: i.shape[0]])
        return y.gather(1, taeda.zeros(i.shape[0], 1, dtype=taeda.long)), y

    compare(f, *tensors((4, 3)), taeda.tensor([2, 0, 1]), backend=backend)


def test_transposed_inputs_and_gradients(backend):
    w = taeda.randn(4, 3).t().requires_grad_()
    compare(lambda w: (w.t() @ w).sum(0).expand(5, 4), w, backend=backend)


def test_autocast(backend):
    def f(x, w):
        with taeda.autocast("cpu", dtype=taeda.bfloat16):
            return (x @ w).float() + (x @ w).sum().float()

    x, w = tensors((4, 4), (4, 4))
    compiled = taeda.compile(f, backend=backend)
    # A kernel keeps in float32 what calls round to bfloat16 between them.
    near = functools.partial(taeda.allclose, rtol=2e-2, atol=2e-2)
    assert near(compiled(x, w), f(x, w))
    want = taeda.autograd.grad(f(x, w).sum(), (x, w))
    got = taeda.autograd.grad(compiled(x, w).sum(), (x, w))
    assert all(map(near, want, got))


# Autograd --------------------------------------------------------------------


def test_a_graph_is_kept_when_asked(backend):
    f = taeda.compile(lambda x: x.sin() * x, backend=backend)
    (x,) = tensors((3,))
    y = f(x).sum()
    y.backward(retain_graph=True)
    first = x.grad.clone()
    y.backward()
    assert taeda.equal(x.grad, 2 * first)
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.backward()


def test_what_was_saved_may_not_change(backend):
    f = taeda.compile(lambda x, w: x @ w, backend=backend)
    x, w = tensors((3, 3), (3, 3))
    y = f(x, w)
    with taeda.no_grad():
        w.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_double_backward_is_refused(backend):
    f = taeda.compile(lambda x: (x * x * x).sum(), backend=backend)
    (x,) = tensors((3,))
    (g,) = taeda.autograd.grad(f(x), x, create_graph=True)
    assert close(g.detach(), 3 * x.detach() ** 2)
    with pytest.raises(RuntimeError, match="does not currently support double backw"):
        taeda.autograd.grad(g.sum(), x)


def test_unused_results_and_inputs(backend):
    f = taeda.compile(lambda x, y, z: (x * 2, y * 3, z.detach()), backend=backend)
    x, y, z = tensors((3,), (3,), (3,))
    a, _, _ = f(x, y, z)
    a.sum().backward()
    assert taeda.equal(x.grad, taeda.full((3,), 2.0))
    assert z.grad is None


def test_inputs_that_no_gradient_reaches(backend):
    def f(x, y):
        x[0] = 2
        return y.sin(), x * y.detach()

    for compiled in (f, taeda.compile(f, backend=backend)):
        x, y = tensors((3,), (3,))
        a, _ = compiled(x.clone(), y)
        a.sum().backward()
        assert x.grad is None and close(y.grad, y.detach().cos())


def test_detached_results_share_memory(backend):
    def f(x):
        y = x * 2
        return y, y.detach(), x.detach()

    compare(f, *tensors((3,)), backend=backend)
    (x,) = tensors((3,))
    y, other, same = taeda.compile(f, backend=backend)(x)
    assert y.data_ptr() == other.data_ptr() and same.data_ptr() == x.data_ptr()
    assert not other.requires_grad and not same.requires_grad


def test_later_writes_matter_as_they_do_eagerly(backend):
    # What only a cheaper way to the saved value would read may be written to.
    def f(x):
        return (F.pad(x, (1, 0)).abs() + 1).log().mean()

    (leaf,) = tensors((3, 3))
    x = leaf * 1
    y = taeda.compile(f, backend=backend)(x)
    x.zero_()
    y.backward()
    (want,) = taeda.autograd.grad(f(leaf), leaf)
    assert close(leaf.grad, want)


def test_what_was_saved_for_a_gradient_that_does_not_arrive_may_change(backend):
    f = taeda.compile(lambda x, y: (x.exp(), y.exp()), backend=backend)
    x, y = tensors((3,), (3,))
    a, b = f(x, y)
    b.clamp_(max=-1.5)
    a.sum().backward()
    assert close(x.grad, x.detach().exp()) and y.grad is None


def test_hooks_of_inputs_and_results(backend):
    f = taeda.compile(lambda x: x.sin(), backend=backend)
    (x,) = tensors((3,))
    seen = []
    x.register_hook(lambda g: seen.append("x") or g * 2)
    y = f(x)
    y.register_hook(lambda g: seen.append("y") or g * 3)
    y.sum().backward()
    assert seen == ["y", "x"] and close(x.grad, 6 * x.detach().cos())


def test_gradient_modes_have_graphs_of_their_own(backend):
    f = taeda.compile(lambda x: x * 2, backend=backend)
    (x,) = tensors((3,))
    assert f(x).requires_grad
    with taeda.no_grad():
        assert not f(x).requires_grad
    with taeda.inference_mode():
        assert f(x).is_inference()
    assert f(x).requires_grad


def test_nothing_is_kept_alive(backend):
    f = taeda.compile(lambda x: x.sin() * x.cos(), backend=backend)
    f(taeda.ones(2, requires_grad=True))
    gc.collect()
    (x,) = tensors((3,))
    import weakref

    y = f(x)
    seen = weakref.ref(y)
    del y
    assert seen() is None


def test_tensors_of_saved_hooks(backend):
    f = taeda.compile(lambda x, w: (x @ w).relu(), backend=backend)
    x, w = tensors((3, 3), (3, 3))
    packed = []
    with taeda.autograd.graph.saved_tensors_hooks(
        lambda t: packed.append(t) or t.clone(), lambda t: t
    ):
        y = f(x, w)
    assert packed
    y.sum().backward()
    assert x.grad is not None


# Borders ---------------------------------------------------------------------


def test_what_depends_on_values_is_refused_clearly():
    from taeda import _compiler

    def refuse(error):
        raise error

    f = _compiler.compile(lambda x: x * x.sum().item(), refuse)
    with pytest.raises(RuntimeError, match="item.*meta"):
        f(taeda.ones(2))


def test_a_program_that_cannot_be_compiled_runs(monkeypatch, caplog):
    monkeypatch.delenv("TAEDA_COMPILE_STRICT")
    f = taeda.compile(lambda x: x.resize_(2).mul_(2), backend="aot_eager")
    with caplog.at_level("INFO", logger="taeda.compiler"):
        x = taeda.ones(3)
        f(x)
        f(x)
    assert taeda.equal(x, taeda.full((2,), 4.0))
    assert len([r for r in caplog.records if "as it was captured" in r.message]) == 1


def test_threads_share_a_graph(backend):
    import threading

    f = taeda.compile(lambda x, w: (x @ w).relu().sum(1), backend=backend)
    x, w = taeda.randn(16, 16), taeda.randn(16, 16)
    want = f(x, w)
    failures = []

    def work():
        for _ in range(50):
            # Kernels, which take over meanwhile, round otherwise than calls.
            if not taeda.allclose(f(x, w), want, rtol=1e-5, atol=1e-5):
                failures.append(1)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


def test_what_is_cheap_is_computed_again_where_it_is_first_read() -> None:
    def f(x, w):
        return (F.gelu(x) @ w).square().sum(), x.sin().exp().sum()

    def refused(error):
        raise error

    from taeda import _compiler

    compiled = _compiler.compile(f, refused, recompute=True, fuse=False, blocking=False)
    x, w = tensors((4, 8, 16), (16, 8))
    compiled(x, w)
    ((forward, backward),) = compiled.graphs()
    assert "aten::gelu(" in forward
    # A view of it, the transposed view of that, and the product.
    again = backward.partition("aten::gelu(")[2].splitlines()[1:4]
    assert "aten::mm(" in again[-1], backward
    assert "aten::sin(" in backward
