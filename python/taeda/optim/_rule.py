"""The engine that the gradient optimizers share.

An optimizer names the state that a parameter starts with (`_fresh`) and how one
parameter changes (`_rule`). Where it also has `_launch`, whole lists go to one native
call; that is the default, and `foreach=False`, `fused=False`, `differentiable=True`
and sparse gradients take the rule.
"""

from __future__ import annotations

from operator import is_

import taeda
from taeda.optim._options import check_options
from taeda.optim.optimizer import Optimizer

_CAPTURABLE_DEVICES = ("cuda", "xpu", "hpu", "privateuseone", "xla")
# Options that files of older versions lack, and what they then mean.
_LATER_OPTIONS = {
    "foreach": None,
    "fused": None,
    "maximize": False,
    "capturable": False,
    "differentiable": False,
    "amsgrad": False,
    "nesterov": False,
    "centered": False,
    "momentum": 0,
    "decoupled_weight_decay": False,
}


def scalar_dtype(fused: bool = False):
    """The dtype of step counters."""
    if not fused and taeda.get_default_dtype() == taeda.float64:
        return taeda.float64
    return taeda.float32


def as_scalar(value):
    """A one-element tensor as a 0-d tensor; anything else as it is."""
    if isinstance(value, taeda.Tensor) and value.dim():
        return value.squeeze()
    return value


def differentiates(value) -> bool:
    """Does autograd follow this option (a tensor that requires grad)?"""
    return isinstance(value, taeda.Tensor) and value.requires_grad


def add_scaled(x, y, scale) -> None:
    """x += scale * y."""
    if differentiates(scale):
        x.add_(y * scale)
    else:
        x.add_(y, alpha=float(scale))


def add_quotient(x, numerator, denominator, scale) -> None:
    """x += scale * numerator / denominator."""
    if isinstance(scale, taeda.Tensor) and (scale.requires_grad or scale.is_cuda):
        x.add_(numerator / denominator * scale)
    else:
        x.addcdiv_(numerator, denominator, value=float(scale))


class Plan:
    """The states of a parameter list, kept until either changes."""

    __slots__ = ("map", "pairs", "params", "parts", "states", "version")

    def __init__(self, optimizer, group, params) -> None:
        self.params = params
        self.pairs = any(map(taeda.is_complex, params))
        self.states = [optimizer._state_of(p, group) for p in params]
        self.parts = _by_mesh(params)
        self.map = optimizer.state
        self.version = getattr(self.map, "version", None)

    def holds(self, params, state) -> bool:
        return (
            self.map is state
            and self.version is not None
            and self.version == state.version
            and len(self.params) == len(params)
            and all(map(is_, self.params, params))
        )


def _by_mesh(params) -> list[list[int]] | None:
    """Numbers of the parameters of each mesh; None where one call takes all.

    A native call is of tensors of one mesh, or of none.
    """
    if all(type(p) is taeda.nn.Parameter for p in params):
        return None
    found: dict = {}
    for number, p in enumerate(params):
        found.setdefault(getattr(p, "device_mesh", None), []).append(number)
    return list(found.values()) if len(found) > 1 else None


class RuleOptimizer(Optimizer):
    """Base of the optimizers that update every parameter by itself."""

    _launch = None  # (group, params, grads, states): update all in one native call
    _takes_sparse = False
    _takes_complex = True
    _splits_complex = True  # the rule sees complex tensors as pairs of reals
    _scalars = ("step",)  # state that is a 0-d tensor
    _order: list | None = None  # of options in groups, if not that of the arguments

    def _begin(self, params, options: dict) -> None:
        """What the constructors of `declares_options` call."""
        self._check(options)
        super().__init__(params, {k: options[k] for k in self._order or options})
        if options.get("fused"):
            self._begin_fused(options)

    def _check(self, options: dict) -> None:
        """Raise ValueError if an option is out of range."""
        check_options(options)

    def _scaling(self) -> dict:
        """What a gradient scaler has left for the kernels of a fused step."""
        return {k: getattr(self, k, None) for k in ("grad_scale", "found_inf")}

    def _begin_fused(self, options: dict) -> None:
        if options["differentiable"]:
            raise RuntimeError("`fused` does not support `differentiable`")
        if options["foreach"]:
            raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
        self._step_supports_amp_scaling = True
        for group in self.param_groups:
            for p in group["params"]:
                if not p.is_floating_point():
                    raise RuntimeError(
                        "`fused=True` requires all the params to be floating point "
                        f"Tensors, but one is {p.dtype} on {p.device.type}"
                    )

    def _fresh(self, p, group) -> dict:
        raise NotImplementedError

    def _rule(self, x, g, s, group, t, keep) -> None:
        """Update `x` by gradient `g` and state `s` at step `t`.

        `keep` copies a tensor that autograd will need before it changes.
        """
        raise NotImplementedError

    def __setstate__(self, state: dict) -> None:
        options = set(state["defaults"] if "defaults" in state else self.defaults)
        super().__setstate__(state)
        for group in self.param_groups:
            for name, value in _LATER_OPTIONS.items():
                if name in options:
                    group.setdefault(name, value)
            for p in group["params"]:
                known = self.state.get(p)
                if known:
                    self._restore_scalars(p, group, known)

    def _restore_scalars(self, p, group, state: dict) -> None:
        on_device = group.get("fused") or group.get("capturable")
        for name in self._scalars:
            value = state.get(name)
            if value is not None and not isinstance(value, taeda.Tensor):
                state[name] = taeda.tensor(
                    float(value),
                    dtype=scalar_dtype(bool(group.get("fused"))),
                    device=p.device if on_device else None,
                )

    def _counter(self, p, group, start: float = 0.0):
        """A new step counter for `p`."""
        fused = bool(group.get("fused"))
        on_device = fused or group.get("capturable")
        return taeda.full(
            (),
            start,
            dtype=scalar_dtype(fused),
            device=p.device if on_device else "cpu",
        )

    def _state_of(self, p, group) -> dict:
        state = self.state[p]
        if not state:
            state.update(self._fresh(p, group))
        return state

    def step(self, closure=None):
        """Update every parameter that has a gradient.

        Args:
            closure: computes the loss anew and returns it; optional.

        Returns: what `closure` returned, or None.
        """
        loss = None
        if closure is not None:
            with taeda.enable_grad():
                loss = closure()
        before = taeda.is_grad_enabled()
        follow = bool(self.defaults.get("differentiable"))
        if before is not follow:
            taeda._C._set_grad_enabled(follow)
        try:
            for number, group in enumerate(self.param_groups):
                self._step_group(number, group)
        finally:
            if before is not follow:
                taeda._C._set_grad_enabled(before)
        return loss

    def _step_group(self, number: int, group: dict) -> None:
        if not self._batches(group):
            for p in group["params"]:
                if p.grad is not None:
                    self._update(p, p.grad, group)
            return
        params = group["params"]
        grads = [g for p in params if (g := p.grad) is not None and not g.is_sparse]
        if len(grads) == len(params):
            plans = self.__dict__.setdefault("_plans", {})
            plan = plans.get(number)
            if plan is None or not plan.holds(params, self.state):
                plan = plans[number] = self._plan(group, list(params))
            if params:
                self._launch_all(group, plan, grads)
            return
        self._step_some(group)

    def _step_some(self, group: dict) -> None:
        """Some parameters have no gradient, or a sparse one."""
        some = []
        for p in group["params"]:
            if p.grad is None:
                continue
            if p.grad.is_sparse:
                self._update(p, p.grad, group)
            else:
                some.append(p)
        if some:
            self._launch_all(group, self._plan(group, some), [p.grad for p in some])

    def _plan(self, group: dict, params: list) -> Plan:
        if group.get("fused") and any(p.is_meta for p in params):
            raise RuntimeError(
                "`fused=True` requires all the params to be floating point Tensors "
                "with memory, but one is on meta"
            )
        return Plan(self, group, params)

    def _batches(self, group: dict) -> bool:
        return not (
            self._launch is None
            or group.get("foreach") is False
            or group.get("fused") is False
            or group.get("differentiable")
            or group.get("capturable")
            or isinstance(group["lr"], taeda.Tensor)
            and not self._lists_take_tensor_lr(group)
        )

    def _lists_take_tensor_lr(self, group: dict) -> bool:
        return bool(group.get("fused"))

    def _launch_all(self, group, plan, grads) -> None:
        params, states = plan.params, plan.states
        if plan.parts is not None:
            for numbers in plan.parts:
                some = Plan(self, group, [params[i] for i in numbers])
                self._launch_all(group, some, [grads[i] for i in numbers])
            return
        if not plan.pairs:
            self._launch(group, params, grads, states)
            return
        real = taeda.view_as_real
        params = [real(p) if p.is_complex() else p for p in params]
        grads = [real(g) if g.is_complex() else g for g in grads]
        states = [_real_views(s) for s in states]
        self._launch(group, params, grads, states)

    def _update(self, p, g, group) -> None:
        """One parameter, through the rule."""
        name = type(self).__name__
        if g.is_sparse and not self._takes_sparse:
            raise RuntimeError(f"{name} does not support sparse gradients")
        if not self._takes_complex and p.is_complex():
            raise RuntimeError(f"{name} does not support complex parameters")
        capturable = group.get("capturable")
        if capturable and p.device.type not in _CAPTURABLE_DEVICES:
            raise AssertionError(
                "If capturable=True, params and state_steps must be on supported "
                f"devices: {list(_CAPTURABLE_DEVICES)}."
            )
        state = self._state_of(p, group)
        if group.get("maximize"):
            g = -g
        t = None
        if "step" in state:
            state["step"] += 1
            t = state["step"]
            if not capturable and isinstance(t, taeda.Tensor):
                t = t.item()
        g = self._decayed(p, g, group)
        if self._splits_complex and p.is_complex() and not g.is_sparse:
            p, g = taeda.view_as_real(p), taeda.view_as_real(g)
            state = _real_views(state)
        keep = _clone if group.get("differentiable") else _same
        self._rule(p, g, state, group, t, keep)

    def _decayed(self, p, g, group):
        """Weight decay: into the gradient, or off the parameter if decoupled."""
        decay = group.get("weight_decay", 0)
        if not differentiates(decay) and decay == 0:
            return g
        if group.get("decoupled_weight_decay"):
            p.mul_(1 - as_scalar(group["lr"]) * decay)
            return g
        if g.is_sparse:
            raise RuntimeError(
                "weight_decay option is not compatible with sparse gradients"
            )
        if differentiates(decay):
            return g.addcmul(p.clone(), decay)
        return g.add(p, alpha=float(decay))


def _clone(x):
    return x.clone()


def _same(x):
    return x


def _real_views(state: dict) -> dict:
    return {
        k: taeda.view_as_real(v)
        if isinstance(v, taeda.Tensor) and v.is_complex()
        else v
        for k, v in state.items()
    }
