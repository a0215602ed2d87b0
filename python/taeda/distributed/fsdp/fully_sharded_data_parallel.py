"""A wrapper whose parameters are split over ranks and whole while they are used."""

from __future__ import annotations

from contextlib import contextmanager

import taeda
from taeda._lazy import attributes
from taeda.nn.modules.module import Module

from . import _setup as setup
from . import _states as states
from . import api
from ._gradient_methods import GradientMethods
from ._group import Group
from ._layout import FlatLayout
from ._slots import managed_modules
from ._state_methods import StateMethods
from ._summon import whole_parameters
from ._unit import Unit
from .api import BackwardPrefetch, CPUOffload, MixedPrecision, ShardingStrategy
from .wrap import wrap_below

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["FullyShardedDataParallel"]

# Names that programs look for here too.
__getattr__ = attributes(__name__, dict.fromkeys(api.__all__, ".api"))
_INNER = "_fsdp_wrapped_module"
_PREFETCH = {
    BackwardPrefetch.BACKWARD_PRE: "before",
    BackwardPrefetch.BACKWARD_POST: "after",
    None: None,
}


class FullyShardedDataParallel(GradientMethods, StateMethods, Module):
    """A model of which each rank holds a part.

    The parameters of the module, less those of wrapped modules in it, are one unit:
    gathered before the forward pass, freed after it, gathered again for the backward
    pass, whose gradients are averaged and split. (ZeRO, arXiv:1910.02054.)

    Args:
        module: the model or a part of it.
        process_group: the ranks; for the HYBRID strategies a pair: those that split,
            those that have copies.
        sharding_strategy: what is split; FULL_SHARD by default.
        cpu_offload: whether parts lie in the host's memory.
        auto_wrap_policy: which modules below become units of their own (`wrap.py`).
        backward_prefetch: when the next unit is asked for in the backward pass.
        mixed_precision: dtypes of computation, sums and buffers.
        ignored_modules: modules that are left alone.
        param_init_fn: called with each module that has values on the meta device.
        device_id: of computation; where the parameters lie by default.
        sync_module_states: the first rank's values reach all before they are split.
        forward_prefetch: ask for the unit that came next in the step before.
        limit_all_gathers: of no effect: no more than two units are ever gathered.
        use_orig_params: the optimizer sees the module's parameters, each with this
            rank's part of it in one dimension; else one flat parameter for each unit.
        ignored_states: modules, or parameters, that are left alone.
        device_mesh: in place of `process_group`; of two dimensions (copies, parts) for
            the HYBRID strategies.

    Raises:
        ValueError: arguments that contradict each other; parameters of several dtypes.
        NotImplementedError: `keep_low_precision_grads`.
    """

    def __init__(
        self,
        module,
        process_group=None,
        sharding_strategy: ShardingStrategy | None = None,
        cpu_offload: CPUOffload | None = None,
        auto_wrap_policy: Callable | None = None,
        backward_prefetch: BackwardPrefetch | None = BackwardPrefetch.BACKWARD_PRE,
        mixed_precision: MixedPrecision | None = None,
        ignored_modules: Iterable | None = None,
        param_init_fn: Callable | None = None,
        device_id: int | taeda.device | None = None,
        sync_module_states: bool = False,
        forward_prefetch: bool = False,
        limit_all_gathers: bool = True,
        use_orig_params: bool = False,
        ignored_states: Iterable | None = None,
        device_mesh=None,
    ) -> None:
        super().__init__()
        if not isinstance(module, Module):
            raise TypeError(
                f"FullyShardedDataParallel: expected a module, got {type(module)}"
            )
        if isinstance(module, (taeda.nn.ModuleList, taeda.nn.ModuleDict)):
            import warnings

            warnings.warn(
                "FSDP will not all-gather parameters for containers that do not "
                f"implement forward: {module}",
                stacklevel=2,
            )
        left = setup.ignored_of(module, ignored_modules, ignored_states)
        self._ignored_modules, self._ignored_params = left
        device = setup.choose_device(module, left[1], device_id)
        strategy = sharding_strategy or ShardingStrategy.FULL_SHARD
        has_policy = auto_wrap_policy is not None
        ranks = setup.find_ranks(strategy, process_group, device_mesh, has_policy)
        if ranks.all == 1 and strategy is not ShardingStrategy.NO_SHARD:
            import warnings

            warnings.warn(
                "FSDP is switching to use `NO_SHARD` instead of "
                f"{strategy} since the world size is 1.",
                stacklevel=2,
            )
            strategy = ShardingStrategy.NO_SHARD
            ranks = type(ranks)(None, ranks.shard)
        self._ranks, self.sharding_strategy = ranks, strategy
        self._mesh, self.compute_device = device_mesh, device
        self.mixed_precision = mixed_precision or MixedPrecision()
        if self.mixed_precision.keep_low_precision_grads:
            raise NotImplementedError(
                "FullyShardedDataParallel: keep_low_precision_grads=True"
            )
        self.cpu_offload = cpu_offload or CPUOffload()
        self._keeps_originals, self._is_summoned = use_orig_params, False
        if has_policy:
            self._wrap_below(module, auto_wrap_policy, {
                "backward_prefetch": backward_prefetch,
                "cpu_offload": cpu_offload,
                "device_id": device_id,
                "device_mesh": device_mesh,
                "forward_prefetch": forward_prefetch,
                "ignored_states": left[1],
                "limit_all_gathers": limit_all_gathers,
                "mixed_precision": mixed_precision,
                "param_init_fn": param_init_fn,
                "process_group": process_group,
                "sharding_strategy": sharding_strategy,
                "sync_module_states": sync_module_states,
                "use_orig_params": use_orig_params,
            })  # fmt: skip
        self._split(module, param_init_fn, sync_module_states)
        self._make_unit(_PREFETCH[backward_prefetch], forward_prefetch)
        self._fsdp_wrapped_module = module
        if self._group is not None and not use_orig_params:
            self._show_flat()
            self._group.prepare()
        states.register(self)

    # Making.

    def _wrap_below(self, module, policy, kwargs) -> None:
        for name, below in module.named_modules():
            if isinstance(below, FullyShardedDataParallel):
                raise ValueError(
                    "FSDP auto wrapping requires modules to not already have FSDP "
                    f"applied but found {name} in\n{module}"
                )
        if self.sharding_strategy in setup.HYBRID and kwargs["device_mesh"] is None:
            kwargs["process_group"] = self._ranks.shard, self._ranks.copies
        ignored = self._ignored_modules, self._ignored_params
        wrap_below(module, policy, FullyShardedDataParallel, *ignored, kwargs)

    def _split(self, module, init, sync: bool) -> None:
        """The module's own parameters become this rank's part of them."""
        device, ignored = self.compute_device, self._ignored_modules
        setup.materialize(module, init, ignored, device)
        for _, m in managed_modules([module], ignored):
            for name, buffer in m._buffers.items():
                if buffer is not None and buffer.device != device:
                    m._buffers[name] = buffer.to(device)
        given = module, ignored, self._ignored_params, self._keeps_originals
        slots = setup.check_tensors(*given)
        if sync:
            tensors = [slot.parameter for slot in slots]
            for _, m in managed_modules([module], ignored):
                tensors += [b for b in m._buffers.values() if b is not None]
            setup.send_from_first(tensors, self._ranks)
        self._group = None
        if not slots:
            return
        mixed, ranks = self.mixed_precision, self._ranks
        home = taeda.device("cpu") if self.cpu_offload.offload_params else device
        # Kernels of GPUs want 16 bytes; the length of parts is seen by programs.
        layout = FlatLayout(
            slots, ranks.rank, ranks.world, self._keeps_originals, 16,
            mixed.param_dtype, home,
        )  # fmt: skip
        dtypes = mixed.param_dtype, mixed.reduce_dtype
        self._group = Group(layout, ranks, device, *dtypes, self._keeps_originals)

    def _make_unit(self, prefetch, forward_prefetch: bool) -> None:
        mixed, strategy = self.mixed_precision, self.sharding_strategy
        each = mixed.param_dtype if mixed.cast_forward_inputs else None
        root = mixed.param_dtype if mixed.cast_root_forward_inputs else each
        frees = strategy in (ShardingStrategy.FULL_SHARD, ShardingStrategy.HYBRID_SHARD)
        unit = Unit(
            [self],
            [] if self._group is None else [self._group],
            frees,
            hides_kept=frees,
            input_dtype=each,
            root_input_dtype=root,
            prefetch=prefetch,
        )
        unit.prefetches_next = forward_prefetch
        if mixed.buffer_dtype is not None:
            unit.on_first_forward = self._cast_buffers
        self.__dict__["_fsdp_unit"] = unit
        self._buffer_dtypes: dict = {}

    def _cast_buffers(self) -> None:
        for _, m in managed_modules([self.module], self._ignored_modules):
            for name, buffer in m._buffers.items():
                if buffer is not None and buffer.is_floating_point():
                    self._buffer_dtypes[id(m), name] = buffer.dtype
                    m._buffers[name] = buffer.to(self.mixed_precision.buffer_dtype)

    def _show_flat(self) -> None:
        """Registers the flat parameter, before the wrapped module's own."""
        flat = self._group.layout.flat
        flat._is_flat_param = True
        own = self._fsdp_wrapped_module._parameters
        for slot in self._group.layout.slots:
            for module, name in slot.places:
                module._parameters.pop(name, None)
        rest = {name: p for name, p in own.items() if name != "_flat_param"}
        own.clear()
        own["_flat_param"] = flat
        own.update(rest)

    def _hide_flat(self) -> None:
        self._fsdp_wrapped_module._parameters.pop("_flat_param", None)

    # Being a module.

    @property
    def module(self):
        """The wrapped module."""
        inner = self._fsdp_wrapped_module
        return inner.__dict__["_modules"].get("_checkpoint_wrapped_module", inner)

    @property
    def process_group(self):
        """The ranks that share the parameters, or that average their gradients."""
        return self._ranks.shard or self._ranks.copies

    @property
    def rank(self) -> int:
        """This rank in `process_group`."""
        return self.process_group.rank()

    @property
    def world_size(self) -> int:
        """How many ranks `process_group` has."""
        return self.process_group.size()

    def __getattr__(self, name: str):
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == _INNER:
                raise
            return getattr(self._fsdp_wrapped_module, name)

    def __getitem__(self, key: int):
        """That of the wrapped module."""
        return self._fsdp_wrapped_module[key]

    def forward(self, *args, **kwargs):
        """The wrapped module's forward pass, with whole parameters."""
        unit = self._fsdp_unit
        if self.compute_device.type != "cpu":
            from taeda.utils._pytree import tree_map_only

            args, kwargs = tree_map_only(
                taeda.Tensor, lambda t: t.to(self.compute_device), (args, kwargs)
            )
        args, kwargs = unit.before_forward(args, kwargs)
        return unit.after_forward(self._fsdp_wrapped_module(*args, **kwargs))

    def named_parameters(self, *args, **kwargs):
        """As `Module.named_parameters`; within `summon_full_params`, as unwrapped."""
        return self._clean(super().named_parameters(*args, **kwargs))

    def named_buffers(self, *args, **kwargs):
        """As `Module.named_buffers`; within `summon_full_params`, as unwrapped."""
        return self._clean(super().named_buffers(*args, **kwargs))

    def _clean(self, pairs):
        for name, tensor in pairs:
            yield (states.clean(name) if self._is_summoned else name), tensor

    def apply(self, fn: Callable):
        """`Module.apply` with whole parameters; changes stay."""
        with whole_parameters([self]):
            return super().apply(fn)

    def state_dict(self, *args, **kwargs):
        """The model's state, of the type that `set_state_dict_type` chose.

        All ranks must call it.
        """
        return states.state_dict(self, super().state_dict, args, kwargs)

    def load_state_dict(self, *args, **kwargs):
        """Loads a state of the type that `set_state_dict_type` chose, at all ranks."""
        with states.loading(self):
            return super().load_state_dict(*args, **kwargs)

    # Units.

    def check_is_root(self) -> bool:
        """Whether this is the outermost wrapper."""
        self._fsdp_unit.join_tree()
        return self._fsdp_unit.is_root

    @staticmethod
    def fsdp_modules(module, root_only: bool = False) -> list:
        """The wrappers in a module, itself among them.

        Args:
            module: wrapped or not.
            root_only: only those that are in no other.
        """
        if not root_only:
            return [
                m for m in module.modules() if isinstance(m, FullyShardedDataParallel)
            ]
        found, todo = [], [module]
        while todo:
            below = todo.pop()
            if isinstance(below, FullyShardedDataParallel):
                found.append(below)
            else:
                todo += reversed(list(below.children()))
        return found

    @staticmethod
    @contextmanager
    def summon_full_params(
        module,
        recurse: bool = True,
        writeback: bool = True,
        rank0_only: bool = False,
        offload_to_cpu: bool = False,
        with_grads: bool = False,
    ):
        """Within it parameters are whole, under the names of the unwrapped model.

        Args:
            module: wrapped or not.
            recurse: the wrappers below as well.
            writeback: keep what was changed, which must be the same at all ranks.
            rank0_only: only the first rank sees whole parameters.
            offload_to_cpu: they lie on the CPU.
            with_grads: gradients are whole too; needs `use_orig_params`.

        Raises:
            NotImplementedError: `writeback` with `rank0_only`.
        """
        wrappers = FullyShardedDataParallel.fsdp_modules(module)
        if not recurse:
            wrappers = [w for w in wrappers if w is module]
        options = writeback, rank0_only, offload_to_cpu, with_grads
        with whole_parameters(wrappers, *options):
            yield
