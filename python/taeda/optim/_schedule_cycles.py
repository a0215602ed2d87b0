"""Schedules that go up and down, some with the momentum the other way."""

from __future__ import annotations

import math

from taeda.optim._schedule_base import (
    LRScheduler,
    function_state,
    per_group,
    require_optimizer,
    set_momentum,
    set_rate,
)


class _MomentumCycle(LRScheduler):
    """Rates up while momenta go down."""

    def _start_momenta(self, base, largest, last_epoch: int) -> tuple[list, list]:
        optimizer = self.optimizer
        options = optimizer.defaults
        if "momentum" not in options and "betas" not in options:
            raise ValueError(
                "optimizer must support momentum or beta1 with `cycle_momentum` "
                "option enabled"
            )
        self.use_beta1 = "betas" in options
        base = per_group("base_momentum", optimizer, base)
        largest = per_group("max_momentum", optimizer, largest)
        if last_epoch == -1:
            for low, high, group in zip(
                base, largest, optimizer.param_groups, strict=True
            ):
                set_momentum(group, high, self.use_beta1)
                group["max_momentum"], group["base_momentum"] = high, low
        return base, largest


class CyclicLR(_MomentumCycle):
    r"""Between two rates and back, again and again (Smith, arXiv:1506.01186).

    Args:
        optimizer (Optimizer): whose rates are set.
        base_lr, max_lr (float or list): the two rates.
        step_size_up (int): steps of the rising half; step_size_down: the falling.
        mode (str): "triangular", "triangular2" (the height halves each cycle) or
            "exp_range" (it shrinks by gamma each step).
        scale_fn, scale_mode: a height of one's own, over "cycle" or "iterations".
        cycle_momentum (bool): momentum from max_momentum to base_momentum and back.
        last_epoch (int): -1 to begin, else where to go on.

    Raises:
        ValueError: an unknown mode; an optimizer without momentum.

    Example:
        >>> schedule = CyclicLR(optimizer, base_lr=0.01, max_lr=0.1)
    """

    def __init__(
        self,
        optimizer,
        base_lr,
        max_lr,
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn=None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum=0.8,
        max_momentum=0.9,
        last_epoch: int = -1,
    ) -> None:
        require_optimizer(optimizer)
        self.optimizer = optimizer
        low = per_group("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for rate, group in zip(low, optimizer.param_groups, strict=True):
                set_rate(group, rate)
        self.max_lrs = per_group("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        down = up if step_size_down is None else float(step_size_down)
        self.total_size = up + down
        self.step_ratio = up / self.total_size
        if scale_fn is None and mode not in ("triangular", "triangular2", "exp_range"):
            raise ValueError(f"mode {mode!r} is invalid and scale_fn is None")
        self.mode, self.gamma = mode, gamma
        self._scale_fn_custom, self.scale_mode = scale_fn, scale_mode
        self._init_scale_fn()
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.base_momentums, self.max_momentums = self._start_momenta(
                base_momentum, max_momentum, last_epoch
            )
        super().__init__(optimizer, last_epoch)
        self.base_lrs = low

    def _init_scale_fn(self) -> None:
        if self._scale_fn_custom is None:
            by_step = self.mode == "exp_range"
            self.scale_mode = "iterations" if by_step else "cycle"

    def scale_fn(self, x) -> float:
        """The height of cycle (or at step) `x`, as a share of the full one."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "exp_range":
            return self.gamma**x
        return 1.0 if self.mode == "triangular" else 1 / 2.0 ** (x - 1)

    def _place(self) -> tuple[float, int]:
        """How high on the way up or down, and what `scale_fn` is asked for."""
        turns, top = self.last_epoch / self.total_size, self.step_ratio
        cycle = math.floor(1 + turns)
        x = 1.0 + turns - cycle
        share = x / top if x <= top else (x - 1) / (top - 1)
        return share, cycle if self.scale_mode == "cycle" else self.last_epoch

    def get_lr(self) -> list:
        """The rates for `last_epoch`; sets the momenta too."""
        self._check_called_by_step()
        share, at = self._place()
        rates = [
            low + (high - low) * share * self.scale_fn(at)
            for low, high in zip(self.base_lrs, self.max_lrs, strict=True)
        ]
        if self.cycle_momentum:
            momenta = zip(self.base_momentums, self.max_momentums, strict=True)
            for group, (low, high) in zip(
                self.optimizer.param_groups, momenta, strict=True
            ):
                value = high - (high - low) * share * self.scale_fn(at)
                set_momentum(group, value, self.use_beta1)
        return rates

    def state_dict(self) -> dict:
        """Everything but the optimizer and functions."""
        state = super().state_dict()
        state["_scale_fn_custom"] = function_state(state.pop("_scale_fn_custom"))
        return state

    def load_state_dict(self, state_dict: dict) -> None:
        """Take over what `state_dict()` returned; functions stay as they are."""
        rest = dict(state_dict)
        attributes = rest.pop("_scale_fn_custom")
        super().load_state_dict(rest)
        if attributes is not None:
            self._scale_fn_custom.__dict__.update(attributes)
        self._init_scale_fn()


class CosineAnnealingWarmRestarts(LRScheduler):
    r"""Half a cosine down, then from the top again, each time longer.

    $\eta = \eta_{min} + \frac12 (\eta_0 - \eta_{min})(1 + \cos(\pi T_{cur}/T_i))$
    (Loshchilov and Hutter, arXiv:1608.03983).

    Args:
        optimizer (Optimizer): whose rates are set.
        T_0 (int): length of the first run. T_mult (int): growth of the next ones.
        eta_min (float): least rate. last_epoch (int): -1 to begin.

    Raises:
        ValueError: an option that is no positive integer.

    Example:
        >>> schedule = CosineAnnealingWarmRestarts(optimizer, T_0=10, T_mult=2)
    """

    def __init__(
        self,
        optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        if not isinstance(T_0, int) or T_0 <= 0:
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if not isinstance(T_mult, int) or T_mult < 1:
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min!r}")
        self.T_0, self.T_i, self.T_mult = T_0, T_0, T_mult
        self.eta_min, self.T_cur = eta_min, last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list:
        """The rates at `T_cur` of the run."""
        self._check_called_by_step()
        wave = 1 + math.cos(math.pi * self.T_cur / self.T_i)
        low = self.eta_min
        return [low + (base - low) * wave / 2 for base in self.base_lrs]

    def step(self, epoch=None) -> None:
        """Go on by one, or to `epoch`, which may be a fraction."""
        if epoch is None and self.last_epoch >= 0:
            epoch = self.last_epoch + 1
            over, self.T_cur = divmod(self.T_cur + 1, self.T_i)
            self.T_i *= self.T_mult if over else 1
        else:
            epoch = epoch or 0
            if epoch < 0:
                raise ValueError(f"Expected non-negative epoch, but got {epoch}")
            self._seek(epoch)
        self.last_epoch = math.floor(epoch)
        self._get_lr_called_within_step = True
        try:
            rates = self.get_lr()
        finally:
            self._get_lr_called_within_step = False
        self._assign(rates)

    def _seek(self, epoch) -> None:
        """Set T_cur and T_i for any epoch: runs are T_0, T_0 m, T_0 m^2, ..."""
        first, grow = self.T_0, self.T_mult
        if epoch < first:
            self.T_i, self.T_cur = first, epoch
        elif grow == 1:
            self.T_cur = epoch % first
        else:
            run = int(math.log(epoch / first * (grow - 1) + 1, grow))
            self.T_cur = epoch - first * (grow**run - 1) / (grow - 1)
            self.T_i = first * grow**run


class OneCycleLR(_MomentumCycle):
    r"""Up to a large rate and down to a very small one, once.

    Smith and Topin, arXiv:1708.07120; call `step()` after every batch.

    Args:
        optimizer (Optimizer): whose rates are set.
        max_lr (float or list): the top.
        total_steps (int), or epochs (int) and steps_per_epoch (int): the length.
        pct_start (float): share of the rising part.
        anneal_strategy (str): "cos" or "linear".
        cycle_momentum (bool), base_momentum, max_momentum: the momentum's way.
        div_factor (float): top over first rate. final_div_factor (float): first
            over last. three_phase (bool): fall as long as it rose, then vanish.
        last_epoch (int): -1 to begin, else where to go on.

    Raises:
        ValueError: an option out of range, or more steps than were announced.

    Example:
        >>> schedule = OneCycleLR(optimizer, max_lr=0.1, total_steps=1000)
    """

    def __init__(
        self,
        optimizer,
        max_lr,
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum=0.85,
        max_momentum=0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        require_optimizer(optimizer)
        self.optimizer = optimizer
        self.total_steps = _length(total_steps, epochs, steps_per_epoch)
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ValueError(
                f"Expected float between 0 and 1 pct_start, but got {pct_start}"
            )
        self._schedule_phases = _phases(pct_start, self.total_steps, three_phase)
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                "anneal_strategy must be one of 'cos' or 'linear', instead got "
                f"{anneal_strategy}"
            )
        self._anneal_func_type = anneal_strategy
        tops = per_group("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for top, group in zip(tops, optimizer.param_groups, strict=True):
                group["initial_lr"] = top / div_factor
                group["max_lr"] = top
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._start_momenta(base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    def _anneal(self, start, end, share: float):
        if self._anneal_func_type == "linear":
            return (end - start) * share + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * share) + 1)

    def get_lr(self) -> list:
        """The rates for `last_epoch`; sets the momenta too."""
        self._check_called_by_step()
        now = self.last_epoch
        if now > self.total_steps:
            raise ValueError(
                f"Tried to step {now} times. The specified number of total steps is "
                f"{self.total_steps}"
            )
        start = 0.0
        for phase in self._schedule_phases:
            if now <= phase["end_step"]:
                break
            if phase is not self._schedule_phases[-1]:
                start = phase["end_step"]
        share = (now - start) / (phase["end_step"] - start)
        rates = []
        for group in self.optimizer.param_groups:
            ends = group[phase["start_lr"]], group[phase["end_lr"]]
            rates.append(self._anneal(*ends, share))
            if self.cycle_momentum:
                ends = group[phase["start_momentum"]], group[phase["end_momentum"]]
                set_momentum(group, self._anneal(*ends, share), self.use_beta1)
        return rates


def _length(total_steps, epochs, steps_per_epoch) -> int:
    given = {"total_steps": total_steps}
    if total_steps is None:
        given = {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
        if None in given.values():
            raise ValueError(
                "You must define either total_steps OR (epochs AND steps_per_epoch)"
            )
    for name, value in given.items():
        if not isinstance(value, int) or value <= 0:
            raise ValueError(f"Expected positive integer {name}, but got {value}")
    return math.prod(given.values())


def _phases(pct_start: float, total: int, three: bool) -> list[dict]:
    """The parts of the cycle, by the names of the group's options at their ends."""
    top = float(pct_start * total) - 1
    way = [("initial_lr", "max_momentum"), ("max_lr", "base_momentum")]
    ends = [top]
    if three:
        way.append(("initial_lr", "max_momentum"))
        ends.append(float(2 * pct_start * total) - 2)
    way.append(("min_lr", "max_momentum"))
    ends.append(total - 1)
    return [
        {
            "end_step": end,
            "start_lr": start[0],
            "end_lr": stop[0],
            "start_momentum": start[1],
            "end_momentum": stop[1],
        }
        for end, start, stop in zip(ends, way, way[1:], strict=False)
    ]
