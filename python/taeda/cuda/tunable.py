"""The choice of GPU kernels by trial: there is none, and it cannot be switched on."""

from __future__ import annotations

from taeda.cuda._devices import _driver

__all__ = [
    "enable",
    "get_results",
    "get_validators",
    "is_enabled",
    "record_untuned_enable",
    "record_untuned_is_enabled",
    "tuning_enable",
    "tuning_is_enabled",
]


def _switch(name: str):
    """A switch that can only be off, and the question about it."""

    def enable(val: bool = True) -> None:
        if val:
            _driver()
            raise NotImplementedError(f"cuda.tunable.{name}(True) is not there yet")

    def is_enabled() -> bool:
        return False

    question = name.replace("enable", "is_enabled")
    for function, called in ((enable, name), (is_enabled, question)):
        function.__name__ = function.__qualname__ = called
    enable.__doc__ = (
        "Changes nothing for False.\n\nRaises:\n    AssertionError: True, without a "
        "GPU.\n    NotImplementedError: True, with one."
    )
    is_enabled.__doc__ = "False."
    return enable, is_enabled


enable, is_enabled = _switch("enable")
tuning_enable, tuning_is_enabled = _switch("tuning_enable")
record_untuned_enable, record_untuned_is_enabled = _switch("record_untuned_enable")


def get_results() -> tuple:
    """What trials have found: nothing."""
    return ()


def get_validators() -> tuple:
    """What results would have to agree with: nothing."""
    return ()
