"""DistributedDataParallel of a module in place."""

from __future__ import annotations

import taeda
from taeda.nn import ParameterList

from .contract import contract

__all__ = ["replicate"]


class _State:
    """A module's reducer, made when the module runs first."""

    def __init__(self) -> None:
        self.parallel = None
        self.syncs = True
        self.hooks: list = []
        self.make = None

    def before(self, _module, _args) -> None:
        if self.parallel is None:
            self.parallel = self.make()
        for args, kwargs in self.hooks:
            self.parallel.register_comm_hook(*args, **kwargs)
        self.hooks.clear()
        self.parallel.require_backward_grad_sync = self.syncs
        self.parallel._before_forward()

    def after(self, _module, _args, output) -> None:
        self.parallel._after_forward(output)


class DDP:
    """The second base of the classes that `replicate` gives to modules."""

    def __new__(cls, *args, **kwargs):
        original = cls.__mro__[cls.__mro__.index(DDP) + 1]
        made = original.__new__(original, *args, **kwargs)
        made.__init__(*args, **kwargs)
        return made

    def __deepcopy__(self, memo):
        raise AssertionError(
            "DDP does not support deepcopy. Please use state dict for serialization."
        )

    def set_requires_gradient_sync(self, requires_gradient_sync: bool) -> None:
        """Whether the next backward passes send gradients."""
        replicate.state(self).syncs = requires_gradient_sync

    def register_comm_hook(self, *args, **kwargs) -> None:
        """As `DistributedDataParallel.register_comm_hook`, at the next forward pass."""
        replicate.state(self).hooks.append((args, kwargs))


def _collect(module, ignored, found: dict) -> None:
    """Parameters below, short of modules that other functions manage."""
    from taeda.distributed.fsdp._slots import unit_of

    if module in ignored or unit_of(module) is not None:
        return
    for parameter in module._parameters.values():
        if parameter is not None:
            found.setdefault(id(parameter), parameter)
    for child in module.children():
        if replicate.state(child) is None:
            _collect(child, ignored, found)


@contract(state_cls=_State)
def replicate(module, ignored_modules=None, **kwargs):
    """Averages a module's gradients over ranks in each backward pass.

    Args:
        module: it; its class becomes a subclass of its own.
        ignored_modules: modules whose parameters are left alone.
        kwargs: of `DistributedDataParallel`; `device_id` in place of its `device_ids`.

    Raises:
        RuntimeError: `fully_shard` manages it, or `device_id` is no device.
        NotImplementedError: `mixed_precision`.
    """
    from taeda.distributed.fsdp._slots import unit_of

    if "device_id" in kwargs:
        device = kwargs.pop("device_id")
        if not isinstance(device, (int, taeda.device)):
            raise RuntimeError(
                f"Expected device_id to be int or torch.device, but got {type(device)}"
            )
        if not (isinstance(device, taeda.device) and device.type == "cpu"):
            kwargs["device_ids"] = [device]
    if unit_of(module) is not None:
        raise RuntimeError(
            "Cannot apply `replicate()` on a Module already managed by `fully_shard`"
        )
    if kwargs.get("mixed_precision") is not None:
        raise NotImplementedError("replicate: mixed_precision")
    ignored = set(ignored_modules or ())
    state = replicate.state(module)

    def make():
        from taeda.nn.parallel import DistributedDataParallel

        found: dict = {}
        _collect(module, ignored, found)
        return DistributedDataParallel(ParameterList(found.values()), **kwargs)

    state.make = make
    module.register_forward_pre_hook(state.before)
    module.register_forward_hook(state.after)
    cls = type(module)
    module.__class__ = type(f"DDP{cls.__name__}", (DDP, cls), {})
    return module
