"""Learning-rate schedules and weight averaging against PyTorch."""

from __future__ import annotations

import warnings

import pytest
import taeda
import torch
from tolerance import rounding

SETTINGS = {
    "step": lambda s, o: s.StepLR(o, 3, 0.5),
    "multi step": lambda s, o: s.MultiStepLR(o, [2, 2, 7], 0.3),
    "constant": lambda s, o: s.ConstantLR(o, 0.5, 4),
    "linear": lambda s, o: s.LinearLR(o, 0.1, 0.9, 6),
    "exponential": lambda s, o: s.ExponentialLR(o, 0.9),
    "polynomial": lambda s, o: s.PolynomialLR(o, 9, 2.0),
    "cosine": lambda s, o: s.CosineAnnealingLR(o, 5, 0.01),
    "restarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 3, 2),
    "lambda": lambda s, o: s.LambdaLR(o, lambda e: 0.9**e),
    "multiplicative": lambda s, o: s.MultiplicativeLR(o, lambda e: 0.95),
    "cyclic": lambda s, o: s.CyclicLR(o, 0.01, 0.2, 4, mode="exp_range", gamma=0.9),
    "one cycle": lambda s, o: s.OneCycleLR(o, 0.3, total_steps=25),
    "three phase": lambda s, o: s.OneCycleLR(
        o, 0.3, epochs=5, steps_per_epoch=6, three_phase=True, anneal_strategy="linear"
    ),
    "sequence": lambda s, o: s.SequentialLR(
        o, [s.LinearLR(o, 0.1, 1.0, 5), s.ExponentialLR(o, 0.9)], [5]
    ),
    "chain": lambda s, o: s.ChainedScheduler(
        [s.LinearLR(o, 0.1, 1.0, 5), s.ExponentialLR(o, 0.9)]
    ),
}


def rates(lib, make, steps: int, tensor: bool = False) -> list:
    params = [lib.zeros(2, requires_grad=True) for _ in range(2)]
    groups = [{"params": [params[0]]}, {"params": [params[1]], "lr": 0.05}]
    optimizer = lib.optim.SGD(groups, lr=0.1, momentum=0.9)
    schedule = make(lib.optim.lr_scheduler, optimizer)
    seen = []
    for _ in range(steps):
        optimizer.step()
        schedule.step()
        seen.append([[g["lr"], g["momentum"]] for g in optimizer.param_groups])
    return seen


@pytest.mark.parametrize("name", SETTINGS)
def test_same_rates_as_pytorch(name) -> None:
    assert rates(taeda, SETTINGS[name], 24) == rates(torch, SETTINGS[name], 24)


@pytest.mark.parametrize("name", SETTINGS)
def test_resuming_gives_the_same_rates(name) -> None:
    def begin():
        optimizer = taeda.optim.SGD([taeda.zeros(1)], lr=0.1, momentum=0.9)
        return optimizer, SETTINGS[name](taeda.optim.lr_scheduler, optimizer)

    def go(pair, steps: int) -> list:
        seen = []
        for _ in range(steps):
            pair[0].step()
            pair[1].step()
            seen.append(pair[0].param_groups[0]["lr"])
        return seen

    import copy

    straight = begin()
    go(straight, 7)
    saved = copy.deepcopy([x.state_dict() for x in straight])
    resumed = begin()
    resumed[0].load_state_dict(saved[0])
    resumed[1].load_state_dict(saved[1])
    assert go(straight, 8) == go(resumed, 8)


def test_plateau_follows_pytorch() -> None:
    def run(lib):
        optimizer = lib.optim.SGD([lib.zeros(1)], lr=1.0)
        schedule = lib.optim.lr_scheduler.ReduceLROnPlateau(
            optimizer, patience=2, cooldown=1, factor=0.5, min_lr=0.1
        )
        seen = []
        for loss in [5, 4, 4, 4, 4, 4, 4, 3, 3, 3, 3, 3, 3, 3, 3, 3]:
            schedule.step(loss)
            seen.append(optimizer.param_groups[0]["lr"])
        return seen

    assert run(taeda) == run(torch)


def test_a_tensor_rate_keeps_its_identity() -> None:
    rate = taeda.tensor(0.5)
    optimizer = taeda.optim.SGD([taeda.zeros(1)], lr=rate)
    schedule = taeda.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    optimizer.step()
    schedule.step()
    assert optimizer.param_groups[0]["lr"] is rate
    assert rate.item() == 0.25


def test_wrong_order_warns() -> None:
    optimizer = taeda.optim.SGD([taeda.zeros(1)], lr=0.1)
    schedule = taeda.optim.lr_scheduler.StepLR(optimizer, 1)
    with pytest.warns(UserWarning, match="before `optimizer.step"):
        schedule.step()
    optimizer = taeda.optim.SGD([taeda.zeros(1)], lr=0.1)
    schedule = taeda.optim.lr_scheduler.StepLR(optimizer, 1)
    optimizer.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        schedule.step()


ERRORS = [
    (lambda s, o: s.StepLR("x", 1), TypeError, "not an Optimizer"),
    (lambda s, o: s.StepLR(o, 1, last_epoch=3), KeyError, "initial_lr"),
    (lambda s, o: s.ConstantLR(o, 2.0), ValueError, "factor"),
    (lambda s, o: s.LinearLR(o, 0.0), ValueError, "start_factor"),
    (lambda s, o: s.LambdaLR(o, [abs, abs]), ValueError, "Expected 1 lr_lambdas"),
    (lambda s, o: s.MultiplicativeLR(o, 3), TypeError, "should be a function"),
    (lambda s, o: s.OneCycleLR(o, 0.1), ValueError, "total_steps OR"),
    (lambda s, o: s.CyclicLR(o, 0.1, 0.2, mode="x"), ValueError, "invalid"),
    (lambda s, o: s.SequentialLR(o, [], []), ValueError, "at least one"),
    (lambda s, o: s.ReduceLROnPlateau(o, factor=1.0), ValueError, "Factor"),
    (lambda s, o: s.CosineAnnealingWarmRestarts(o, 0), ValueError, "T_0"),
]


@pytest.mark.parametrize(("call", "kind", "text"), ERRORS)
def test_refused_arguments(call, kind, text) -> None:
    optimizer = taeda.optim.SGD([taeda.zeros(1)], lr=0.1, momentum=0.9)
    with pytest.raises(kind, match=text):
        call(taeda.optim.lr_scheduler, optimizer)


@pytest.mark.parametrize("decay", [None, 0.9])
def test_averaged_model(decay) -> None:
    swa = taeda.optim.swa_utils
    model = taeda.nn.Linear(2, 1)
    multi = swa.get_ema_multi_avg_fn(decay) if decay else None
    average = swa.AveragedModel(model, multi_avg_fn=multi)
    want, values = None, [1.0, 2.0, 6.0]
    for count, value in enumerate(values):
        with taeda.no_grad():
            model.weight.fill_(value)
        average.update_parameters(model)
        if want is None:
            want = value
        elif decay:
            want = decay * want + (1 - decay) * value
        else:
            want += (value - want) / (count + 1)
    assert average.module.weight.tolist()[0] == pytest.approx(
        [want, want], rel=rounding("float32", 12)
    )
    assert average.n_averaged.item() == 3


def test_epochs_are_warned_of_in_the_words_that_have_a_name() -> None:
    from taeda.optim.lr_scheduler import EPOCH_DEPRECATION_WARNING as text

    optimizer = taeda.optim.SGD([taeda.ones(1, requires_grad=True)], lr=1.0)
    optimizer.step()
    with pytest.warns(UserWarning) as seen:
        taeda.optim.lr_scheduler.StepLR(optimizer, 2).step(1)
        taeda.optim.lr_scheduler.ReduceLROnPlateau(optimizer).step(1.0, 1)
    assert [str(w.message) for w in seen if "epoch" in str(w.message)] == [text, text]
