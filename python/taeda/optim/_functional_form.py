"""Optimizers as functions of lists, for programs that keep the state themselves."""

from __future__ import annotations

import taeda
from taeda.optim._rule import Plan, RuleOptimizer

# Entries of a state whose list has another name than theirs with an "s".
_ENTRIES = {
    "momentum_buffer_list": "momentum_buffer",
    "state_steps": "step",
    "state_sums": "sum",
}
# Options that are pairs, and the names of their halves.
_PAIRS = {
    "betas": ("beta1", "beta2"),
    "etas": ("etaminus", "etaplus"),
    "step_sizes": ("step_size_min", "step_size_max"),
}


def functional_form(
    optimizer: type[RuleOptimizer],
    name: str,
    lists: str,
    defaults: str,
    options: str,
    gradients: str = "grads",
):
    """One step of an optimizer, as a function of its parameters and their state.

    Args:
        optimizer: whose step it is.
        name: of the function.
        lists: names of the lists of state, in order.
        defaults: arguments after them, "name=value" each.
        options: arguments without a value, by keyword only.
        gradients: name of the list of gradients.
    """
    places = ["params", gradients, *lists.split()]

    def step(given: dict) -> None:
        params, grads, *kept = (given.pop(place) for place in places)
        _step(optimizer, params, grads, dict(zip(places[2:], kept, strict=True)), given)

    # A function of that signature, without `inspect`, which takes long to import.
    arguments = ", ".join([*places, *defaults.split(), "*", *options.split()])
    space = {"step": step, "__name__": optimizer.__module__}
    exec(f"def {name}({arguments}) -> None:\n    step(locals())", space)
    made = space[name]
    made.__doc__ = _DOC.format(
        kind=optimizer.__name__,
        lists=", ".join(places[2:]),
        call=f"{optimizer.__module__}.{name}",
        given=", ".join([*map(_shown, places[2:]), *map(_SHOWN.get, options.split())]),
    )
    return made


# Options as the examples give them, and numbers among the states.
_SHOWN = {
    text.partition("=")[0]: text
    for text in (
        "alpha=0.9 amsgrad=False beta1=0.9 beta2=0.99 centered=False dampening=0.0"
        " eps=1e-8 etaminus=0.5 etaplus=1.2 lambd=0.01 lr=0.1 lr_decay=0.0"
        " maximize=False momentum=0.0 momentum_decay=0.004 nesterov=False rho=0.9"
        " step_size_max=50.0 step_size_min=1e-6 t0=1.0 weight_decay=0.0"
    ).split()
}
_NUMBERS = ("state_steps", "etas", "mus", "mu_products")


def _shown(name: str) -> str:
    """A list of state at the first step, as the examples give it."""
    if name in ("max_exp_avg_sqs", "momentum_buffer_list", "grad_avgs"):
        return "[]"
    return "[taeda.tensor(1.0)]" if name in _NUMBERS else "[taeda.zeros(2)]"


_DOC = """One step of `{kind}` on lists of tensors, which are changed in place.

Args:
    params, ...: the parameters, their gradients, and the state of each: {lists}.
    foreach, fused (bool): False takes the plain loop.
    has_complex, has_sparse_grad (bool): accepted; the tensors say it themselves.

The others are options of `{kind}`. Call it under `no_grad()`.

Raises:
    TypeError: an option is missing.
    ValueError: a list has another length than the parameters.

Example:
    >>> x, gradient = taeda.ones(2), taeda.ones(2)
    >>> {call}([x], [gradient], {given})
"""


def _step(optimizer, params, grads, kept: dict, options: dict) -> None:
    """Steps an optimizer that has no parameters of its own."""
    own = object.__new__(optimizer)
    own.grad_scale = options.pop("grad_scale", None)
    own.found_inf = options.pop("found_inf", None)
    for pair, halves in _PAIRS.items():
        if halves[0] in options:
            options[pair] = tuple(options.pop(half) for half in halves)
    options.setdefault("decoupled_weight_decay", optimizer is taeda.optim.AdamW)
    # What only the class has: a function's state says nothing of how it began.
    options.setdefault("lr", 0.0)
    own.defaults, states = options, _states(params, grads, kept)
    own.state = dict(zip(params, states, strict=True))
    sparse = any(g.is_sparse for g in grads)
    if own._batches(options) and not sparse and params:
        own._launch_all(options, Plan(own, options, list(params)), list(grads))
    else:
        for p, g in zip(params, grads, strict=True):
            own._update(p, g, options)
    for name, values in kept.items():
        entry = _entry(name)
        for i, state in enumerate(states[: len(values)]):
            if values[i] is not state.get(entry):
                values[i] = state[entry]


def _entry(name: str) -> str:
    return _ENTRIES.get(name) or name.removesuffix("s")


def _states(params, grads, kept: dict) -> list[dict]:
    """The state of each parameter; lists that an option does not need are empty."""
    lengths = {"grads": len(grads), **{n: len(v) for n, v in kept.items() if v}}
    for name, length in lengths.items():
        if length != len(params):
            raise ValueError(f"{name}: expected {len(params)} tensors, got {length}")
    return [{_entry(n): v[i] for n, v in kept.items() if v} for i in range(len(params))]
