"""Calls that graphs hold whole: custom functions, checkpoint, hooks, transforms."""

from __future__ import annotations

import functools

import pytest
import taeda
from taeda.compiler._frames import capture
from taeda.utils.checkpoint import checkpoint

log = []


class Cube(taeda.autograd.Function):
    @staticmethod
    def forward(ctx, x, k):
        ctx.save_for_backward(x)
        ctx.k = k
        return x**3 * k

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 2 * x**2 * ctx.k, None  # not the derivative: it is seen


class Pair(taeda.autograd.Function):
    @staticmethod
    def forward(x, y):
        return x * y, x + y

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, a, b):
        x, y = ctx.saved_tensors
        return a * y + b, a * x + 2 * b


class Writing(taeda.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(3)

    @staticmethod
    def backward(ctx, grad):
        return grad * 5


class Logging(taeda.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        log.append("forward")
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


def custom(x):
    return Cube.apply(x + 1, 2.0) * 2


def custom_pair(x):
    a, b = Pair.apply(x, x + 1)
    return a - b.sin()


def custom_in_place(x):
    y = x * 1
    Writing.apply(y)
    return y + 1


def custom_with_effect(x):
    return Logging.apply(x) + len(log)


def custom_through_a_global(x):
    return Cube.apply(x, scale)


scale = 2.0
weight = taeda.ones(3, requires_grad=True)


def checkpointed(x):
    return checkpoint(lambda v: (v * weight).sin().exp(), x, use_reentrant=False) * 2


def checkpointed_again(x):
    return checkpoint(lambda v, w: (v * w).cos(), x, weight, use_reentrant=True) * 2


def nested_checkpoints(x):
    def inner(v):
        return v.sin() * x

    def outer(v):
        return checkpoint(inner, v * 2, use_reentrant=False).exp()

    return checkpoint(outer, x, use_reentrant=False)


def hooked(x):
    y = x * 2
    y.register_hook(lambda g: g * 3)
    factor = y.sum().detach()
    z = y.sin()
    z.register_hook(lambda g: g * factor)
    removed = z.register_hook(lambda g: g * 100)
    removed.remove()
    return z


def hooked_input(x):
    x.register_hook(lambda g: log.append(g) or g * 7)
    return x * 2


def derived(x):
    (g,) = taeda.autograd.grad((x**3).sum(), x, create_graph=True)
    (h,) = taeda.autograd.grad(g.sum(), x)
    return g.detach() + h


PROGRAMS = [
    *(custom, custom_pair, custom_in_place, custom_through_a_global),
    *(checkpointed, checkpointed_again, nested_checkpoints, hooked, derived),
]


def run(function, x):
    out = function(x)
    weight.grad = None
    if out.requires_grad:
        (out * out).sum().backward()
    return out.detach(), x.grad, weight.grad


def leaf():
    return taeda.tensor([0.5, -1.0, 2.0], requires_grad=True)


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("with_module", [False, True])
def test_values_and_gradients_are_those_of_the_program(function, with_module, same):
    backend = (lambda gm, inputs: gm.forward) if with_module else None
    compiled = capture(function, fullgraph=True, backend=backend)
    for _ in range(2):
        same(run(compiled, leaf()), run(function, leaf()))
    assert compiled.explain()["graphs"] == 1


def test_a_global_that_forward_reads_is_guarded(same):
    global scale
    compiled = capture(custom_through_a_global, fullgraph=True)
    for value in (2.0, 3.0):
        scale = value
        same(run(compiled, leaf()), run(custom_through_a_global, leaf()))


def test_effects_of_forward_happen_once_a_call():
    compiled = capture(custom_with_effect)
    for count in range(1, 4):
        log[:] = ["forward"] * (count - 1)
        out = compiled(leaf())
        assert len(log) == count
        assert taeda.equal(out, leaf() * 2 + count)


def test_a_hook_of_an_input_is_called_in_backward():
    compiled = capture(hooked_input, fullgraph=True)
    for _ in range(2):
        log.clear()
        x = leaf()
        compiled(x).sum().backward()
        assert len(log) == 1 and taeda.equal(x.grad, taeda.full((3,), 14.0))


def test_hooks_write_to_the_programs_own_lists():
    def program(x, seen):
        y = x * 2
        y.register_hook(lambda g: seen.append(g * 2))
        return y

    def with_own(x):
        seen = []
        y = x * 2
        y.register_hook(seen.append)
        y.register_hook(lambda g: seen.append(g))
        return y, seen

    compiled, own = capture(program), capture(with_own)
    for _ in range(2):
        seen = []
        compiled(leaf(), seen).sum().backward()
        assert taeda.equal(seen[0], taeda.full((3,), 2.0))
        y, seen = own(leaf())
        y.sum().backward()
        assert len(seen) == 2


def test_the_block_is_run_again_in_backward():
    calls = []

    class Counted(taeda.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            calls.append(x)
            return grad * x.cos()

    def block(v):
        return Counted.apply(v * 2)

    compiled = capture(lambda v: checkpoint(block, v, use_reentrant=False))
    x = leaf()
    compiled(x).sum().backward()
    assert len(calls) == 1 and taeda.allclose(x.grad, (leaf() * 2).cos() * 2)


def test_backward_ends_a_graph():
    def step(x):
        y = (x * x).sum()
        y.backward()
        return x.grad * 2

    compiled = capture(step)
    for _ in range(2):
        x = leaf()
        assert taeda.equal(compiled(x), leaf() * 4)
    with pytest.raises(Exception, match="backward"):
        capture(step, fullgraph=True)(leaf())
    with pytest.raises(Exception, match="backward"):
        capture(lambda x: taeda.autograd.backward(x.sum()), fullgraph=True)(leaf())


def test_gradients_that_are_written_are_read_again():
    def program(p):
        p.grad = None
        first = p.grad is None
        p.grad = p.detach() * 3
        return first, p.grad + 1

    compiled = capture(program, fullgraph=True)
    for _ in range(2):
        p = leaf()
        p.grad = taeda.ones(3)
        first, out = compiled(p)
        assert first and taeda.equal(out, leaf() * 3 + 1)
        assert taeda.equal(p.grad, leaf() * 3)


def test_grad_of_what_was_made_outside_is_left_to_eager(same):
    x = leaf()
    y = x * x

    def outside(y):
        return taeda.autograd.grad((y * 3).sum(), x, retain_graph=True)[0]

    same(capture(outside)(y), outside(y))


def cubes(v):
    return (v**3).sum()


TRANSFORMS = {
    "grad": lambda x, y: taeda.func.grad(cubes)(x) + y,
    "grad_and_value": lambda x, y: taeda.func.grad_and_value(cubes)(x * y),
    "vmap": lambda x, y: taeda.vmap(lambda a: (a * y).sum() + a)(x),
    "vmap_of_grad": lambda x, y: taeda.vmap(taeda.func.grad(lambda a: (a * y).sum()))(
        taeda.stack([x, y])
    ),
    "jvp": lambda x, y: taeda.func.jvp(taeda.sin, (x,), (y,)),
    "vjp": lambda x, y: taeda.func.vjp(lambda v: v * y, x)[1](y),
    "jacrev": lambda x, y: taeda.func.jacrev(lambda v: v.sin() * y)(x),
    "jacfwd": lambda x, y: taeda.func.jacfwd(lambda v: v.sin() * y)(x),
    "hessian": lambda x, y: taeda.func.hessian(cubes)(x),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_are_captured(name, same):
    x, y = leaf().detach(), taeda.tensor([1.0, 2.0, 3.0])
    compiled = capture(TRANSFORMS[name], fullgraph=True)
    for _ in range(2):
        same(compiled(x, y), TRANSFORMS[name](x, y))
    assert compiled.explain()["graphs"] == 1


def test_a_break_inside_of_a_transform_leaves_it_to_eager(same):
    def noisy(v):
        print(end="")
        return v.sin().sum()

    def program(x):
        y = x * 2
        z = taeda.func.grad(noisy)(y)
        return z + y

    compiled = capture(program)
    x = leaf().detach()
    for _ in range(2):
        same(compiled(x), program(x))
    assert taeda._C._functorch.depth() == 0
    assert compiled.explain()["graphs"] == 2


def test_functional_call_is_captured(same):
    net = taeda.nn.Linear(3, 2)
    state = {k: v.detach() * 2 for k, v in net.state_dict().items()}

    def program(state, x):
        return taeda.func.functional_call(net, state, (x,))

    compiled = capture(program, fullgraph=True)
    x = taeda.ones(4, 3)
    for _ in range(2):
        same(compiled(state, x), program(state, x))
    assert net.weight.requires_grad


def test_custom_operators_are_nodes(same):
    @taeda.library.custom_op("test_capture::scaled", mutates_args=())
    def scaled(x: taeda.Tensor, k: float) -> taeda.Tensor:
        return taeda.from_numpy(x.detach().numpy() * k)

    @taeda.library.custom_op("test_capture::bump", mutates_args=("x",))
    def bump(x: taeda.Tensor, k: int) -> None:
        x.detach().numpy()[...] += k

    def program(x):
        y = x * 1
        bump(y, 2)
        return scaled(y, 3.0) + 1

    x = leaf().detach()
    without = capture(program)
    same(without(x), program(x))
    assert "register_fake" in without.explain()["reasons"][0][0]
    scaled.register_fake(lambda x, k: taeda.empty_like(x))
    compiled = capture(program, fullgraph=True, backend=lambda gm, i: gm.forward)
    for _ in range(2):
        same(compiled(x), program(x))


def test_identities_are_those_of_the_programs_objects():
    kept = [taeda.ones(2), taeda.zeros(2)]
    known = {id(kept[0])}

    def program(x):
        return [id(t) in known for t in kept], x + 1

    compiled = capture(program, fullgraph=True)
    assert compiled(taeda.ones(2))[0] == [True, False]
    kept.reverse()
    assert compiled(taeda.ones(2))[0] == [False, True]


OPTIMIZERS = {
    "sgd": lambda p: taeda.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "adamw": lambda p: taeda.optim.AdamW(p, lr=0.01, foreach=True),
    "adagrad": lambda p: taeda.optim.Adagrad(p, lr=0.1),
}


def trained(make, wrap):
    taeda.manual_seed(0)
    net = taeda.nn.Sequential(taeda.nn.Linear(3, 4), taeda.nn.Linear(4, 1))
    steps = make(net.parameters())
    schedule = taeda.optim.lr_scheduler.StepLR(steps, 1, 0.5)

    def update():
        steps.step()
        schedule.step()
        return steps.param_groups[0]["lr"]

    def whole(x):
        steps.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        steps.step()
        return loss.detach()

    update, whole = wrap(update), wrap(whole)
    rates, losses = [], []
    for seed in range(3):
        taeda.manual_seed(seed)
        losses.append(whole(taeda.randn(5, 3)))
        rates.append(update())
    return rates, losses, dict(net.state_dict()), (update, whole)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_of_optimizers_are_calls(name, same):
    want = trained(OPTIMIZERS[name], lambda f: f)[:3]
    *found, (update, whole) = trained(OPTIMIZERS[name], capture)
    same(tuple(found), want)
    # Three rates; the forward pass and the step are parts beside backward().
    assert update.explain()["graphs"] <= 3 and whole.explain()["graphs"] <= 2 * 3


def test_state_that_a_step_changes_is_read_outside_of_the_graph(same):
    p = leaf()
    steps = taeda.optim.Adagrad([p], lr=0.1)

    def update():
        steps.step()
        return steps.state[p]["step"] + 1

    compiled = capture(update)
    for count in (1, 2):
        p.grad = taeda.ones(3)
        assert float(compiled()) == count + 1


@pytest.mark.parametrize("fullgraph", [True, False])
def test_forbidden_functions_are_errors(fullgraph):
    @taeda._dynamo.forbid_in_graph
    def forbidden(x):
        return x

    def marks(x):
        taeda._dynamo.mark_dynamic(x, 0)
        return x * 2

    for function in (lambda x: forbidden(x) + 1, marks):
        run = taeda.compile(function, backend="eager", fullgraph=fullgraph)
        with pytest.raises(AssertionError, match="Attempt to trace forbidden callable"):
            run(taeda.ones(2))
    with pytest.raises(AssertionError, match="applies only to callables"):
        taeda._dynamo.forbid_in_graph(3)
    assert taeda._dynamo.forbid_in_graph([forbidden]) == [forbidden]


def test_compiled_functions_are_not_traced_symbolically():
    run = taeda.compile(lambda x: x + 1, backend="eager")
    with pytest.raises(RuntimeError, match="Detected that you are using FX"):
        taeda.fx.symbolic_trace(run)


def selective(x, w, contexts):
    from taeda.utils.checkpoint import checkpoint

    def block(x, w):
        return taeda.mm(x, w).sigmoid().sin()

    return checkpoint(block, x, w, use_reentrant=False, context_fn=contexts).sum()


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_a_checkpoint_saves_what_its_policy_says(backend: str) -> None:
    from taeda.utils.checkpoint import (
        CheckpointPolicy,
        create_selective_checkpoint_contexts,
    )

    again = []

    def policy(context, op, *args, **kwargs):
        again.append((str(op), context.is_recompute))
        saved = op is taeda.ops.aten.mm.default
        kinds = CheckpointPolicy
        return kinds.MUST_SAVE if saved else kinds.PREFER_RECOMPUTE

    contexts = functools.partial(create_selective_checkpoint_contexts, policy)
    x = taeda.ones(2, 2, requires_grad=True)
    selective(x, x, contexts).backward()
    eagerly, expected = list(again), x.grad
    x.grad = None
    again.clear()
    compiled = taeda.compile(selective, backend=backend, fullgraph=True)
    compiled(x, x, contexts).backward()
    assert again == eagerly and len(again) > 3
    assert taeda.equal(x.grad, expected)
