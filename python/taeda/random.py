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
    _each_gpu("manual_seed_all", int(seed))
    _seed_program_device(int(seed))
    return default_generator.manual_seed(int(seed))


def _each_gpu(name: str, *args):
    """A function of `cuda.random`, where GPUs are in use: others have no generator
    yet, and take the CPU's seed when they get it."""
    if _C._gpu_is_in_use():
        from taeda.cuda import random

        return getattr(random, name)(*args)
    return ()


def _seed_program_device(seed: int) -> None:
    """Seed the devices that a program added, by the module that it registered."""
    import taeda

    name = _C._get_privateuse1_backend_name()
    module = vars(taeda).get(name)
    if module is None:
        return
    if not (hasattr(module, "_is_in_bad_fork") and hasattr(module, "manual_seed_all")):
        import warnings

        warnings.warn(
            f"manual_seed: the seed for the device {name} does not take effect: its "
            "module has no functions `_is_in_bad_fork` and `manual_seed_all`",
            stacklevel=3,
        )
    elif not module._is_in_bad_fork():
        module.manual_seed_all(seed)


def seed() -> int:
    """Seed all devices from the system's entropy; returns the seed."""
    value = default_generator.seed()
    _each_gpu("manual_seed_all", value)
    _seed_program_device(value)
    return value


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
        devices: GPUs whose state is kept as well; all that are in use unless given.
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
        self.devices = devices, device_type or "cuda"

    def __enter__(self) -> None:
        if self.enabled:
            self.state = get_rng_state()
            devices, kind = self.devices
            if devices is None:
                if kind == "cuda":
                    devices = range(len(_each_gpu("get_rng_state_all")))
                else:
                    devices = range(self._module(kind).device_count())
            self.states = [(d, self._module(kind).get_rng_state(d)) for d in devices]

    @staticmethod
    def _module(kind: str):
        import taeda

        return getattr(taeda, kind)

    def __exit__(self, *exception) -> None:
        if self.enabled:
            set_rng_state(self.state)
            for device, state in self.states:
                self._module(self.devices[1]).set_rng_state(state, device)

    def __call__(self, function):
        from functools import wraps

        @wraps(function)
        def run(*args, **kwargs):
            with type(self)(self.devices[0], self.enabled, device_type=self.devices[1]):
                return function(*args, **kwargs)

        return run


def _rebuild_generator(device: str, state) -> Generator:
    made = _C.Generator(device)
    made.set_state(state)
    return made
