"""Backward passes that compiled functions make themselves are part of their graphs."""

import pytest
import taeda
from taeda import nn
from taeda.utils.checkpoint import checkpoint

OPTIONS = {"blocking": True}


@pytest.fixture(autouse=True)
def forgotten():
    """Functions of the same code share what other tests captured."""
    taeda.compiler.reset()


def layers():
    return nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))


def clear(parameters):
    for p in parameters:
        p.grad = None


def accumulates(net):
    return lambda x: backward(net(x))


def backward(y):
    loss = y.square().mean()
    loss.backward()
    return loss


def begins_anew(net):
    def step(x):
        clear(net.parameters())
        return backward(net(x))

    return step


def steps_by_hand(net):
    def step(x):
        loss = backward(net(x))
        with taeda.no_grad():
            for p in net.parameters():
                p -= 0.1 * p.grad
                p.grad = None
        return loss

    return step


def zeroes(net):
    def step(x):
        for p in net.parameters():
            if p.grad is not None:
                p.grad.zero_()
        return backward(net(x))

    return step


def passes_twice(net):
    def step(x):
        y = net(x)
        y.sum().backward(retain_graph=True)
        loss = backward(y)
        return loss, y.detach()

    return step


def reaches_some(net):
    def step(x):
        loss = net(x).mean()
        loss.backward(inputs=[net[0].weight])
        return loss, net[0].weight.grad, net[2].weight.grad

    return step


def gives_a_gradient(net):
    def step(x):
        y = net(x)
        y.backward(y.detach() * 2)
        return y

    return step


def gives_views_of_grads(net):
    def step(x):
        loss = backward(net(x))
        return loss, net[0].weight.grad.view(-1), net[2].weight.grad.t()

    return step


def clips(net):
    def step(x):
        loss = backward(net(x))
        return loss, nn.utils.clip_grad_norm_(net.parameters(), 0.1)

    return step


def draws(net):
    def step(x):
        return backward(nn.functional.dropout(net(x), 0.5))

    return step


def checkpoints(net):
    def step(x):
        return backward(checkpoint(net, x, use_reentrant=False))

    return step


def changes_a_grad(net):
    def step(x):
        loss = backward(net(x))
        net[0].bias.grad = net[0].bias.grad * 2
        net[2].bias.grad.mul_(3)
        return loss

    return step


WHOLE = [
    accumulates,
    begins_anew,
    steps_by_hand,
    zeroes,
    passes_twice,
    reaches_some,
    gives_a_gradient,
    gives_views_of_grads,
    clips,
    draws,
    checkpoints,
    changes_a_grad,
]


def outcomes(program, compiles):
    """Results, parameters and grads after each call, and the compiled function."""
    taeda.manual_seed(1)
    net = layers()
    step = taeda.compile(program(net), options=OPTIONS) if compiles else program(net)
    found = []
    for call in range(3):
        taeda.manual_seed(call)
        out = step(taeda.randn(4, 3))
        found.append(out if isinstance(out, tuple) else (out,))
        found.append([p.detach().clone() for p in net.parameters()])
        found.append(
            [None if p.grad is None else p.grad.clone() for p in net.parameters()]
        )
        found[-3] = [None if t is None else t.detach().clone() for t in found[-3]]
    return found, step


def compare(program):
    expected, _ = outcomes(program, compiles=False)
    found, step = outcomes(program, compiles=True)
    for ours, theirs in zip(found, expected, strict=True):
        for a, b in zip(ours, theirs, strict=True):
            assert (a is None) == (b is None)
            if a is None:
                continue
            assert a.stride() == b.stride()
            taeda.testing.assert_close(a, b)
    return step


@pytest.mark.parametrize("program", WHOLE, ids=lambda p: p.__name__)
def test_a_step_is_one_graph(program):
    step = compare(program)
    assert step.explain()["reasons"] == []


def test_an_optimizer_begins_the_next_graph():
    def program(net):
        optimizer = taeda.optim.AdamW(net.parameters(), lr=0.1)

        def step(x):
            optimizer.zero_grad()
            loss = backward(net(x))
            optimizer.step()
            return loss

        return step

    told = compare(program).explain()
    assert told["graphs"] == 1
    assert "step after backward" in told["reasons"][0][0]


def test_numbers_are_read_behind_the_pass():
    def program(net):
        def step(x):
            loss = backward(net(x))
            return taeda.tensor(loss.item())

        return step

    (reason, *_), *_ = compare(program).explain()["reasons"]
    assert "item" in reason


@pytest.mark.parametrize("kind", ["tensor", "after", "node"])
def test_leaves_with_hooks_end_the_graph(kind):
    seen, held = [], []

    def program(net):
        weight = net[0].weight
        if kind == "tensor":
            weight.register_hook(lambda grad: grad * 2)
        elif kind == "after":
            weight.register_post_accumulate_grad_hook(lambda p: seen.append(1))
        else:
            held.append(weight.expand_as(weight).grad_fn.next_functions[0][0])
            held[-1].register_hook(lambda *_: seen.append(1))
        return accumulates(net)

    (reason, *_), *_ = compare(program).explain()["reasons"]
    assert reason == "backward where leaves have hooks"
    assert len(seen) == (0 if kind == "tensor" else 6)


def test_a_hook_that_comes_later_is_called():
    weight, seen = nn.Parameter(taeda.ones(3)), []

    @taeda.compile(options=OPTIONS)
    def step(x):
        weight.grad = None
        (weight * x).sum().backward()

    step(taeda.ones(3))
    handle = weight.register_hook(lambda grad: seen.append(grad) or grad * 5)
    step(taeda.ones(3))
    assert weight.grad.tolist() == [5.0] * 3 and len(seen) == 1
    handle.remove()
    step(taeda.ones(3))
    assert weight.grad.tolist() == [1.0] * 3 and len(seen) == 1


def test_anomaly_mode_sees_the_pass() -> None:
    x = taeda.zeros(3, requires_grad=True)

    @taeda.compile(options=OPTIONS)
    def step(factor):
        x.grad = None
        (x.sqrt() * factor).sum().backward()

    step(taeda.ones(3))
    assert x.grad.isinf().all()
    with (
        pytest.warns(UserWarning, match="Error detected in SqrtBackward0"),
        taeda.autograd.set_detect_anomaly(True),
        pytest.raises(RuntimeError, match="returned nan values"),
    ):
        step(taeda.zeros(3))
    step(taeda.zeros(3))
    assert x.grad.isnan().all()


def test_inputs_with_a_history_end_the_graph():
    def program(net):
        @taeda.compile(options=OPTIONS)
        def step(y):
            return backward(y * 2)

        program.step = step
        return lambda x: step(net(x))

    expected, _ = outcomes(program, compiles=False)
    assert all(grad is not None for grad in expected[-1])
    (reason, *_), *_ = program.step.explain()["reasons"]
    assert reason == "backward where inputs are results of calls"


def test_what_is_released_cannot_be_passed_again():
    x = taeda.rand(3, requires_grad=True)

    @taeda.compile(options=OPTIONS)
    def step():
        shifted = x + 1
        loss = (shifted.exp() * 2).sum()
        loss.backward()
        return shifted, loss

    shifted, loss = step()
    assert step.explain()["reasons"] == []
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        loss.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        taeda.autograd.grad(loss, x)
    x.grad = None
    shifted.sum().backward()  # of which nothing was saved
    assert x.grad.tolist() == [1.0] * 3


def test_a_graph_that_cannot_be_compiled_ends_at_the_pass():
    def program(net):
        def step(x):
            loss = backward(net(x))
            net[0].weight.requires_grad_()
            return loss

        return step

    reasons = [reason for reason, _ in compare(program).explain()["reasons"]]
    assert reasons == ["the value of a tensor is read by backward"]


def test_what_gradients_share_they_do_not_share_afterwards():
    a, b = (nn.Parameter(taeda.ones(4, 3)) for _ in "ab")

    @taeda.compile(options=OPTIONS)
    def step():
        (a + b).sum().backward()
        a.grad.mul_(2)

    step()
    assert a.grad.sum() == 24 and b.grad.sum() == 12
    b.grad.zero_()
    assert a.grad.sum() == 24


def test_grads_lie_as_their_leaves_do():
    w = nn.Parameter(taeda.randn(4, 3).t())

    @taeda.compile(options=OPTIONS)
    def step(x):
        (x @ w).square().sum().backward()

    step(taeda.randn(5, 3))
    assert w.grad.stride() == w.stride() == (1, 3)


def test_sizes_that_differ():
    def program(net):
        step = accumulates(net)
        return lambda x: step(x[: 2 + int(x.shape[0]) - 3].repeat(2, 1))

    compare(program)
    net, grads = layers(), []
    for run in (accumulates(net), taeda.compile(accumulates(net), dynamic=True)):
        clear(net.parameters())
        for rows in (4, 6, 9):
            run(taeda.ones(rows, 3))
        grads.append([p.grad.clone() for p in net.parameters()])
    taeda.testing.assert_close(*grads)


def test_cheap_calls_are_made_again_behind_a_pass():
    w = nn.Parameter(taeda.randn(512, 512))
    x = taeda.randn(512, 512)

    def step():
        w.grad = None
        y = x
        for _ in range(6):
            y = (y @ w).exp().sin().tanh()
        y.sum().backward()

    def peak_of(run):
        for _ in range(2):
            run()
        taeda._C._reset_cpu_peak()
        before = taeda._C._cpu_memory()[0]
        run()
        return taeda._C._cpu_memory()[1] - before

    compiled = taeda.compile(step, options=OPTIONS)
    assert peak_of(compiled) < 0.7 * peak_of(step)
    assert compiled.explain()["reasons"] == []


def test_passes_compiled_by_themselves_are_called_from_outside():
    from taeda._dynamo import config

    with config.patch(compiled_autograd=True):
        step = compare(accumulates)
    assert step.explain()["reasons"] != []


def test_other_backends_break_as_in_pytorch():
    graphs = []

    def backend(gm, inputs):
        graphs.append([node.target for node in gm.graph.nodes])
        return gm.forward

    w = nn.Parameter(taeda.ones(3))
    taeda.compile(lambda: (w * 2).sum().backward(), backend=backend)()
    assert w.grad.tolist() == [2.0] * 3
    assert not any("backward" in str(target) for graph in graphs for target in graph)
