"""Plans: which style each submodule gets."""

from __future__ import annotations

import warnings
from fnmatch import fnmatch

from taeda import nn

from ...device_mesh import DeviceMesh
from .._api import _entered_mesh
from .style import ParallelStyle

__all__ = ["parallelize_module"]


Plan = ParallelStyle | dict[str, ParallelStyle] | None


def _matching(module: nn.Module, names: list[str]) -> list[nn.Module]:
    """The submodules that a path with wildcards means."""
    found = [module]
    for name in names:
        found = [
            child
            for part in found
            for key, child in part.named_children()
            if fnmatch(key, name)
        ]
    return found


def parallelize_module(
    module: nn.Module,
    device_mesh: DeviceMesh | None = None,
    parallelize_plan: Plan = None,
    *,
    src_data_rank: int | None = 0,
) -> nn.Module:
    """Cuts a module's weights over a mesh, as a plan says.

    Args:
        module: changed in place.
        device_mesh: the ranks, of one dimension; by default the mesh that was entered.
        parallelize_plan: a style, or styles by the names of submodules, in which each
            part may have wildcards (`"layers.*.up"`); `""` is the module itself.
        src_data_rank: whose weights count; None takes each rank's own.

    Returns:
        The module.

    Raises:
        TypeError: the plan is something else.

    On every rank:
        plan = {"up": ColwiseParallel(), "down": RowwiseParallel()}
        model = parallelize_module(model, mesh["tp"], plan)
    """
    mesh = device_mesh or _entered_mesh()
    plan = parallelize_plan
    if plan is None:
        warnings.warn(
            "No parallelize_plan is provided and auto-parallel is not supported at the "
            "moment, so this parallelize_module call will do nothing.",
            stacklevel=2,
        )
        return module
    if isinstance(plan, ParallelStyle):
        plan.src_data_rank = src_data_rank
        return plan._apply(module, mesh)
    if not isinstance(plan, dict):
        raise TypeError(
            "Expect Union[ParallelStyle, Dict[str, ParallelStyle]] for "
            f"parallelize_plan, {type(plan)} found!"
        )
    for path, style in plan.items():
        found = _matching(module, path.split(".") if path else [])
        if not found:
            warnings.warn(
                f"Parallelize plan key '{path}' could not be resolved: no submodule of "
                f"{type(module).__name__} matches, skipping this plan entry.",
                stacklevel=2,
            )
        for part in found:
            parallelize_module(part, mesh, style, src_data_rank=src_data_rank)
    return module
