"""Styles: how a module's weights, inputs and outputs are placed."""

from __future__ import annotations

from abc import ABC, abstractmethod

import taeda
from taeda import nn

from ...device_mesh import DeviceMesh
from .._api import DTensor, distribute_tensor
from .._modules import distribute_module
from ..placement_types import Placement, Replicate, Shard
from ._prepare import PrepareModuleInput, PrepareModuleInputOutput, PrepareModuleOutput
from ._style import ParallelStyle

__all__ = [
    "ColwiseParallel",
    "ParallelStyle",
    "PrepareModuleInput",
    "PrepareModuleInputOutput",
    "PrepareModuleOutput",
    "RowwiseParallel",
    "SequenceParallel",
]


def _shown(style: ParallelStyle, *names: str) -> str:
    inside = ", ".join(f"{n}={getattr(style, n)}" for n in names)
    return f"{type(style).__name__}({inside})"


class _Cut(ParallelStyle, ABC):
    """Weights are cut along one axis; one tensor goes in and one comes out."""

    # How inputs and outputs lie where nothing is said.
    _usual: tuple[Placement, Placement]
    # How the computation wants its input.
    desired_input_layouts: tuple[Placement, ...] = (Replicate(),)

    def __init__(
        self,
        *,
        input_layouts: Placement | None = None,
        output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:
        given = input_layouts, output_layouts
        self.input_layouts, self.output_layouts = (
            (own or usual,) for own, usual in zip(given, self._usual, strict=True)
        )
        self.use_local_output = use_local_output

    @abstractmethod
    def _placed(self, module: nn.Module) -> dict[str, Placement]:
        """The placement of each parameter.

        Raises:
            NotImplementedError: of this kind of module.
        """

    def _refused(self) -> NotImplementedError:
        return NotImplementedError(
            f"{type(self).__name__} currently only support nn.Linear and nn.Embedding!"
        )

    def _partition(self, name: str, module: nn.Module, mesh: DeviceMesh) -> None:
        for key, placement in self._placed(module).items():
            parameter = module._parameters.get(key)
            if parameter is None:
                continue
            made = distribute_tensor(
                parameter, mesh, [placement], src_data_rank=self.src_data_rank
            )
            module.register_parameter(
                key, nn.Parameter(made, requires_grad=parameter.requires_grad)
            )

    def _enter(self, module: nn.Module, inputs: tuple, mesh: DeviceMesh):
        given = inputs[0]
        if not isinstance(given, DTensor):
            given = DTensor.from_local(given, mesh, self.input_layouts)
        if self.input_layouts != self.desired_input_layouts:
            given = given.redistribute(placements=self.desired_input_layouts)
        return (given, *inputs[1:])

    def _leave(self, module: nn.Module, output: DTensor, mesh: DeviceMesh):
        if output.placements != self.output_layouts:
            output = output.redistribute(placements=self.output_layouts)
        return output.to_local() if self.use_local_output else output

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        self._placed(module)
        return distribute_module(
            module, device_mesh, self._partition, self._enter, self._leave
        )

    def __repr__(self) -> str:
        return _shown(self, "input_layouts", "output_layouts", "use_local_output")


class ColwiseParallel(_Cut):
    """Each rank computes some of the outputs: of `Linear` rows of the weight and of the
    bias, of `Embedding` columns of the table.

    Args:
        input_layouts: how the input lies; by default every rank has all of it.
        output_layouts: how the output shall lie; by default cut along the last axis.
        use_local_output: whether the output is this rank's part as a plain tensor.

    Raises:
        NotImplementedError: applied to another kind of module.
    """

    _usual = Replicate(), Shard(-1)

    def _placed(self, module: nn.Module) -> dict[str, Placement]:
        if isinstance(module, nn.Linear):
            return {"weight": Shard(0), "bias": Shard(0)}
        if isinstance(module, nn.Embedding):
            return {"weight": Shard(1)}
        raise self._refused()


class RowwiseParallel(_Cut):
    """Each rank computes with some of the inputs: of `Linear` columns of the weight, of
    `Embedding` rows of the table. The ranks' outputs are added up.

    Args:
        input_layouts: how the input lies; by default cut along the last axis.
        output_layouts: how the output shall lie; by default every rank has all of it.
        use_local_output: whether the output is this rank's part as a plain tensor.

    Raises:
        NotImplementedError: applied to another kind of module.
    """

    _usual = Shard(-1), Replicate()

    def _placed(self, module: nn.Module) -> dict[str, Placement]:
        if isinstance(module, nn.Linear):
            self.desired_input_layouts = (Shard(-1),)
            return {"weight": Shard(1), "bias": Replicate()}
        if isinstance(module, nn.Embedding):
            self.desired_input_layouts = (Replicate(),)
            return {"weight": Shard(0)}
        raise self._refused()


class SequenceParallel(ParallelStyle):
    """Parameters are replicas, and each rank computes some positions of the sequence:
    for `LayerNorm`, `RMSNorm`, `Dropout` and what else treats positions alike.

    Args:
        sequence_dim: the input's axis of positions. A plain tensor is taken for this
            rank's part.
        use_local_output: whether the output is this rank's part as a plain tensor.
    """

    def __init__(
        self, *, sequence_dim: int = 1, use_local_output: bool = False
    ) -> None:
        self.sequence_sharding = (Shard(sequence_dim),)
        self.use_local_output = use_local_output

    def _partition(self, name: str, module: nn.Module, mesh: DeviceMesh) -> None:
        for key, parameter in list(module.named_parameters(recurse=False)):
            made = DTensor.from_local(parameter.detach(), mesh, [Replicate()])
            module.register_parameter(
                key, nn.Parameter(made, requires_grad=parameter.requires_grad)
            )

    def _enter(self, module: nn.Module, inputs: tuple, mesh: DeviceMesh):
        given, wanted = inputs[0], self.sequence_sharding
        if isinstance(given, DTensor):
            if given.placements != wanted:
                given = given.redistribute(placements=wanted)
        elif isinstance(given, taeda.Tensor):
            given = DTensor.from_local(given, mesh, wanted)
        else:
            raise ValueError(
                f"expecting input of {module} to be a torch.Tensor or DTensor, but got "
                f"{given}"
            )
        return (given, *inputs[1:])

    def _leave(self, module: nn.Module, output, mesh: DeviceMesh):
        return output.to_local() if self.use_local_output else output

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        return distribute_module(
            module, device_mesh, self._partition, self._enter, self._leave
        )

    def __repr__(self) -> str:
        dim = self.sequence_sharding[0].dim
        return (
            f"SequenceParallel(sequence_dim={dim}, "
            f"use_local_output={self.use_local_output})"
        )
