"""Weight norm by a hook: deprecated, `parametrizations.weight_norm` replaces it."""

from __future__ import annotations

from .._native import native, warn
from ..parameter import Parameter
from ._weight_hook import WeightHook

__all__ = ["WeightNorm", "remove_weight_norm", "weight_norm"]


class WeightNorm(WeightHook):
    """The forward pre-hook that computes w = g v / ||v||."""

    _function = "weight_norm"
    _suffixes = ("_g", "_v")

    def __init__(self, name: str, dim: int | None) -> None:
        self.name, self.dim = name, -1 if dim is None else dim

    def compute_weight(self, module):
        """The weight of the present length and direction."""
        length, direction = self._parts(module)
        return native("_weight_norm")(direction, length, self.dim)

    @staticmethod
    def apply(module, name: str, dim: int | None) -> WeightNorm:
        """Split the weight and put the hook on `module`.

        Raises:
            RuntimeError: there is one already.
            ValueError: the weight has no shape yet.
        """
        WeightNorm._refuse_second(module, name)
        hook = WeightNorm(name, dim)
        weight = hook._sized(getattr(module, name)).data
        del module._parameters[name]
        length = native("norm_except_dim")(weight, 2, hook.dim)
        for suffix, part in zip(hook._suffixes, (length, weight), strict=True):
            module.register_parameter(name + suffix, Parameter(part))
        hook(module, ())
        module.register_forward_pre_hook(hook)
        return hook

    def remove(self, module) -> None:
        """Make the weight an ordinary parameter again."""
        self._restore(module, self.compute_weight(module))

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
    return WeightNorm._undo(module, name)
