"""Weight norm by a hook: deprecated, `parametrizations.weight_norm` replaces it."""

from __future__ import annotations

from .._native import native, warn
from ..parameter import Parameter, is_lazy

__all__ = ["WeightNorm", "remove_weight_norm", "weight_norm"]


class WeightNorm:
    """The forward pre-hook that computes w = g v / ||v||."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name, self.dim = name, -1 if dim is None else dim

    def compute_weight(self, module):
        """The weight of the present length and direction."""
        g, v = getattr(module, self.name + "_g"), getattr(module, self.name + "_v")
        return native("_weight_norm")(v, g, self.dim)

    @staticmethod
    def apply(module, name: str, dim: int | None) -> WeightNorm:
        """Split the weight and put the hook on `module`.

        Raises:
            RuntimeError: there is one already.
            ValueError: the weight is None or has no shape yet.
        """
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, WeightNorm) and hook.name == name:
                raise RuntimeError(
                    "Cannot register two weight_norm hooks on the same parameter "
                    f"{name}"
                )
        made, weight = WeightNorm(name, dim), getattr(module, name)
        if is_lazy(weight):
            raise ValueError(
                "The module passed to `WeightNorm` can't have uninitialized "
                "parameters: run its forward once first"
            )
        del module._parameters[name]
        length = native("norm_except_dim")(weight, 2, made.dim)
        module.register_parameter(name + "_g", Parameter(length.data))
        module.register_parameter(name + "_v", Parameter(weight.data))
        setattr(module, name, made.compute_weight(module))
        module.register_forward_pre_hook(made)
        return made

    def remove(self, module) -> None:
        """Make the weight an ordinary parameter again."""
        weight = self.compute_weight(module)
        for name in (self.name, self.name + "_g", self.name + "_v"):
            delattr(module, name)
        setattr(module, self.name, Parameter(weight.data))

    def __call__(self, module, inputs) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module, name: str = "weight", dim: int = 0):
    """Split a weight into length and direction; see `parametrizations.weight_norm`.

    Deprecated. Salimans and Kingma, "Weight Normalization", 2016.

    Example:
        >>> layer = taeda.nn.utils.weight_norm(taeda.nn.Linear(4, 2))
        >>> tuple(layer.weight_g.shape)
        (2, 1)
    """
    warn(
        "`nn.utils.weight_norm` is deprecated in favor of "
        "`nn.utils.parametrizations.weight_norm`.",
        FutureWarning,
    )
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module, name: str = "weight"):
    """Undo `weight_norm`.

    Raises:
        ValueError: there is none of that name.
    """
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"weight_norm of '{name}' not found in {module}")
