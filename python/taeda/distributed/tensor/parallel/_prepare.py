"""Styles that place what goes into a module and what comes out of it."""

from __future__ import annotations

import taeda
from taeda import nn

from ...device_mesh import DeviceMesh
from .._api import DTensor
from ..placement_types import Placement
from ._style import ParallelStyle

__all__ = ["PrepareModuleInput", "PrepareModuleInputOutput", "PrepareModuleOutput"]

Layouts = Placement | tuple[Placement | None, ...] | None


def _as_tuple(layouts: Layouts):
    return (layouts,) if isinstance(layouts, Placement) else layouts


def _pair(name: str, layouts, desired) -> None:
    """Raises AssertionError unless there is a desired layout for each."""
    if desired is None:
        raise AssertionError(f"desired_{name}: expected {len(layouts)}, got None")
    if len(layouts) != len(desired):
        raise AssertionError(
            f"{name} and desired_{name} should have same length, got "
            f"{len(layouts)} and {len(desired)}!"
        )


def _moved(value, layout, desired, mesh: DeviceMesh, as_local: bool):
    """A value in its desired layout; one without layout as it is."""
    if layout is None:
        return value
    if not isinstance(value, DTensor):
        if not isinstance(value, taeda.Tensor):
            raise AssertionError(
                f"expecting input to be a torch.Tensor, got {type(value).__name__}!"
            )
        value = DTensor.from_local(value, mesh, (layout,))
    if desired is not None and layout != desired:
        value = value.redistribute(placements=(desired,))
    return value.to_local() if as_local else value


class PrepareModuleInput(ParallelStyle):
    """Makes a module's inputs distributed tensors and redistributes them.

    Args:
        input_layouts: how each positional input lies; None for one that stays as it is.
        desired_input_layouts: how each shall lie.
        input_kwarg_layouts: how inputs by keyword lie.
        desired_input_kwarg_layouts: how they shall lie.
        use_local_output: whether the module gets this rank's parts as plain tensors.

    Raises:
        AssertionError: layouts and desired ones that differ in number.
    """

    def __init__(
        self,
        *,
        input_layouts: Layouts = None,
        desired_input_layouts: Layouts = None,
        input_kwarg_layouts: dict[str, Placement] | None = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None,
        use_local_output: bool = False,
    ) -> None:
        self.input_layouts = _as_tuple(input_layouts)
        self.desired_input_layouts = _as_tuple(desired_input_layouts)
        self.use_local_output = use_local_output
        self.with_kwargs = input_kwarg_layouts is not None
        self.input_kwarg_layouts = input_kwarg_layouts or {}
        self.desired_input_kwarg_layouts = desired_input_kwarg_layouts or {}
        if self.input_layouts is not None:
            _pair("input_layouts", self.input_layouts, self.desired_input_layouts)
        if self.with_kwargs:
            named = self.input_kwarg_layouts, self.desired_input_kwarg_layouts
            _pair("input_kwarg_layouts", *named)

    def _positional(self, inputs: tuple, mesh: DeviceMesh) -> tuple:
        if self.input_layouts is None:
            return inputs
        if len(inputs) != len(self.input_layouts):
            raise ValueError("module inputs and input_layouts should have same length!")
        return tuple(
            _moved(value, layout, desired, mesh, self.use_local_output)
            for value, layout, desired in zip(
                inputs, self.input_layouts, self.desired_input_layouts, strict=True
            )
        )

    def _by_keyword(self, inputs: dict, mesh: DeviceMesh) -> dict:
        return {
            key: _moved(
                value,
                self.input_kwarg_layouts.get(key),
                self.desired_input_kwarg_layouts.get(key),
                mesh,
                self.use_local_output,
            )
            for key, value in inputs.items()
        }

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        def prepare(_, inputs):
            return self._positional(inputs, device_mesh)

        def prepare_both(_, inputs, named):
            positional = self._positional(inputs, device_mesh)
            return positional, self._by_keyword(named, device_mesh)

        if self.with_kwargs:
            module.register_forward_pre_hook(prepare_both, with_kwargs=True)
        else:
            module.register_forward_pre_hook(prepare)
        return module

    def __repr__(self) -> str:
        return (
            f"PrepareModuleInput(input_layouts={self.input_layouts}, "
            f"desired_input_layouts={self.desired_input_layouts}, "
            f"input_kwarg_layouts={self.input_kwarg_layouts}, "
            f"desired_input_kwarg_layouts={self.desired_input_kwarg_layouts}, "
            f"use_local_output={self.use_local_output})"
        )


class PrepareModuleOutput(ParallelStyle):
    """Makes a module's outputs distributed tensors and redistributes them.

    Args:
        output_layouts: how each output lies; None for one that stays as it is.
        desired_output_layouts: how each shall lie.
        use_local_output: whether outputs are this rank's parts as plain tensors.

    Raises:
        AssertionError: layouts and desired ones that differ in number.
    """

    def __init__(
        self,
        *,
        output_layouts: Placement | tuple[Placement | None, ...],
        desired_output_layouts: Placement | tuple[Placement, ...],
        use_local_output: bool = True,
    ) -> None:
        self.output_layouts = _as_tuple(output_layouts)
        self.desired_output_layouts = _as_tuple(desired_output_layouts)
        self.use_local_output = use_local_output
        _pair("output_layouts", self.output_layouts, self.desired_output_layouts)

    def _prepared(self, outputs, mesh: DeviceMesh):
        given = outputs if isinstance(outputs, tuple) else (outputs,)
        if len(given) != len(self.output_layouts):
            raise ValueError(
                "module outputs and output_layouts should have same length!"
            )
        found = tuple(
            _moved(value, layout, desired, mesh, self.use_local_output)
            for value, layout, desired in zip(
                given, self.output_layouts, self.desired_output_layouts, strict=True
            )
        )
        return found[0] if len(found) == 1 else found

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        def prepare(_, inputs, outputs):
            return self._prepared(outputs, device_mesh)

        module.register_forward_hook(prepare)
        return module

    def __repr__(self) -> str:
        return (
            f"PrepareModuleOutput(output_layouts={self.output_layouts}, "
            f"desired_output_layouts={self.desired_output_layouts}, "
            f"use_local_output={self.use_local_output})"
        )


class PrepareModuleInputOutput(ParallelStyle):
    """`PrepareModuleInput` and `PrepareModuleOutput` of one module.

    Args:
        input_layouts, desired_input_layouts, input_kwarg_layouts,
            desired_input_kwarg_layouts: of `PrepareModuleInput`.
        use_local_input: its `use_local_output`.
        output_layouts, desired_output_layouts, use_local_output: of
            `PrepareModuleOutput`.
    """

    def __init__(
        self,
        *,
        output_layouts: Placement | tuple[Placement | None, ...],
        desired_output_layouts: Placement | tuple[Placement, ...],
        input_layouts: Layouts = None,
        desired_input_layouts: Layouts = None,
        input_kwarg_layouts: dict[str, Placement] | None = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None,
        use_local_output: bool = True,
        use_local_input: bool = False,
    ) -> None:
        self.prepare_module_input = PrepareModuleInput(
            use_local_output=use_local_input,
            desired_input_kwarg_layouts=desired_input_kwarg_layouts,
            input_kwarg_layouts=input_kwarg_layouts,
            desired_input_layouts=desired_input_layouts,
            input_layouts=input_layouts,
        )
        self.prepare_module_output = PrepareModuleOutput(
            use_local_output=use_local_output,
            desired_output_layouts=desired_output_layouts,
            output_layouts=output_layouts,
        )

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        self.prepare_module_input._apply(module, device_mesh)
        return self.prepare_module_output._apply(module, device_mesh)

    def __repr__(self) -> str:
        given, made = self.prepare_module_input, self.prepare_module_output
        return (
            f"PrepareModuleInputOutput(input_layouts={given.input_layouts}, "
            f"desired_input_layouts={given.desired_input_layouts}, "
            f"input_kwarg_layouts={given.input_kwarg_layouts}, "
            f"desired_input_kwarg_layouts={given.desired_input_kwarg_layouts}, "
            f"use_local_input={given.use_local_output}, "
            f"output_layouts={made.output_layouts}, "
            f"desired_output_layouts={made.desired_output_layouts}, "
            f"use_local_output={made.use_local_output})"
        )
