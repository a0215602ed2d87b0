"""What a module can do after `fully_shard`."""

from __future__ import annotations

from ._slots import unit_of
from ._unit import Unit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["FSDPModule", "UnshardHandle", "register_fsdp_forward_method"]


class UnshardHandle:
    """Parameters that were asked for."""

    def __init__(self, unit=None) -> None:
        self._unit = unit

    def wait(self) -> None:
        """Until they are whole and registered."""
        unit, self._unit = self._unit, None
        for group in unit.groups if unit is not None else ():
            group.finish_gather()  # nothing, if a forward pass has waited


def _flag(name: str, value) -> None:
    if not isinstance(value, bool):
        raise ValueError(f"{name} should be a bool, got {type(value)}")


class FSDPModule:
    """The second base of the classes that `fully_shard` gives to modules."""

    def __new__(cls, *args, **kwargs):
        # Parts of containers, such as a slice of a Sequential, are made by their
        # class, and are not sharded by it.
        original = cls.__mro__[cls.__mro__.index(FSDPModule) + 1]
        made = original.__new__(original, *args, **kwargs)
        made.__init__(*args, **kwargs)
        return made

    def __deepcopy__(self, memo):
        raise AssertionError(
            "FSDP does not support deepcopy. Please use state dict for serialization."
        )

    def _unit(self) -> Unit:
        return unit_of(self)

    def _units(self, recurse: bool = True) -> list[Unit]:
        if not recurse:
            return [self._unit()]
        found = (unit_of(module) for module in self.modules())
        return list(dict.fromkeys(unit for unit in found if unit is not None))

    def _groups(self, recurse: bool = True) -> list:
        return [group for unit in self._units(recurse) for group in unit.groups]

    def _apply(self, fn, recurse: bool = True):
        for group in self._groups(recurse):
            group.free()
        return super()._apply(fn, recurse)

    # Whole parameters by hand.

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """Makes this module's parameters whole, not those of units below.

        Args:
            async_op: return a handle at once; the forward pass waits in any case.
        """
        unit = self._unit()
        unit.start_gather()
        if async_op:
            return UnshardHandle(unit)
        unit.gather()
        return None

    def reshard(self) -> None:
        """Frees this module's whole parameters."""
        self._unit().free()

    def reset_iter_state(self) -> None:
        """Forgets a step that ended by an exception, with its gradients.

        Called on the outermost module.
        """
        self._unit().join_tree().reset()

    # What happens in a backward pass.

    def set_is_last_backward(self, is_last_backward: bool) -> None:
        """Whether the end of the next pass waits for the gradients under way."""
        self._unit().join_tree().is_last_backward = is_last_backward

    def set_requires_gradient_sync(
        self, requires_gradient_sync: bool, *, recurse: bool = True
    ) -> None:
        """Whether gradients are sent; else they add up, whole, until they are.

        Args:
            requires_gradient_sync: it.
            recurse: the units below as well.
        """
        for group in self._groups(recurse):
            group.sync = group.all_reduce = requires_gradient_sync

    def set_requires_all_reduce(
        self, requires_all_reduce: bool, *, recurse: bool = True
    ) -> None:
        """Whether gradients are added between copies; else within them alone."""
        for group in self._groups(recurse):
            group.all_reduce = requires_all_reduce

    def set_reshard_after_forward(
        self, reshard_after_forward: bool, recurse: bool = True
    ) -> None:
        """Whether parameters are freed after the forward pass.

        Raises:
            ValueError: no bool.
        """
        _flag("reshard_after_forward", reshard_after_forward)
        for unit in self._units(recurse):
            unit.reshard = reshard_after_forward
            for group in unit.groups:
                group.smaller = None

    def set_reshard_after_backward(
        self, reshard_after_backward: bool, *, recurse: bool = True
    ) -> None:
        """Whether parameters are freed after the backward pass."""
        for group in self._groups(recurse):
            group.reshard_after_backward = reshard_after_backward

    def set_reduce_scatter_unused_params(
        self, reduce_scatter_unused_params: bool, *, recurse: bool = True
    ) -> None:
        """Whether parameters without a gradient count as having zeros.

        Needed where ranks use different ones, as they would send different gradients.
        """
        for group in self._groups(recurse):
            group.zero_unused = reduce_scatter_unused_params

    def set_unshard_in_backward(self, unshard_in_backward: bool) -> None:
        """Whether the backward pass makes this module's parameters whole."""
        self._unit().unshard_in_backward = unshard_in_backward

    # Order.

    def set_modules_to_forward_prefetch(self, modules: list) -> None:
        """Modules whose parameters are asked for before this one runs."""
        self._unit().forward_prefetch = _units_of(modules)

    def set_modules_to_backward_prefetch(self, modules: list) -> None:
        """The same for the backward pass; by default the one that ran before."""
        self._unit().backward_prefetch = _units_of(modules)

    # How gradients are summed.

    def set_gradient_divide_factor(self, factor: float) -> None:
        """What sums of gradients are divided by; the number of ranks by default."""
        for group in self._unit().groups:
            group.divide_by = factor

    def set_reduce_scatter_divide_factor(self, factor: float) -> None:
        """The old name of `set_gradient_divide_factor`."""
        import warnings

        warnings.warn(
            "Use `set_gradient_divide_factor` instead", FutureWarning, stacklevel=2
        )
        self.set_gradient_divide_factor(factor)

    def set_force_sum_reduction_for_comms(self, enable: bool) -> None:
        """Nothing: collectives sum in any case, and divisions are apart from them."""

    def set_reduce_scatter_max_input_buffers(
        self, max_input_buffers: int, *, recurse: bool = True
    ) -> None:
        """How many groups' gradients may be under way at once.

        Raises:
            TypeError, ValueError: no positive int.
        """
        count, what = max_input_buffers, "max_input_buffers must be"
        if type(count) is not int:
            raise TypeError(f"{what} an int, got {type(count).__name__}")
        if count <= 0:
            raise ValueError(f"{what} a positive int, got {count}")
        for group in self._groups(recurse):
            group.in_flight = count

    def set_separate_reduce_scatter_group(
        self, enable: bool = True, *, recurse: bool = True
    ) -> None:
        """Whether gradients travel over a process group of their own.

        Called at all ranks of the mesh.
        """
        from taeda.distributed import get_process_group_ranks, new_group

        made: dict = {}
        for group in self._groups(recurse):
            shard = group.ranks.shard
            group.reduce_over = None
            if not enable or shard is None:
                continue
            if shard not in made:
                ranks = get_process_group_ranks(shard)
                made[shard] = new_group(ranks, use_local_synchronization=True)
            group.reduce_over = made[shard]

    def set_all_reduce_hook(self, hook: Callable, *, stream=None) -> None:
        """Calls `hook(part)` with each reduced part before it becomes gradients.

        Args:
            hook: changes its argument in place.
            stream: of a GPU, on which it is called.

        Raises:
            ValueError: a stream, with copies.
        """
        for group in self._unit().groups:
            if stream is not None and group.ranks.copies is not None:
                raise ValueError("stream cannot be set when using native HSDP")
            group.all_reduce_hook = hook

    def set_custom_all_gather(self, comm: Callable) -> None:
        """Gathers parameters by `comm`; see `AllGather`."""
        for group in self._only_group("set_custom_all_gather"):
            group.gatherer = comm

    def set_custom_reduce_scatter(self, comm: Callable) -> None:
        """Reduces gradients by `comm`; see `ReduceScatter`."""
        for group in self._only_group("set_custom_reduce_scatter"):
            group.reducer = comm

    def _only_group(self, name: str) -> list:
        groups = self._unit().groups
        if len(groups) > 1:
            raise ValueError(f"{name} is not supported with multiple param groups")
        return groups

    # Of GPUs.

    def set_post_optim_event(self, event) -> None:
        """An event that the next forward pass waits for before it gathers."""
        self._unit().join_tree().event = event

    def set_allocate_memory_from_process_group_for_comm(self, enable: bool) -> None:
        """Not there: no backend has memory of its own.

        Raises:
            NotImplementedError: it is enabled.
        """
        if enable:
            raise NotImplementedError(
                "set_allocate_memory_from_process_group_for_comm: no backend allocates"
            )

    def set_symm_mem_for_comm(self, backend: str = "NCCL") -> None:
        """Not there.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError(f"set_symm_mem_for_comm: backend {backend}")


def _units_of(modules) -> list[Unit]:
    for module in modules:
        if not isinstance(module, FSDPModule):
            raise ValueError(f"Expects FSDPModule but got {type(module)}: {module}")
    return [unit_of(module) for module in modules]


def register_fsdp_forward_method(module, method_name: str) -> None:
    """Makes the parameters whole for another method than `forward`.

    Args:
        module: nothing happens where it is not sharded.
        method_name: of the module.

    Raises:
        ValueError: it has no such method.
    """
    if not isinstance(module, FSDPModule):
        return
    if not hasattr(module, method_name):
        raise ValueError(f"{type(module)} does not have a method {method_name}")
    from functools import wraps

    inner = getattr(module, method_name)

    @wraps(inner)
    def method(*args, **kwargs):
        unit = unit_of(module)
        args, kwargs = unit.before_forward(args, kwargs)
        return unit.after_forward(inner(*args, **kwargs))

    module.__dict__[method_name] = method
