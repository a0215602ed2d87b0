"""Programs of the kinds that people train, as they are and functionalized."""

from __future__ import annotations

import pytest
import taeda
from functional_helpers import REMOVE, Log, close, copies, state_of
from taeda import nn
from taeda.func import functional_call, functionalize, grad_and_value


def is_trained(name: str, t) -> bool:
    return t.is_floating_point() and "running" not in name


def training_step(module, loss_of, update):
    """One step as a function of the state, the optimizer's memory and a batch.

    It writes to the state: buffers by the module, parameters by the update.
    """

    def step(state, memory, *batch):
        names = [n for n, t in state.items() if is_trained(n, t)]
        rest = {n: t for n, t in state.items() if n not in names}

        def loss(parameters):
            out = functional_call(module, {**parameters, **rest}, batch[0])
            return loss_of(out, batch)

        grads, value = grad_and_value(loss)({n: state[n] for n in names})
        for name in names:
            update(state[name], grads[name], memory[name])
        return value

    return step


def sgd(p, g, m):
    m["sum"].mul_(0.9).add_(g)
    p.sub_(m["sum"], alpha=0.1)


def adam(p, g, m):
    m["step"] += 1
    m["mean"].lerp_(g, 0.1)
    m["square"].mul_(0.99).addcmul_(g, g, value=0.01)
    scale = (m["square"] / (1 - 0.99 ** m["step"])).sqrt_().add_(1e-8)
    p.addcdiv_(m["mean"] / (1 - 0.9 ** m["step"]), scale, value=-0.01)


def foreach_sgd(p, g, m):
    taeda._foreach_mul_([m["sum"]], 0.5)
    taeda._foreach_add_([m["sum"]], [g])
    taeda._foreach_add_([p], [m["sum"]], alpha=-0.1)


def memory_for(state: dict) -> dict:
    make = lambda t: {k: taeda.zeros_like(t) for k in ("sum", "mean", "square")}
    return {
        n: {**make(t), "step": taeda.zeros(())}
        for n, t in state.items()
        if is_trained(n, t)
    }


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Conv2d(4, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.two = nn.Conv2d(4, 4, 3, padding=1)

    def forward(self, x):
        y = nn.functional.relu_(self.norm(self.one(x)))
        y = self.two(y)
        y += x
        return y.relu_().mean((2, 3))


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTM(5, 6, num_layers=2, batch_first=True)
        self.out = nn.Linear(6, 4)

    def forward(self, x):
        return self.out(self.cell(x)[0][:, -1])


class Block(nn.Module):
    """A block of a language model, with a mask that is written in place."""

    def __init__(self, width: int = 8, heads: int = 2) -> None:
        super().__init__()
        self.heads = heads
        self.table = nn.Embedding(11, width)
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.join = nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 16), nn.GELU(), nn.Linear(16, width))

    def forward(self, tokens):
        x = self.table(tokens)
        b, n, c = x.shape
        q, k, v = (
            t.view(b, n, self.heads, -1).transpose(1, 2)
            for t in self.qkv(self.first(x)).chunk(3, -1)
        )
        scores = q @ k.transpose(-2, -1)
        scores.div_(2.0)
        scores.masked_fill_(taeda.ones(n, n).triu_(1).bool(), float("-inf"))
        y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(b, n, c)
        x = x + self.join(y)
        y = self.mlp(self.second(x))
        y += x
        return y @ self.table.weight.t()


def convolutional():
    return nn.Sequential(
        nn.Conv2d(3, 6, 3),
        nn.BatchNorm2d(6),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(54, 4),
    )


def perceptron():
    return nn.Sequential(
        nn.Linear(6, 8), nn.ReLU(inplace=True), nn.Dropout(0.3), nn.Linear(8, 4)
    )


def classes(out, batch):
    return nn.functional.cross_entropy(out, batch[1])


def tokens(out, batch):
    return nn.functional.cross_entropy(out.flatten(0, 1), batch[1].flatten())


def labelled(*shape):
    return taeda.randn(4, *shape), taeda.tensor([0, 3, 1, 2])


PROGRAMS = {
    "mlp": (perceptron, lambda: labelled(6), classes, sgd),
    "cnn": (convolutional, lambda: labelled(3, 8, 8), classes, adam),
    "resnet": (Residual, lambda: labelled(4, 6, 6), classes, foreach_sgd),
    "lstm": (Recurrent, lambda: labelled(7, 5), classes, adam),
    "gpt": (
        Block,
        lambda: (taeda.randint(0, 11, (2, 5)), taeda.randint(0, 11, (2, 5))),
        tokens,
        adam,
    ),
}


@pytest.mark.parametrize("remove", REMOVE)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_training_program_is_the_same_without_writes(name: str, remove: str) -> None:
    make, draw, loss, update = PROGRAMS[name]
    taeda.manual_seed(3)
    module, batch = make(), draw()
    step = training_step(module, loss, update)
    wanted = state_of(module)
    found, theirs, ours = copies(wanted), memory_for(wanted), memory_for(wanted)
    for i in range(3):
        taeda.manual_seed(i)
        value = step(wanted, theirs, *batch)
        taeda.manual_seed(i)
        with Log() as below:
            other = functionalize(step, remove=remove)(found, ours, *batch)
        assert taeda.allclose(value, other)
        assert close(wanted, found)
        assert close(theirs, ours)
        assert len(below.names) > 40
        # What was changed of the inputs, and nothing else, is written, at the end.
        count = len(below.written)
        assert {n for n, _ in below.written} == {"aten.copy_.default"}
        assert count == sum(is_changed(n) for n in flat_names(found, ours, update))
        last = [n for n in below.names if n == "aten.copy_.default"]
        assert len(last) == count
        first = below.names.index("aten.copy_.default")
        computing = [n for n in below.names[first:] if n.split(".")[1] not in AT_END]
        assert not computing


AT_END = {"copy_", "view", "alias", "detach", "select", "slice", "as_strided"}


def flat_names(state, memory, update) -> list[str]:
    used = {
        sgd: {"sum"},
        foreach_sgd: {"sum"},
        adam: {"mean", "square", "step"},
    }[update]
    own = [f"state.{n}" for n in state]
    return own + [f"used.{k}" if k in used else k for m in memory.values() for k in m]


def is_changed(name: str) -> bool:
    return name.startswith(("state.", "used."))


ADAM = {"lr": 0.1, "beta1": 0.9, "beta2": 0.99, "weight_decay": 0.1, "eps": 1e-8}
SGD = {"weight_decay": 0.1, "momentum": 0.9, "lr": 0.1, "dampening": 0.0}
FUSED = {
    "_fused_sgd_": {
        **SGD,
        "nesterov": False,
        "maximize": False,
        "is_first_step": False,
    },
    "_fused_adam_": {**ADAM, "amsgrad": True, "maximize": False},
    "_fused_adamw_": {**ADAM, "amsgrad": True, "maximize": False},
    "_fused_adagrad_": {
        **{"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1, "eps": 1e-8},
        "maximize": False,
    },
}


@pytest.mark.parametrize("name", FUSED)
def test_a_fused_optimizer_writes_to_lists(name: str) -> None:
    lists = {"_fused_sgd_": 3, "_fused_adagrad_": 3}.get(name, 5)

    def step(steps, *state):
        call = getattr(taeda.ops.aten, name).default
        extra = () if name == "_fused_sgd_" else (steps,)
        call(*state, *extra, **FUSED[name])

    taeda.manual_seed(0)
    state = [[taeda.rand(3), taeda.rand(2, 2)] for _ in range(lists)]
    found, steps = copies(state), [taeda.ones(()), taeda.ones(())]
    step(steps, *state)
    with Log() as below:
        functionalize(step)(steps, *found)
    assert close(state, found)
    assert f"aten.{name[:-1]}.default" in below.names
    assert {n for n, _ in below.written} <= {"aten.copy_.default"}
