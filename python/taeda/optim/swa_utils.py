"""Averages of a model's weights over its training."""

from __future__ import annotations

import math
from itertools import chain

import taeda
from taeda.nn import Module
from taeda.optim._schedule_base import LRScheduler, per_group

__all__ = [
    "AveragedModel",
    "update_bn",
    "SWALR",
    "get_ema_multi_avg_fn",
    "get_swa_multi_avg_fn",
    "get_ema_avg_fn",
    "get_swa_avg_fn",
]


def _check_decay(decay: float) -> None:
    if not 0.0 <= decay <= 1.0:
        raise ValueError(
            f"Invalid decay value {decay} provided. Please provide a value in [0,1] "
            "range."
        )


def _averages(tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def get_ema_multi_avg_fn(decay: float = 0.999):
    """An exponential moving average over lists: a <- decay a + (1 - decay) p.

    Raises:
        ValueError: a decay outside [0, 1].
    """
    _check_decay(decay)

    def ema_update(ema_param_list, current_param_list, _) -> None:
        with taeda.no_grad():
            if _averages(ema_param_list[0]):
                taeda._foreach_lerp_(ema_param_list, current_param_list, 1 - decay)
                return
            for average, p in zip(ema_param_list, current_param_list, strict=True):
                average.copy_(average * decay + p * (1 - decay))

    return ema_update


def get_swa_multi_avg_fn():
    """A mean over lists: a <- a + (p - a) / (n + 1)."""

    def swa_update(averaged_param_list, current_param_list, num_averaged) -> None:
        with taeda.no_grad():
            share = 1 / (float(num_averaged) + 1)
            if _averages(averaged_param_list[0]):
                taeda._foreach_lerp_(averaged_param_list, current_param_list, share)
                return
            pairs = zip(averaged_param_list, current_param_list, strict=True)
            for average, p in pairs:
                average.copy_(average + (p - average) * share)

    return swa_update


def get_ema_avg_fn(decay: float = 0.999):
    """An exponential moving average of one tensor.

    Raises:
        ValueError: a decay outside [0, 1].
    """
    _check_decay(decay)

    def ema_update(ema_param, current_param, num_averaged):
        with taeda.no_grad():
            return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn():
    """A mean of one tensor: a + (p - a) / (n + 1)."""

    def swa_update(averaged_param, current_param, num_averaged):
        with taeda.no_grad():
            change = current_param - averaged_param
            return averaged_param + change / (num_averaged + 1)

    return swa_update


class AveragedModel(Module):
    """A copy of a model that averages its weights (Izmailov et al., 1803.05407).

    Args:
        model (Module): copied. device: where the copy lives; its own if None.
        avg_fn: (average, parameter, count) -> new average; the mean if None.
        multi_avg_fn: (averages, parameters, count), in place, on whole lists.
        use_buffers (bool): average buffers too, instead of copying them.

    Example:
        >>> average = AveragedModel(model)
        >>> average.update_parameters(model)  # after some of the epochs
    """

    def __init__(
        self,
        model: Module,
        device=None,
        avg_fn=None,
        multi_avg_fn=None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if None not in (avg_fn, multi_avg_fn):
            raise AssertionError("avg_fn and multi_avg_fn exclude each other")
        from copy import deepcopy

        clone = deepcopy(model)
        self.module = clone if device is None else clone.to(device)
        self.avg_fn, self.multi_avg_fn = avg_fn, multi_avg_fn
        self.use_buffers = use_buffers
        none_yet = taeda.zeros((), dtype=taeda.long, device=device)
        self.register_buffer("n_averaged", none_yet)

    def forward(self, *args, **kwargs):
        """The model with averaged weights."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Take the weights of `model` into the average."""
        pairs = zip(self._members(self.module), self._members(model), strict=False)
        pairs = [(a.detach(), p.detach().to(a.device)) for a, p in pairs]
        if self.n_averaged == 0:
            for average, p in pairs:
                average.copy_(p)
        elif self.avg_fn is not None:
            for average, p in pairs:
                count = self.n_averaged.to(average.device)
                average.copy_(self.avg_fn(average, p, count))
        else:
            self._average_lists(pairs)
        if not self.use_buffers:
            buffers = zip(self.module.buffers(), model.buffers(), strict=True)
            for average, b in buffers:
                average.detach().copy_(b.detach().to(average.device))
        self.n_averaged += 1

    def _members(self, model):
        if self.use_buffers:
            return chain(model.parameters(), model.buffers())
        return model.parameters()

    def _average_lists(self, pairs) -> None:
        update = self.multi_avg_fn or get_swa_multi_avg_fn()
        lists: dict = {}
        for average, p in pairs:
            both = lists.setdefault((average.device, average.dtype), ([], []))
            both[0].append(average)
            both[1].append(p)
        for (device, _), (averages, params) in lists.items():
            update(averages, params, self.n_averaged.to(device))


def update_bn(loader, model: Module, device=None) -> None:
    """Recompute the running statistics of every batch norm over the data.

    Args:
        loader: yields batches, or tuples whose first entry is one.
        model (Module): put into training mode meanwhile.
        device: where batches are moved.
    """
    kind = taeda.nn.modules.batchnorm._BatchNorm
    norms = {m: m.momentum for m in model.modules() if isinstance(m, kind)}
    if not norms:
        return
    training = model.training
    model.train()
    for module in norms:
        module.reset_running_stats()
        module.momentum = None  # a plain mean over all batches
    with taeda.no_grad():
        for batch in loader:
            batch = batch[0] if isinstance(batch, (list, tuple)) else batch
            model(batch if device is None else batch.to(device))
    for module, momentum in norms.items():
        module.momentum = momentum
    model.train(training)


class SWALR(LRScheduler):
    """Towards a constant rate for weight averaging.

    Args:
        optimizer (Optimizer): whose rates are set.
        swa_lr (float or list): the rate to reach. anneal_epochs (int): how soon.
        anneal_strategy (str): "cos" or "linear".
        last_epoch (int): -1 to begin, else where to go on.

    Raises:
        ValueError: an option out of range.

    Example:
        >>> schedule = SWALR(optimizer, swa_lr=0.05)
    """

    _unsaved = ("optimizer", "anneal_func")

    def __init__(
        self,
        optimizer,
        swa_lr,
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        rates = per_group("swa_lr", optimizer, swa_lr)
        for rate, group in zip(rates, optimizer.param_groups, strict=True):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                "anneal_strategy must be one of 'cos' or 'linear', instead got "
                f"{anneal_strategy}"
            )
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(
                f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}"
            )
        self._anneal_strategy, self.anneal_epochs = anneal_strategy, anneal_epochs
        super().__init__(optimizer, last_epoch)

    def anneal_func(self, t: float) -> float:
        """How far along the way, for a share `t` of the time."""
        if self._anneal_strategy == "linear":
            return t
        return (1 - math.cos(math.pi * t)) / 2

    def get_lr(self) -> list:
        """The rates for this step, from those of the step before."""
        self._check_called_by_step()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        span = max(1, self.anneal_epochs)
        before = self.anneal_func(max(0, min(1, (step - 1) / span)))
        now = self.anneal_func(max(0, min(1, step / span)))
        rates = []
        for group in self.optimizer.param_groups:
            goal, rate = group["swa_lr"], group["lr"]
            start = goal if before == 1 else (rate - before * goal) / (1 - before)
            rates.append(goal * now + start * (1 - now))
        return rates
