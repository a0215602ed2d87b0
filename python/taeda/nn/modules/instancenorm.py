"""Instance normalization."""

from __future__ import annotations

from taeda import Tensor

from .. import functional as F
from .._native import warn
from .._types import MaybeDevice, MaybeDtype, MaybeFloat
from .batchnorm import _expect, _LazyNormBase, _NormBase

__all__ = [
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LazyInstanceNorm1d",
    "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
]


class _InstanceNorm(_NormBase):
    _unbatched: int  # rank of an input without batch

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: MaybeFloat = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: MaybeDevice = None,
        dtype: MaybeDtype = None,
        *,
        bias: bool = True,
    ) -> None:
        options = (eps, momentum, affine, track_running_stats, device, dtype)
        super().__init__(num_features, *options, bias=bias)

    def _check_input_dim(self, input) -> None:
        _expect(input, self._unbatched, self._unbatched + 1)

    def _get_no_batch_dim(self) -> int:
        return self._unbatched

    def _normalize(self, input):
        state = (self.running_mean, self.running_var, self.weight, self.bias)
        own = self.training or not self.track_running_stats
        momentum = 0.0 if self.momentum is None else self.momentum
        return F.instance_norm(input, *state, own, momentum, self.eps)

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing, unexpected, errors
    ) -> None:
        # Before version 1 running statistics were saved whether tracked or not.
        if local_metadata.get("version") is None and not self.track_running_stats:
            names = [prefix + name for name in ("running_mean", "running_var")]
            old = [name for name in names if name in state_dict]
            if old:
                errors.append(
                    f"Unexpected running stats buffer(s) {old} for "
                    f"{type(self).__name__} with track_running_stats=False: a "
                    "checkpoint from before 0.4.0 may have them. Remove the keys, or "
                    "make the layer with track_running_stats=True."
                )
                for name in old:
                    state_dict.pop(name)
        found = (missing, unexpected, errors)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, *found
        )

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        at = input.dim() - self._get_no_batch_dim()
        channels = input.size(at)
        if channels != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={at} to match num_features "
                    f"({self.num_features}), but got: {channels}."
                )
            warn(
                f"input's size at dim={at} does not match num_features, which is not "
                "used because affine=False; leave it out to silence this"
            )
        if at == 0:
            return self._normalize(input.unsqueeze(0)).squeeze(0)
        return self._normalize(input)


class InstanceNorm1d(_InstanceNorm):
    """(x - mean) / sqrt(var + eps) * weight + bias for each channel of each sample.

    Ulyanov et al., "Instance Normalization: The Missing Ingredient for Fast
    Stylization", 2016.

    Args:
        num_features: channels C of (N, C, L) or (C, L).
        eps: added to the variance.
        momentum: weight of a new batch in the running values.
        affine: whether there are weight and bias.
        track_running_stats: keep running values and use them in evaluation.
        device, dtype: of parameters and buffers.
        bias: False leaves out the bias alone.

    Raises:
        ValueError: input of another rank, of other channels (when affine), or of one
            element per channel.

    Example:
        >>> tuple(taeda.nn.InstanceNorm1d(3)(taeda.ones(3, 5)).shape)
        (3, 5)
    """

    _unbatched = 2


class InstanceNorm2d(_InstanceNorm):
    """`InstanceNorm1d` for images (N, C, H, W) or (C, H, W).

    Example:
        >>> tuple(taeda.nn.InstanceNorm2d(3)(taeda.ones(3, 5, 5)).shape)
        (3, 5, 5)
    """

    _unbatched = 3


class InstanceNorm3d(_InstanceNorm):
    """`InstanceNorm1d` for volumes (N, C, D, H, W) or (C, D, H, W).

    Example:
        >>> tuple(taeda.nn.InstanceNorm3d(3)(taeda.ones(3, 2, 2, 2)).shape)
        (3, 2, 2, 2)
    """

    _unbatched = 4


class LazyInstanceNorm1d(_LazyNormBase, _InstanceNorm):
    """An `InstanceNorm1d` that takes `num_features` from its first input.

    Example:
        >>> tuple(taeda.nn.LazyInstanceNorm1d()(taeda.ones(2, 3, 5)).shape)
        (2, 3, 5)
    """

    cls_to_become = InstanceNorm1d
    _unbatched = 2


class LazyInstanceNorm2d(_LazyNormBase, _InstanceNorm):
    """An `InstanceNorm2d` that takes `num_features` from its first input.

    Example:
        >>> tuple(taeda.nn.LazyInstanceNorm2d()(taeda.ones(2, 3, 5, 5)).shape)
        (2, 3, 5, 5)
    """

    cls_to_become = InstanceNorm2d
    _unbatched = 3


class LazyInstanceNorm3d(_LazyNormBase, _InstanceNorm):
    """An `InstanceNorm3d` that takes `num_features` from its first input.

    Example:
        >>> tuple(taeda.nn.LazyInstanceNorm3d()(taeda.ones(2, 3, 2, 2, 2)).shape)
        (2, 3, 2, 2, 2)
    """

    cls_to_become = InstanceNorm3d
    _unbatched = 4
