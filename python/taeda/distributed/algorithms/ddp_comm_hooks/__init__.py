"""How buckets of gradients travel: whole, in half precision, compressed."""

from __future__ import annotations

from taeda._lazy import attributes

__all__ = ["DDPCommHookType", "register_ddp_comm_hook"]
__getattr__ = attributes(
    __name__,
    {},
    ("ddp_zero_hook", "debugging_hooks", "default_hooks", "powerSGD_hook"),
)


class DDPCommHookType:
    """The hooks by name: `ALLREDUCE`, `FP16_COMPRESS`, `BF16_COMPRESS`, `POWER_SGD`,
    `NOOP`."""

    _NAMES = {
        "ALLREDUCE": ("default_hooks", "allreduce_hook"),
        "FP16_COMPRESS": ("default_hooks", "fp16_compress_hook"),
        "BF16_COMPRESS": ("default_hooks", "bf16_compress_hook"),
        "POWER_SGD": ("powerSGD_hook", "powerSGD_hook"),
        "NOOP": ("debugging_hooks", "noop_hook"),
    }

    def __init__(self, name: str) -> None:
        self.name = name

    def hook(self):
        """The function."""
        from importlib import import_module

        module, function = self._NAMES[self.name]
        return getattr(import_module(f"{__name__}.{module}"), function)


for _name in DDPCommHookType._NAMES:
    setattr(DDPCommHookType, _name, DDPCommHookType(_name))


def register_ddp_comm_hook(comm_hook_type, model, state=None) -> None:
    """Gives a `DistributedDataParallel` one of the hooks.

    Args:
        comm_hook_type: which.
        model: the wrapped model.
        state: what the hook is given; by default the model's group.
    """
    group = model.process_group if state is None else state
    model.register_comm_hook(group, comm_hook_type.hook())
