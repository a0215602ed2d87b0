"""Seeds and states of the random number generators."""

from __future__ import annotations

from taeda import _C
from taeda._C import Generator, default_generator

__all__ = [
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
    "thread_safe_generator",
]


def manual_seed(seed: int) -> Generator:
    """Seed the generators of all devices.

    Args:
        seed: an integer in [-2**63, 2**64); negative ones count from 2**64.

    Returns:
        The CPU's generator.

    Example:
        >>> taeda.manual_seed(0).initial_seed()
        0
    """
    return default_generator.manual_seed(int(seed))


def seed() -> int:
    """Seed from the system's entropy; returns the seed."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed last set.

    Example:
        >>> gen = taeda.manual_seed(7)
        >>> taeda.initial_seed()
        7
    """
    return default_generator.initial_seed()


def get_rng_state():
    """The CPU generator's state as a uint8 tensor.

    Example:
        >>> state = taeda.get_rng_state()
        >>> a = taeda.rand(2)
        >>> taeda.set_rng_state(state)
        >>> taeda.equal(taeda.rand(2), a)
        True
    """
    return default_generator.get_state()


def set_rng_state(new_state) -> None:
    """Go back to a state of `get_rng_state`.

    Example:
        >>> taeda.set_rng_state(taeda.get_rng_state())
    """
    default_generator.set_state(new_state)


def thread_safe_generator() -> Generator | None:
    """None: every thread draws from the default generator, which locks."""
    return None


class fork_rng:
    """Whatever is drawn inside leaves the state outside as it was.

    Args:
        devices: accelerators whose state is kept as well; there are none.
        enabled: False does nothing.
        device_type: the kind of these accelerators; "cuda" unless given.

    Example:
        >>> with taeda.random.fork_rng():
        ...     _ = taeda.rand(3)
    """

    def __init__(
        self,
        devices=None,
        enabled: bool = True,
        _caller: str = "fork_rng",
        _devices_kw: str = "devices",
        device_type: str | None = None,
    ) -> None:
        self.enabled = enabled
        self.devices = list(devices or ()), device_type or "cuda"

    def __enter__(self) -> None:
        if self.enabled:
            self.state = get_rng_state()
            self._refuse_devices()

    def _refuse_devices(self) -> None:
        devices, kind = self.devices
        if devices:
            import taeda

            getattr(taeda, kind).get_rng_state(devices[0])

    def __exit__(self, *exception) -> None:
        if self.enabled:
            set_rng_state(self.state)

    def __call__(self, function):
        from functools import wraps

        @wraps(function)
        def run(*args, **kwargs):
            with type(self)(enabled=self.enabled):
                return function(*args, **kwargs)

        return run


def _rebuild_generator(device: str, state) -> Generator:
    made = _C.Generator(device)
    made.set_state(state)
    return made
