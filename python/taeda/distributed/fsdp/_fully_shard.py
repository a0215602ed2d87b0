"""`fully_shard`: the parameters of modules become DTensors, cut over a mesh."""

from __future__ import annotations

import taeda
from taeda.distributed.device_mesh import DeviceMesh, init_device_mesh
from taeda.distributed.tensor import Shard

from ._fsdp_module import FSDPModule
from ._group import Group, Ranks
from ._policies import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy
from ._sharded_layout import ShardedLayout
from ._slots import managed_modules, slots_of, unit_of
from ._unit import Unit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["fully_shard", "share_comm_ctx"]

# Classes by the module's class: modules of one class have one class afterwards. Only
# grows; `setdefault` is atomic under the interpreter's lock.
_classes: dict[type, type] = {}


def fully_shard(
    module,
    *,
    mesh: DeviceMesh | None = None,
    reshard_after_forward: bool | int | None = None,
    shard_placement_fn: Callable | None = None,
    mp_policy: MixedPrecisionPolicy = MixedPrecisionPolicy(),  # noqa: B008
    offload_policy: OffloadPolicy = OffloadPolicy(),  # noqa: B008
    ignored_params: set | None = None,
    dp_mesh_dims=None,
):
    """Cuts a module's parameters over ranks; they are whole while it runs.

    Call it on parts of a model first and on the model last: each call takes the
    parameters that no earlier one has, and gathers them in one collective.

    Args:
        module: a module, or a list of modules that share a collective.
        mesh: of one dimension; of two for copies (the first) and parts; all ranks by
            default.
        reshard_after_forward: free whole parameters after the forward pass; None does
            so for all but the outermost module; an int keeps them split over so many
            ranks until the backward pass.
        shard_placement_fn: given a parameter, a `Shard` to cut it by, or None for the
            first dimension.
        mp_policy: dtypes.
        offload_policy: where parts lie.
        ignored_params: are left alone.
        dp_mesh_dims: which dimensions of a larger `mesh` are data parallel.

    Returns:
        The module, its class a subclass of its own and of `FSDPModule`.

    Raises:
        ValueError: a mesh of other dimensions, a container without `forward`, a
            parameter without dimensions.
        AssertionError: called on a module again.
    """
    modules = list(module) if isinstance(module, (list, tuple)) else [module]
    _check_modules(modules)
    mesh = mesh or _all_ranks()
    if dp_mesh_dims is not None:
        mesh = _data_parallel(mesh, dp_mesh_dims)
    _check_mesh(mesh)
    replicated = dp_mesh_dims is not None and not dp_mesh_dims.shard
    ranks = _ranks(mesh, replicated)
    device = taeda.device(mesh.device_type)
    ignored = set(ignored_params or ())
    for _, below in managed_modules(modules):
        _move(below, device, ignored)
    slots = slots_of(modules, ignored={id(p) for p in ignored})
    slots = [s for s in slots if not _is_cut(s.parameter)]
    home = (
        taeda.device("cpu") if isinstance(offload_policy, CPUOffloadPolicy) else device
    )
    groups = []
    for same in _by_dtype(slots):
        dims = [_dim_of(slot, shard_placement_fn) for slot in same]
        layout = ShardedLayout(
            same, ranks.rank, ranks.world, mesh, dims, home, dp_mesh_dims
        )
        dtypes = mp_policy.param_dtype, mp_policy.reduce_dtype
        groups.append(Group(layout, ranks, device, *dtypes, as_parameters=True))
    _make_unit(modules, groups, reshard_after_forward, mp_policy, ranks)
    return module


def _check_modules(modules) -> None:
    for module in modules:
        if not isinstance(module, taeda.nn.Module):
            raise TypeError(f"fully_shard: expected a module, got {type(module)}")
        if type(module).forward is taeda.nn.Module.forward and isinstance(
            module, (taeda.nn.ModuleList, taeda.nn.ModuleDict)
        ):
            raise ValueError(
                "fully_shard does not support containers that do not implement "
                f"forward: {module}"
            )
        if unit_of(module) is not None:
            raise AssertionError(
                "Each distinct composable distributed API can only be applied to a "
                "module once. fully_shard has already been applied to the following "
                f"module:\n{module}"
            )
    if not modules:
        raise ValueError("fully_shard: expected a module, got an empty list")


def _all_ranks() -> DeviceMesh:
    from taeda.distributed import get_world_size, init_process_group, is_initialized

    if not is_initialized():
        init_process_group()
    return init_device_mesh("cpu", (get_world_size(),))


def _check_mesh(mesh) -> None:
    if mesh.ndim == 1:
        return
    if mesh.ndim != 2:
        raise ValueError(f"fully_shard: expected a 1D or 2D DeviceMesh, got {mesh}")
    if mesh.mesh_dim_names is None:
        raise AssertionError(
            f"fully_shard: the dimensions of a 2D mesh need mesh_dim_names, got {mesh}"
        )


def _data_parallel(mesh, dims) -> DeviceMesh:
    """The dimensions of a mesh that are data parallel, several of a kind as one."""
    found = []
    for names in (dims.replicate_names, dims.shard_names):
        if len(names) > 1:
            found.append(mesh[names]._flatten().mesh_dim_names[0])
        elif names:
            found.append(names[0])
    return mesh[tuple(found)] if len(found) > 1 else mesh[found[0]]


def _ranks(mesh, replicated: bool) -> Ranks:
    if mesh.get_coordinate() is None:
        raise ValueError(f"fully_shard: rank {mesh.get_rank()} is not one of {mesh}")
    if replicated:
        return Ranks(None, mesh.get_group(0))
    if mesh.ndim == 1:
        return Ranks(mesh.get_group(0))
    return Ranks(mesh.get_group(1), mesh.get_group(0))


def _is_cut(parameter) -> bool:
    """Whether an earlier call has the parameter, which modules of two units share."""
    return getattr(parameter, "_is_fsdp_part", False)


def _move(module, device, ignored) -> None:
    if device.type == "cpu":
        return
    for table in (module._parameters, module._buffers):
        for name, tensor in table.items():
            if tensor is None or tensor.is_meta or tensor in ignored:
                continue
            if tensor.device.type != device.type:
                if table is module._parameters:
                    tensor.data = tensor.data.to(device)
                else:
                    table[name] = tensor.to(device)


def _by_dtype(slots) -> list[list]:
    found: dict = {}
    for slot in slots:
        found.setdefault(slot.parameter.dtype, []).append(slot)
    return list(found.values())


def _dim_of(slot, function) -> int:
    parameter = slot.parameter
    if parameter.dim() == 0:
        raise ValueError(
            "fully_shard doesn't support scalar parameters. Change "
            f"{slot.name} to a 1D tensor with numel equal to 1."
        )
    chosen = function(parameter) if function is not None else None
    if chosen is None:
        return 0
    if not isinstance(chosen, Shard):
        raise ValueError(f"Invalid shard_placement_fn result: {chosen}")
    dim = chosen.dim + parameter.dim() if chosen.dim < 0 else chosen.dim
    if not 0 <= dim < parameter.dim():
        raise AssertionError(
            f"Shard dim {chosen.dim} is out of range for {slot.name} of shape "
            f"{tuple(parameter.shape)}"
        )
    return dim


def _make_unit(modules, groups, reshard, policy, ranks) -> None:
    smaller = None
    if reshard is not None and not isinstance(reshard, bool):
        if reshard < 1 or ranks.world % reshard:
            raise ValueError(
                "If passing reshard_after_forward as an int, it should be a factor of "
                f"{ranks.world}, not {reshard}"
            )
        reshard, smaller = _smaller(reshard, ranks)
    each = policy.param_dtype if policy.cast_forward_inputs else None
    unit = Unit(
        modules,
        groups,
        reshard,
        input_dtype=each,
        root_input_dtype=each,
        output_dtype=policy.output_dtype,
    )
    for group in groups:
        group.smaller = smaller
        for parameter in group.layout.parameters:
            parameter._is_fsdp_part = True
    for module in modules:
        cls = type(module)
        made = type(f"FSDP{cls.__name__}", (FSDPModule, cls), {})
        module.__class__ = _classes.setdefault(cls, made)
        module.__dict__["_fsdp_unit"] = unit
        _register_hooks(module, unit)


def _smaller(count: int, ranks):
    """(whether to free after the forward pass, the group that shares meanwhile)."""
    if count == 1 or count == ranks.world:
        return count != 1, None
    from taeda.distributed import get_process_group_ranks, new_group

    members = get_process_group_ranks(ranks.shard)
    start = ranks.rank // count * count
    near = members[start : start + count]
    return True, new_group(near, use_local_synchronization=True)


def _register_hooks(module, unit) -> None:
    def before(module, args, kwargs):
        return unit.before_forward(args, kwargs, module)

    def after(module, _args, outputs):
        return unit.after_forward(outputs, module)

    def show_parts(*_args) -> None:
        unit.free()

    module.register_forward_pre_hook(before, prepend=True, with_kwargs=True)
    module.register_forward_hook(after)
    module.register_state_dict_pre_hook(show_parts)
    module.register_load_state_dict_pre_hook(show_parts)


def share_comm_ctx(modules: list) -> None:
    """Lets the gradients of several models be under way one after another.

    Args:
        modules: outermost modules of `fully_shard`, such as stages of a pipeline.

    Raises:
        ValueError: another kind of module.
    """
    for module in modules:
        if not isinstance(module, FSDPModule):
            raise ValueError(f"Expects list of FSDPModules but got {type(module)}")
    if not modules:
        return
    first = unit_of(modules[0]).join_tree()
    for module in modules[1:]:
        tree = unit_of(module).join_tree()
        tree.traffic, tree.copying = first.traffic, first.copying
