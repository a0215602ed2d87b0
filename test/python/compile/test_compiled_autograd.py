"""Backward passes that are captured whole give the gradients of eager ones."""

import gc
import logging
import subprocess
import sys
import threading
import weakref

import pytest
import taeda
import taeda.autograd.graph
from backward_programs import (
    WAYS,
    as_it_is,
    captures,
    compare,
    grads_of,
    graphs,
    leaf,
)
from taeda import nn
from taeda._dynamo import compiled_autograd, config
from taeda._dynamo.utils import counters
from taeda.utils.checkpoint import checkpoint


@pytest.fixture(autouse=True)
def forgotten():
    """Nothing is known from other tests."""
    compiled_autograd.reset()
    counters.clear()
    yield
    compiled_autograd.reset()


@pytest.fixture(params=WAYS)
def way(request):
    """How graphs are compiled, as arguments of `_enable`."""
    return WAYS[request.param]


# What happens on the way --------------------------------------------------------


def test_hooks_of_tensors(way):
    calls = []

    def passes(i):
        x, w = leaf(3, 4), leaf(4)
        y = x * w
        y.register_hook(lambda g: g * 2)
        y.register_hook(lambda g: calls.append(float(g.sum())))
        x.register_hook(lambda g: -g)
        y.sin().sum().backward()
        return [*grads_of(x, w), calls.pop()]

    compare(passes, way)
    assert captures() == 1 and calls == []


def test_a_hook_that_does_something_else_is_heeded(way):
    state = {"factor": 1.0, "none": False}

    def passes(i):
        state.update(factor=i, none=i == 2)
        x = leaf(3)
        y = x.sin()
        y.register_hook(lambda g: None if state["none"] else g * state["factor"])
        (y * y).sum().backward()
        return grads_of(x)

    compare(passes, way, times=5)


def test_hooks_behind_accumulation_see_the_grad(way):
    def passes(i):
        x, w, seen = leaf(3, 4), leaf(4), []

        def update(p):
            seen.append(p.grad.clone())
            with taeda.no_grad():
                p -= 0.1 * p.grad
            p.grad = None

        w.register_post_accumulate_grad_hook(update)
        (x * w).tanh().sum().backward()
        return [*grads_of(x, w), w.detach().clone(), seen]

    compare(passes, way)


def test_hooks_of_nodes(way):
    def passes(i):
        x, w, seen = leaf(3, 4), leaf(4), []
        y = (x * w).sin()
        y.grad_fn.register_prehook(lambda grads: (grads[0] * 2,))
        y.grad_fn.register_hook(lambda inputs, outputs: seen.append(outputs[0].clone()))
        accumulator = (w * 1).grad_fn.next_functions[0][0]
        accumulator.register_hook(lambda inputs, outputs: seen.append("accumulated"))
        y.sum().backward()
        return [*grads_of(x, w), seen]

    compare(passes, way)


class Scaled(taeda.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b, a + 1

    @staticmethod
    def backward(ctx, grad, other):
        a, b = ctx.saved_tensors
        return grad * b + other, None


def test_functions_of_python_are_called(way):
    def passes(i):
        x, w = leaf(3, 4), leaf(4)
        product, other = Scaled.apply(x.sin(), w.exp().expand(3, 4))
        (product.cos() + other).sum().backward()
        return grads_of(x, w)

    compare(passes, way)
    assert captures() == 1


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints(reentrant, way):
    def passes(i):
        model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4))
        x = leaf(5, 4)
        y = checkpoint(model, x, use_reentrant=reentrant) + x
        y.square().sum().backward()
        return grads_of(x, *model.parameters())

    compare(passes, way)


def test_hooks_of_saved_tensors_run_once_each(way):
    def passes(i):
        order = []

        def unpack(packed):
            order.append(packed[0])
            return packed[1]

        with taeda.autograd.graph.saved_tensors_hooks(
            lambda t: (tuple(t.shape), t), unpack
        ):
            x = leaf(3, 4)
            y = (x.sin() * x).sum(0).exp()
        y.sum().backward()
        return [*grads_of(x), order]

    compare(passes, way)


def test_grads_of_some_inputs(way):
    def passes(i):
        x, w, z = leaf(3, 4), leaf(4), leaf(2)
        y = (x * w).sin()
        found = taeda.autograd.grad(y.sum(), [x, y, z], allow_unused=True)
        y = (x * w).cos()
        y.sum().backward(inputs=[w])
        return [*found, *grads_of(x, w)]

    compare(passes, way)


def test_several_roots_and_kept_graphs(way):
    def passes(i):
        x = leaf(3, 4)
        a, b = x.sin(), x.cos()
        a.retain_grad()
        roots, grads = [a, b, a], [taeda.ones(3, 4), taeda.randn(3, 4), a.detach()]
        taeda.autograd.backward(roots, grads, retain_graph=True)
        taeda.autograd.backward(roots, grads)
        return grads_of(x, a)

    compare(passes, way)


def test_grads_are_added_to(way):
    def passes(i):
        w = leaf(4)
        for _ in range(3):
            (w * taeda.randn(4)).sin().sum().backward()
        before = w.grad
        (w * 2).sum().backward()
        return [*grads_of(w), before is w.grad]

    compare(passes, way)


def test_one_grad_for_two_leaves_is_two_tensors(way):
    def passes(i):
        a, b = leaf(3), leaf(3)
        (a + b).backward(taeda.ones(3))
        a.grad.mul_(5)
        return grads_of(a, b)

    compare(passes, way)


def test_writes_and_views(way):
    def passes(i):
        x = leaf(3 + i, 4)
        y = x * 1
        y[:, 1:3].mul_(2)
        y[0] = 5
        z = y.sin()
        z.add_(1)
        first, second = z.chunk(2, 1)
        (first * second).cumsum(0).permute(1, 0).reshape(-1).sum().backward()
        return grads_of(x)

    compare(passes, way, times=4)


@pytest.mark.parametrize("dtype", [taeda.bfloat16, taeda.complex64, taeda.float64])
def test_dtypes(dtype, way):
    def passes(i):
        x = leaf(3, 4, dtype=dtype)
        y = (x * x + x.exp()).abs().float()
        y.sum().backward()
        return grads_of(x)

    compare(passes, way)


def test_autocast(way):
    def passes(i):
        layer, x = nn.Linear(4, 8), leaf(5, 4)
        with taeda.autocast("cpu", dtype=taeda.bfloat16):
            y = layer(x).relu()
        y.float().sum().backward()
        return grads_of(x, *layer.parameters())

    compare(passes, way)


def test_callbacks_run_at_the_end(way):
    def passes(i):
        x, seen = leaf(3), []

        def hook(grad):
            taeda._C._queue_callback(lambda: seen.append(x.grad.clone()))

        y = x.sin()
        y.register_hook(hook)
        (y * y).sum().backward()
        return seen

    compare(passes, way)


def test_gradients_that_do_not_arrive(way):
    def passes(i):
        x, w = leaf(4), leaf(4)
        a, b = Scaled.apply(x, w)
        taeda.stack([a, a]).unbind()[i % 2].sum().backward()
        return grads_of(x, w)

    compare(passes, way, times=4)


# Sizes --------------------------------------------------------------------------


def several_sizes(i):
    x, w = leaf((3, 5, 8, 9, 1)[i], 4), leaf(4, 6)
    y = (x @ w).relu().sum(0).softmax(0)
    (y * taeda.arange(6.0)).sum().backward()
    return grads_of(x, w)


@pytest.mark.parametrize("way, wanted", [((None, False), 3), ((None, True), 2)])
def test_a_second_size_is_a_symbol(way, wanted):
    """One graph for the first size (none where all are symbols), one for all others
    but 1."""
    compare(several_sizes, way, times=5)
    assert captures() == wanted


def test_sizes_behind_hooks(way):
    def passes(i):
        x = leaf(3 + i, 4)
        y = x.sin()
        y.register_hook(lambda g: g.clone())
        z = y.reshape(-1) * 2
        z.register_hook(lambda g: g + 1)
        z.square().sum().backward()
        return grads_of(x)

    compare(passes, way, times=5)
    assert captures() <= 2


def test_results_of_compiled_functions_that_have_no_gradient(way):
    """Zeros in their place would become NaN."""

    def passes(i):
        f = taeda.compile(lambda x: (x.var(1), x / x.detach(), x * 2))
        x = taeda.tensor([[0.0], [3.0]], requires_grad=True)
        f(x)[2].sum().backward()
        return grads_of(x)

    compare(passes, way)


def test_sizes_that_are_settled_on_the_way(way):
    """A view within memory fixes its size after the pass began with a symbol."""

    def passes(i):
        x = leaf(7 + i)
        mean = x.mean(0)
        y = mean * x
        y[0] = -1.5
        (y * mean).sum().backward()
        return grads_of(x)

    compare(passes, way)


def test_compiled_functions_are_part_of_the_graph():
    function = taeda.compile(lambda a, b: (a @ b).sin(), fullgraph=True)

    def passes(i):
        a, b = leaf(4 + i, 4), leaf(4, 4)
        (function(function(a, b).exp(), b) * 2).sum().backward()
        return grads_of(a, b)

    compare(passes, (None, False), times=6)
    assert captures() == graphs() == 2


# Errors and borders -------------------------------------------------------------


def test_errors_are_those_of_the_engine(way):
    def text(function):
        with pytest.raises(RuntimeError) as error:
            function()
        return str(error.value)

    def passes(i):
        x = leaf(3)
        y = x.exp()
        y.sum().backward()
        twice = text(lambda: y.sum().backward())
        a = x * 1
        z = (a * a).sum()
        a.add_(1)
        return [twice, text(z.backward), *grads_of(x)]

    compare(passes, way)
    with compiled_autograd._enable(way[0]), pytest.raises(ZeroDivisionError):
        x = leaf(3)
        y = x.sin()
        y.register_hook(lambda g: 1 / 0)
        (y * 2).sum().backward()


def test_a_changed_value_that_no_gradient_needs_is_no_error(way):
    class Nothing(taeda.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            return a.clone()

        @staticmethod
        def backward(ctx, grad):
            return None

    def passes(i):
        x = leaf(3)
        y = x * 1
        z = Nothing.apply(y * y)
        y.add_(1)
        z.sum().backward()
        return grads_of(x)

    compare(passes, way)


def test_graphs_over_gradients_are_the_engines(way, caplog):
    def passes(i):
        x, w = leaf(3, 4), leaf(4)
        (grad,) = taeda.autograd.grad((x * w).sin().sum(), x, create_graph=True)
        grad.square().sum().backward()
        return grads_of(x, w)

    taeda._logging.set_logs(compiled_autograd=True)
    try:
        with caplog.at_level(logging.INFO):
            compare(passes, way, times=1)
    finally:
        taeda._logging.set_logs()
    assert "a backward pass runs eagerly: create_graph=True" in caplog.text
    assert captures() == 1


def test_anomaly_mode_is_the_engines(way):
    def passes(i):
        x = leaf(3)
        with taeda.autograd.set_detect_anomaly(True):
            x.sin().sum().backward()
        return grads_of(x)

    compare(passes, way)
    assert captures() == 0


def test_more_ways_to_go_on_than_are_kept_run_eagerly():
    def passes(i):
        x = leaf(3)

        class Grown(taeda.autograd.Function):
            @staticmethod
            def forward(ctx, a):
                return a.clone()

            @staticmethod
            def backward(ctx, grad):
                return grad.new_ones(i + 2, 3)

        y = x.sin() * x
        y = Grown.apply(y)
        y.sum().backward()
        return grads_of(x)

    compare(passes, (None, False), times=20)


def test_what_is_captured_is_logged(caplog):
    x = leaf(3)
    taeda._logging.set_logs(compiled_autograd=True)
    try:
        with caplog.at_level(logging.INFO), compiled_autograd._enable(None):
            y = x.sin()
            y.register_hook(lambda g: g)
            (y * 3).sum().backward()
    finally:
        taeda._logging.set_logs()
    assert "Compiled autograd graph" in caplog.text
    assert "The graph ends before SinBackward0" in caplog.text


# Who is in charge ---------------------------------------------------------------


def test_the_compiler_gets_a_module():
    seen = []

    def compiler(gm):
        seen.append(gm)
        return gm

    w = leaf(4)
    with compiled_autograd._enable(compiler, dynamic=False):
        (w * 3).sin().sum().backward()
    assert taeda.equal(w.grad, (w.detach() * 3).cos() * 3)
    (gm,) = seen
    assert isinstance(gm, taeda.fx.GraphModule)
    names = [n.name for n in gm.graph.nodes if n.op == "placeholder"]
    assert names == ["inputs", "sizes", "scalars", "hooks", "packed_data"]
    assert taeda.ops.aten.cos.default in [n.target for n in gm.graph.nodes]


def test_a_compiler_that_raises_is_heard():
    def refuse(gm):
        raise KeyError("refused")

    w = leaf(4)
    with compiled_autograd._enable(refuse), pytest.raises(KeyError, match="refused"):
        w.sin().sum().backward()


def test_a_compiler_that_returns_something_else_is_an_error():
    w = leaf(4)
    with compiled_autograd._enable(lambda gm: lambda *args: [None]):
        with pytest.raises(RuntimeError, match="returned no tensor"):
            w.sin().sum().backward()
    with compiled_autograd._enable(lambda gm: lambda *args: []):
        with pytest.raises(RuntimeError, match="returned 0 tensors, expected 1"):
            w.cos().sum().backward()


def test_contexts_nest():
    w = leaf(4)

    def passes():
        w.sin().sum().backward()
        return captures()

    assert not compiled_autograd.compiled_autograd_enabled
    with compiled_autograd._enable(None):
        assert compiled_autograd.compiled_autograd_enabled
        with compiled_autograd._disable():
            assert not compiled_autograd.compiled_autograd_enabled
            assert passes() == 0
            with compiled_autograd._enable(None, ignore_active_disable_ctx=False):
                assert passes() == 0
            with compiled_autograd._enable(None):
                assert passes() == 1
        assert passes() == 1
        compiled_autograd.reset()
        assert passes() == 1
    assert passes() == 1
    with compiled_autograd._enable(None):
        assert passes() == 2
    with pytest.raises(AssertionError, match="Expected dynamic to be bool"):
        with compiled_autograd._enable(None, dynamic=1):
            pass


def test_the_stance_is_heeded():
    w = leaf(4)
    with taeda.compiler.set_stance("force_eager"), compiled_autograd._enable(None):
        w.sin().sum().backward()
        assert compiled_autograd.compiled_autograd_enabled_force_eager
    assert captures() == 0


def test_only_functions_compiled_under_the_setting_compile_passes():
    w = leaf(4)

    def train():
        w.sin().sum().backward()

    taeda.compile(train)()
    assert captures() == 0
    with config.patch(compiled_autograd=True):
        compiled = taeda.compile(train)
    compiled()
    compiled()
    assert captures() == 1
    w.sin().sum().backward()
    assert captures() == 1


def test_a_compiled_graph_knows_where_it_runs():
    seen = []

    def compiler(gm):
        def run(*args):
            seen.append(compiled_autograd.in_compiled_autograd_region)
            return gm(*args)

        return run

    w = leaf(4)
    with compiled_autograd._enable(compiler):
        w.sin().sum().backward()
    assert seen == [True]
    assert not compiled_autograd.in_compiled_autograd_region


def test_threads_share_plans_and_not_the_setting():
    errors, found = [], []

    def passes():
        x = leaf(3, 4)
        (x.sin() * x).sum().backward()
        return taeda.allclose(x.grad, (x.sin() + x * x.cos()).detach())

    def work():
        try:
            found.append(compiled_autograd.compiled_autograd_enabled)
            with compiled_autograd._enable(None):
                found.extend(not passes() for _ in range(20))
        except Exception as error:
            errors.append(error)

    with compiled_autograd._enable(None):
        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert not errors and not any(found)
    assert captures() == 1


@pytest.mark.parametrize("way", [(None, False), (as_it_is, False)])
def test_nothing_is_held_longer_than_the_engine_does(way):
    """Saved tensors are free while a hook behind their node runs."""

    def passes(i):
        x, alive = leaf(3, 4), []
        kept = x.exp()
        reference = weakref.ref(kept)
        y = x * 1
        (kept * y).sum().backward(retain_graph=False) if i else None
        z = (y.sin() * kept).sum()
        y.register_hook(lambda g: alive.append(reference() is not None))
        del kept
        z.backward()
        gc.collect()
        return [alive, reference() is None, *grads_of(x)]

    compare(passes, way, times=1)


def test_small_floats_are_other_plans_and_only_so_many():
    """Numbers that nodes keep are constants of a graph; beyond a limit of plans for
    passes the engine runs them."""

    def passes(i):
        x = leaf(3)
        (x * (i + 0.5)).sin().sum().backward()
        return grads_of(x)

    compare(passes, (None, False), times=3)
    assert captures() == 3


ALONE = """
import taeda
from taeda._dynamo import compiled_autograd
w = taeda.ones(3, 4, requires_grad=True)
with compiled_autograd._enable(lambda gm: gm, dynamic=True):
    for rows in (5, 6):
        (taeda.ones(rows, 3) @ w).sum(0, keepdim=True).expand(rows, 4).sum().backward()
print(float(w.grad.sum()))
"""


def test_sizes_that_differ_are_numbers_before_anybody_asked_for_a_symbol():
    done = subprocess.run(
        [sys.executable, "-c", ALONE], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "732.0\n"), done.stderr
