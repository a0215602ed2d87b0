"""Constructors made from the options that an optimizer declares.

An optimizer names each option once, as a dataclass names its fields:

    @declares_options
    class Descent(RuleOptimizer):
        params: ParamsT
        lr: float | Tensor = 1e-3
        _: KW_ONLY
        maximize: bool = False

The constructor is a function of its own with that signature, so that `help`, `inspect`,
editors and type checkers see what they would see of one that is written out.
"""

from __future__ import annotations

import sys

import taeda

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dataclasses import KW_ONLY
    from typing import dataclass_transform
else:
    KW_ONLY = None

    def dataclass_transform(**_):
        return lambda made: made


@dataclass_transform(eq_default=False)
def declares_options(cls):
    """Give a class a constructor that passes on the options which the class declares.

    It calls `self._begin(params, options)`, where `options` is a dict in the order of
    the declaration. Class attributes of the options' names do not remain.
    """
    declared = dict(cls.__dict__["__annotations__"])
    names = [name for name in declared if name not in ("params", "_")]
    values = {name: cls.__dict__[name] for name in names}
    arguments = ", ".join("*" if name == "_" else name for name in declared)
    pairs = ", ".join(f"{name}={name}" for name in names)
    space: dict = {}
    code = f"def __init__(self, {arguments}): self._begin(params, dict({pairs}))"
    exec(code, sys.modules[cls.__module__].__dict__, space)
    made = space["__init__"]
    by_name = list(declared)[list(declared).index("_") :] if "_" in declared else []
    made.__defaults__ = tuple(v for name, v in values.items() if name not in by_name)
    made.__kwdefaults__ = {name: values[name] for name in by_name if name != "_"}
    declared.pop("_", None)
    made.__annotations__ = {**declared, "return": None}
    made.__module__, made.__qualname__ = cls.__module__, f"{cls.__qualname__}.__init__"
    cls.__init__, cls.__annotations__ = made, {}
    for name in names:
        delattr(cls, name)
    return cls


def check(valid, message: str) -> None:
    """Raise ValueError(message) unless `valid`."""
    if not valid:
        raise ValueError(message)


# Options that are never negative, and what an error calls them.
_NOT_NEGATIVE = {
    "eps": "epsilon",
    "initial_accumulator_value": "initial_accumulator_value",
    "lr_decay": "lr_decay",
    "momentum": "momentum",
    "momentum_decay": "momentum_decay",
    "weight_decay": "weight_decay",
}


def check_options(options: dict) -> None:
    """Check what most optimizers have in common."""
    lr, betas = options["lr"], options.get("betas", ())
    check_rate(lr, f"Invalid learning rate: {lr}")
    for place, beta in enumerate(betas):
        valid = 0 <= beta < 1
        check(valid, f"Invalid beta parameter at index {place}: {beta}")
    for name in options.keys() & _NOT_NEGATIVE.keys():
        value = options[name]
        check(value >= 0, f"Invalid {_NOT_NEGATIVE[name]} value: {value}")


def check_rate(lr, message: str) -> None:
    """Raise ValueError(message) for a negative rate."""
    if isinstance(lr, taeda.Tensor):
        check(lr.numel() == 1, "Tensor lr must be 1-element")
    check(lr >= 0, message)
