"""Generators of GPUs.

Each device has one, from which operators draw that are given none. A seed gives the
numbers that it gives in PyTorch on the same kind of device. Where there is no GPU,
seeds and states for all of them are for none.
"""

from __future__ import annotations

from taeda import _cuda
from taeda.cuda._devices import device_count, index_of, is_available

__all__ = [
    "get_rng_state",
    "get_rng_state_all",
    "initial_seed",
    "manual_seed",
    "manual_seed_all",
    "seed",
    "seed_all",
    "set_rng_state",
    "set_rng_state_all",
]


def _generator(device="cuda"):
    return _cuda.default_generator(index_of(device))


def __getattr__(name: str):
    if name == "default_generators":
        return tuple(map(_generator, range(device_count() if is_available() else 0)))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def get_rng_state(device="cuda"):
    """The state of a device's generator: seed and offset, 16 bytes, as a uint8 tensor
    on the CPU.

    Args:
        device: a device, its index or its name; the current one unless given.
    """
    return _generator(device).get_state()


def set_rng_state(new_state, device="cuda") -> None:
    """Go back to a state of `get_rng_state`; nothing without a GPU."""
    if is_available():
        _generator(device).set_state(new_state.cpu().clone())


def get_rng_state_all() -> list:
    """The states of all devices' generators."""
    return [g.get_state() for g in __getattr__("default_generators")]


def set_rng_state_all(new_states) -> None:
    """States for the generators of all devices, in their order."""
    for device, state in enumerate(new_states):
        set_rng_state(state, device)


def manual_seed(seed: int) -> None:
    """Seed the current device's generator; without a GPU there is nothing to seed."""
    if is_available():
        _generator().manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Seed the generators of all devices."""
    for generator in __getattr__("default_generators"):
        generator.manual_seed(int(seed))


def seed() -> None:
    """Seed the current device's generator from the system's entropy."""
    if is_available():
        _generator().seed()


def seed_all() -> None:
    """Seed all devices' generators, alike, from the system's entropy."""
    generators = __getattr__("default_generators")
    if generators:
        manual_seed_all(generators[0].seed())


def initial_seed() -> int:
    """The seed of the current device's generator.

    Raises:
        AssertionError: there is no GPU.
    """
    return _generator().initial_seed()
