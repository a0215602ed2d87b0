"""Batch normalization."""

from __future__ import annotations

import taeda
from taeda import Tensor

from .. import functional as F
from .._types import MaybeDevice, MaybeDtype, MaybeFloat
from ..parameter import Parameter, UninitializedBuffer, UninitializedParameter
from .lazy import LazyModuleMixin
from .module import Module

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "LazyBatchNorm1d",
    "LazyBatchNorm2d",
    "LazyBatchNorm3d",
    "SyncBatchNorm",
]

_STATE = ("running_mean", "running_var", "num_batches_tracked")


class _NormBase(Module):
    """Affine parameters and running statistics of batch and instance norm."""

    _version = 2
    __constants__ = ["track_running_stats", "momentum", "eps", "num_features", "affine"]

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: MaybeFloat = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: MaybeDevice = None,
        dtype: MaybeDtype = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.__dict__.update(num_features=num_features, eps=eps, momentum=momentum)
        self.affine, self.track_running_stats = affine, track_running_stats
        kind = {"device": device, "dtype": dtype}
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            made = Parameter(taeda.empty(num_features, **kind)) if wanted else None
            self.register_parameter(name, made)
        if track_running_stats:
            self.register_buffer("running_mean", taeda.zeros(num_features, **kind))
            self.register_buffer("running_var", taeda.ones(num_features, **kind))
            count = taeda.tensor(0, dtype=taeda.int64, device=device)
            self.register_buffer("num_batches_tracked", count)
        else:
            for name in _STATE:
                self.register_buffer(name, None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Mean 0, variance 1, no batch seen."""
        if self.track_running_stats:
            for name, value in zip(_STATE, (0, 1, 0), strict=False):
                getattr(self, name).fill_(value)

    def reset_parameters(self) -> None:
        """Running statistics and affine parameters as at the beginning."""
        self.reset_running_stats()
        if self.affine:
            with taeda.no_grad():
                self.weight.fill_(1.0)
                if self.bias is not None:
                    self.bias.zero_()

    def _check_input_dim(self, input) -> None:
        raise NotImplementedError(
            f"{type(self).__name__} does not define _check_input_dim()"
        )

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={self.affine}, bias={self.bias is not None}, "
            f"track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, *rest) -> None:
        version = local_metadata.get("version")
        key = prefix + "num_batches_tracked"
        old = version is None or version < 2  # had no count
        if old and self.track_running_stats and key not in state_dict:
            count = self.num_batches_tracked
            known = count is not None and not count.is_meta
            state_dict[key] = count if known else taeda.tensor(0, dtype=taeda.int64)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


class _BatchNorm(_NormBase):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: MaybeFloat = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: MaybeDevice = None,
        dtype: MaybeDtype = None,
        *,
        bias: bool = True,
    ) -> None:
        options = (eps, momentum, affine, track_running_stats, device, dtype)
        super().__init__(num_features, *options, bias=bias)

    def _statistics(self):
        """Count this batch; returns (mean, var, use the batch's own, its weight)."""
        own = self._buffers
        mean, var, count = (own[name] for name in _STATE)
        training, momentum = self.training, self.momentum
        factor = 0.0 if momentum is None else momentum
        if training and self.track_running_stats and count is not None:
            count.add_(1)
            if momentum is None:  # the plain average of all batches
                factor = 1.0 / float(count)
        if training and not self.track_running_stats:
            return None, None, True, factor
        return mean, var, training or (mean is None and var is None), factor

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        mean, var, batch, factor = self._statistics()
        affine = (self.weight, self.bias)
        return F.batch_norm(input, mean, var, *affine, batch, factor, self.eps)


def _expect(input, *ranks) -> None:
    if input.dim() not in ranks:
        wanted = " or ".join(f"{rank}D" for rank in ranks)
        raise ValueError(f"expected {wanted} input (got {input.dim()}D input)")


class BatchNorm1d(_BatchNorm):
    """(x - mean) / sqrt(var + eps) * weight + bias for each channel of a batch.

    Ioffe and Szegedy, "Batch Normalization: Accelerating Deep Network Training by
    Reducing Internal Covariate Shift", 2015. While training, mean and (biased)
    variance are the batch's, and running values follow them for evaluation.

    Args:
        num_features: channels C of (N, C) or (N, C, L).
        eps: added to the variance.
        momentum: weight of a new batch in the running values; None averages all.
        affine: whether there are weight and bias.
        track_running_stats: otherwise evaluation uses the batch's values as well.
        device, dtype: of parameters and buffers.
        bias: False leaves out the bias alone.

    Raises:
        ValueError: input of another rank, or of one value per channel in training.

    Example:
        >>> taeda.nn.BatchNorm1d(2)(taeda.tensor([[1.0, 2.0], [1.0, 2.0]])).sum()
        tensor(0., grad_fn=<SumBackward0>)
    """

    def _check_input_dim(self, input) -> None:
        _expect(input, 2, 3)


class BatchNorm2d(_BatchNorm):
    """`BatchNorm1d` for images (N, C, H, W).

    Example:
        >>> tuple(taeda.nn.BatchNorm2d(2)(taeda.ones(1, 2, 3, 3)).shape)
        (1, 2, 3, 3)
    """

    def _check_input_dim(self, input) -> None:
        _expect(input, 4)


class BatchNorm3d(_BatchNorm):
    """`BatchNorm1d` for volumes (N, C, D, H, W).

    Example:
        >>> tuple(taeda.nn.BatchNorm3d(2)(taeda.ones(1, 2, 3, 3, 3)).shape)
        (1, 2, 3, 3, 3)
    """

    def _check_input_dim(self, input) -> None:
        _expect(input, 5)


class _LazyNormBase(LazyModuleMixin, _NormBase):
    def __init__(
        self,
        eps: float = 1e-5,
        momentum: MaybeFloat = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: MaybeDevice = None,
        dtype: MaybeDtype = None,
        *,
        bias: bool = True,
    ) -> None:
        kind = {"device": device, "dtype": dtype}
        super().__init__(0, eps, momentum, False, False, **kind, bias=False)
        self.affine, self.track_running_stats = affine, track_running_stats
        if affine:
            self.weight = UninitializedParameter(**kind)
            if bias:
                self.bias = UninitializedParameter(**kind)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(**kind)
            self.running_var = UninitializedBuffer(**kind)
            count = taeda.tensor(0, dtype=taeda.int64, device=device)
            self.num_batches_tracked = count

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input) -> None:
        """Take `num_features` from dimension 1 of `input`."""
        if not self.has_uninitialized_params():
            return
        self.num_features = input.shape[1]
        for name in ("weight", "bias", "running_mean", "running_var"):
            value = getattr(self, name)
            if value is not None:
                value.materialize((self.num_features,))
        self.reset_parameters()


class LazyBatchNorm1d(_LazyNormBase, _BatchNorm):
    """A `BatchNorm1d` that takes `num_features` from its first input.

    Example:
        >>> tuple(taeda.nn.LazyBatchNorm1d()(taeda.ones(2, 3)).shape)
        (2, 3)
    """

    cls_to_become = BatchNorm1d
    _check_input_dim = BatchNorm1d._check_input_dim


class LazyBatchNorm2d(_LazyNormBase, _BatchNorm):
    """A `BatchNorm2d` that takes `num_features` from its first input.

    Example:
        >>> tuple(taeda.nn.LazyBatchNorm2d()(taeda.ones(2, 3, 1, 1)).shape)
        (2, 3, 1, 1)
    """

    cls_to_become = BatchNorm2d
    _check_input_dim = BatchNorm2d._check_input_dim


class LazyBatchNorm3d(_LazyNormBase, _BatchNorm):
    """A `BatchNorm3d` that takes `num_features` from its first input.

    Example:
        >>> tuple(taeda.nn.LazyBatchNorm3d()(taeda.ones(2, 3, 1, 1, 1)).shape)
        (2, 3, 1, 1, 1)
    """

    cls_to_become = BatchNorm3d
    _check_input_dim = BatchNorm3d._check_input_dim


class SyncBatchNorm(_BatchNorm):
    """Batch normalization over the batches of all processes of a group.

    With one process, or in evaluation, it is `BatchNorm1d` for any rank of at least
    2. Across processes the mean and variance are those of all their batches.

    Args:
        num_features, eps, momentum, affine, track_running_stats, device, dtype, bias:
            as for `BatchNorm1d`.
        process_group: the processes; default all.

    Raises:
        ValueError: input of rank below 2, or without channels.

    Example:
        >>> tuple(taeda.nn.SyncBatchNorm(2)(taeda.ones(4, 2)).shape)
        (4, 2)
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: MaybeFloat = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group=None,
        device: MaybeDevice = None,
        dtype: MaybeDtype = None,
        *,
        bias: bool = True,
    ) -> None:
        options = (eps, momentum, affine, track_running_stats, device, dtype)
        super().__init__(num_features, *options, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input) -> None:
        rank = input.dim()
        if rank < 2:
            raise ValueError(f"expected at least 2D input (got {rank}D input)")
        if not input.size(1):
            raise ValueError(
                "SyncBatchNorm number of input channels should be non-zero"
            )

    def _processes(self) -> int:
        """How many processes share a batch; 1 where none is distributed."""
        import sys

        shared = sys.modules.get("taeda.distributed")
        if shared is None or not shared.is_initialized():
            return 1
        return shared.get_world_size(self.process_group)

    def forward(self, input: Tensor) -> Tensor:
        shared = self.training or self.running_mean is None
        if not shared or self._processes() == 1:
            return super().forward(input)
        self._check_input_dim(input)
        from taeda.nn.modules._sync_batch_norm import normalize

        return normalize(self, input)

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group=None) -> Module:
        """`module` with every batch norm in it made a SyncBatchNorm.

        Args:
            module: changed in place, unless it is itself a batch norm.
            process_group: of the new layers.
        """
        made = module
        if isinstance(module, _BatchNorm):
            made = SyncBatchNorm._sharing(module, process_group)
        for name, child in module.named_children():
            made.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return made

    @staticmethod
    def _sharing(norm, process_group) -> SyncBatchNorm:
        """A SyncBatchNorm of the parameters and buffers of another batch norm."""
        names = "num_features eps momentum affine track_running_stats"
        options = (getattr(norm, name) for name in names.split())
        made = SyncBatchNorm(*options, process_group, bias=norm.bias is not None)
        made._parameters.update(norm._parameters)
        made._buffers.update(norm._buffers)
        for name in ("training", "qconfig"):
            if hasattr(norm, name):
                setattr(made, name, getattr(norm, name))
        return made
