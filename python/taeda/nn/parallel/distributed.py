"""One model, trained by several processes on parts of each batch."""

from __future__ import annotations

import contextlib

import taeda
from taeda._lazy import attributes
from taeda.distributed import _collectives as collectives
from taeda.distributed._join import _get_default_group
from taeda.distributed._reducer import Reducer
from taeda.distributed._types import ReduceOp
from taeda.distributed.algorithms.join import Join, Joinable, JoinHook
from taeda.nn.modules.module import Module
from taeda.nn.modules.sparse import Embedding, EmbeddingBag

from .scatter_gather import gather, scatter_kwargs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["DistributedDataParallel"]

__getattr__ = attributes(__name__, {"_MixedPrecision": "._mixed_precision"})

_MIB = 1024 * 1024


def _tensors_in(value) -> list:
    """The tensors of nested tuples, lists, dicts and dataclasses."""
    if isinstance(value, taeda.Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif hasattr(value, "__dataclass_fields__"):
        value = [getattr(value, name) for name in value.__dataclass_fields__]
    elif not isinstance(value, (list, tuple)):
        return []
    return [tensor for part in value for tensor in _tensors_in(part)]


def _trained(module, skipped) -> dict:
    """The parameters whose gradients are averaged, and their names."""
    return {
        p: name
        for name, p in module.named_parameters()
        if p.requires_grad and name not in skipped
    }


def _sparse_weights(module) -> set[int]:
    """Ids of the parameters whose gradients will be sparse."""
    return {
        id(m.weight)
        for m in module.modules()
        if isinstance(m, (Embedding, EmbeddingBag)) and m.sparse
    }


def _limits(cap_mb, caps_mb) -> list[int]:
    """Bytes of buckets, see `Reducer`."""
    if caps_mb:
        return [max(1, int(cap * _MIB)) for cap in caps_mb]
    if cap_mb is None:
        return [_MIB, 25 * _MIB]
    return [max(1, int(cap_mb * _MIB))]


def _warn_of_broadcast_buffers(old, new) -> None:
    if old is None:
        return
    import warnings

    text = "`broadcast_buffers` is deprecated. Use `forward_sync_buffers` instead"
    if new is not None:
        text += "; it is ignored, as `forward_sync_buffers` is given"
    elif not old:
        text += ", which leaves buffers alone in forward passes but not at the start"
    warnings.warn(f"{text}.", FutureWarning, stacklevel=3)


class _DDPJoinHook(JoinHook):
    """Answers the collectives of ranks that still have inputs."""

    def __init__(self, ddp, divide_by_initial_world_size: bool) -> None:
        self._ddp = ddp
        ddp._divide_by_initial_world_size = divide_by_initial_world_size

    def main_hook(self) -> None:
        ddp = self._ddp
        if ddp.reducer.divide_by is None and not ddp._divide_by_initial_world_size:
            # It had no input at all: others call what is called with a divisor.
            ddp.reducer.divide_by = ddp.process_group.size()
        if ddp.reducer.rebuild():
            ddp._note_rebuilt()
        if not ddp._any_rank_syncs(is_joined=True):
            return
        ddp._sync_buffers_from_active(is_joined=True)
        ddp.reducer.shadow()

    def post_hook(self, is_last_joiner: bool) -> None:
        self._ddp._sync_final_model(is_last_joiner)


class DistributedDataParallel(Module, Joinable):
    """A model whose gradients are averaged over ranks during each backward pass.

    Rank 0's parameters and buffers reach all ranks here; afterwards equal gradients
    keep the parameters equal.

    Args:
        module: the model; at least one parameter requires gradients.
        device_ids, output_device: of GPUs; None on the CPU.
        dim: along which a batch was split; of no use on the CPU.
        broadcast_buffers: deprecated; False leaves buffers alone from the start.
        init_sync: send rank 0's parameters and buffers when the model is wrapped.
        process_group: the ranks; all by default.
        bucket_cap_mb: MiB of gradients that travel together; 25 by default.
        find_unused_parameters: parameters that a forward pass does not use get no
            gradient there; finding them reads the graph in each pass.
        check_reduction: of no effect.
        gradient_as_bucket_view: gradients are views of the buckets.
        static_graph: each pass uses the same parameters.
        delay_all_reduce_named_params, param_to_hook_all_reduce: not there.
        mixed_precision: dtypes of computation and of what is sent; needs gradients
            that are no views of buckets.
        device_mesh: of one dimension, in place of a group.
        skip_all_reduce_unused_params: of no effect.
        bucket_cap_mb_list: MiB of the first buckets, each; the last holds for the rest.
        batched_grad_copy: of no effect.
        forward_sync_buffers: rank 0's buffers reach all ranks before each forward pass;
            True by default.

    Raises:
        RuntimeError: no parameter requires gradients, or the ranks' models differ.
        ValueError: there is no group, or devices of GPUs are given.
    """

    def __init__(
        self,
        module,
        device_ids=None,
        output_device=None,
        dim: int = 0,
        broadcast_buffers: bool | None = None,
        init_sync: bool = True,
        process_group=None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        delay_all_reduce_named_params=None,
        param_to_hook_all_reduce=None,
        mixed_precision=None,
        device_mesh=None,
        skip_all_reduce_unused_params: bool = False,
        bucket_cap_mb_list: list[int] | None = None,
        batched_grad_copy: bool = False,
        forward_sync_buffers: bool | None = None,
    ) -> None:
        super().__init__()
        Joinable.__init__(self)
        if process_group is not None and device_mesh is not None:
            raise RuntimeError(
                "Cannot specify both process_group and device_mesh arguments."
            )
        if device_mesh is not None:
            process_group = device_mesh.get_group(mesh_dim=0)
        self.process_group = process_group or _get_default_group()
        for name, value in (
            ("delay_all_reduce_named_params", delay_all_reduce_named_params),
            ("param_to_hook_all_reduce", param_to_hook_all_reduce),
        ):
            if value is not None:
                raise NotImplementedError(f"DistributedDataParallel: {name}")
        skipped = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        self.parameters_to_ignore = skipped
        found = _trained(module, skipped)
        if not found:
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any "
                "parameter that requires a gradient."
            )
        if device_ids or output_device is not None:
            kinds = {p.device.type for p in found}
            raise ValueError(
                "DistributedDataParallel device_ids and output_device arguments only "
                "work with single-device/multiple-device GPU modules or CPU modules, "
                f"but got device_ids {device_ids}, output_device {output_device}, and "
                f"module parameters {kinds}."
            )
        self.module, self.dim = module, dim
        self.device_ids = self.output_device = None
        self.device = next(iter(found)).device
        self.device_type = self.device.type
        self.batched_grad_copy = batched_grad_copy
        _warn_of_broadcast_buffers(broadcast_buffers, forward_sync_buffers)
        sends_buffers = broadcast_buffers is not False
        self.forward_sync_buffers = sends_buffers
        if forward_sync_buffers is not None:
            self.forward_sync_buffers, sends_buffers = forward_sync_buffers, True
        self.find_unused_parameters = find_unused_parameters
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.static_graph, self.init_sync = static_graph, init_sync
        self.require_backward_grad_sync = True
        self.require_forward_param_sync = True
        self._divide_by_initial_world_size = True
        self._comm_hooks: list[tuple[Any, Any]] = []
        self._rebuilt = 0
        self._limits = _limits(bucket_cap_mb, bucket_cap_mb_list)
        self.bucket_bytes_cap = max(self._limits)
        if init_sync:
            self._compare_models(list(found))
            self._send_states(0, self._states(sends_buffers))
        self.mixed_precision, self._low = mixed_precision, None
        if mixed_precision is not None:
            from ._mixed_precision import LowPrecision

            if gradient_as_bucket_view:
                raise NotImplementedError(
                    "DistributedDataParallel: mixed_precision with "
                    "gradient_as_bucket_view"
                )
            self._low = LowPrecision(module, mixed_precision, skipped)
        self.reducer = self._make_reducer(found)

    def _make_reducer(self, found: dict) -> Reducer:
        choice, sparse = self.mixed_precision, _sparse_weights(self.module)
        return Reducer(
            found,
            self.process_group,
            self._limits,
            self.find_unused_parameters,
            self.static_graph,
            self.gradient_as_bucket_view,
            choice and (choice.reduce_dtype or choice.param_dtype),
            found.values(),
            [id(p) in sparse for p in found] if sparse else (),
        )

    # What ranks have in common.

    def _compare_models(self, parameters: list) -> None:
        from taeda.distributed._objects import all_gather_object

        mine = [(tuple(p.shape), str(p.dtype)) for p in parameters]
        every: list = [None] * self.process_group.size()
        all_gather_object(every, mine, group=self.process_group)
        for rank, other in enumerate(every):
            if other != every[0]:
                raise RuntimeError(
                    f"DDP expects same model across all ranks, but rank {rank} has "
                    f"parameters {other} and rank 0 has {every[0]}"
                )

    @property
    def broadcast_buffers(self) -> bool:
        """The old name of `forward_sync_buffers`."""
        return self.forward_sync_buffers

    @broadcast_buffers.setter
    def broadcast_buffers(self, value: bool) -> None:
        self.forward_sync_buffers = value

    def _states(self, with_buffers: bool = True) -> list:
        skipped = self.parameters_to_ignore
        named = [*self.module.named_parameters()]
        if with_buffers:
            named += self.module.named_buffers()
        return [t for name, t in named if name not in skipped]

    def _buffers_to_send(self) -> list:
        skipped = self.parameters_to_ignore
        return [t for name, t in self.module.named_buffers() if name not in skipped]

    def _send_states(self, root: int, tensors: list) -> None:
        """Copies the root's tensors to all ranks, those of a dtype together."""
        by_dtype: dict = {}
        for tensor in tensors:
            by_dtype.setdefault(tensor.dtype, []).append(tensor)
        with taeda.no_grad():
            for group in by_dtype.values():
                flat = taeda.cat([t.detach().reshape(-1) for t in group])
                collectives.broadcast(flat, group=self.process_group, group_src=root)
                parts = flat.split([t.numel() for t in group])
                for tensor, part in zip(group, parts, strict=True):
                    tensor.detach().copy_(part.view(tensor.shape))

    # Forward.

    def forward(self, *inputs, **kwargs):
        self._before_forward()
        if self._low is None:
            output = self.module(*inputs, **kwargs)
        else:
            output = self._low.run(self.module, inputs, kwargs)
        self._after_forward(output)
        return output

    def _before_forward(self) -> None:
        """Buffers and the order of buckets, before the model runs."""
        syncs = taeda.is_grad_enabled() and self.require_backward_grad_sync
        if taeda.is_grad_enabled():
            work = Join.notify_join_context(self)
            if work is not None:
                self._count_active(work)
            if syncs and self.reducer.rebuild():
                self._note_rebuilt()
            if syncs:
                self.reducer.check_finished()
            if self._join_config.enable:
                self._any_rank_syncs(is_joined=False)
        if self._must_sync_buffers():
            if self._join_config.enable:
                self._sync_buffers_from_active(is_joined=False)
            else:
                self._send_states(0, self._buffers_to_send())

    def _after_forward(self, output) -> None:
        """Makes the reducer wait for the gradients of these outputs."""
        if taeda.is_grad_enabled() and self.require_backward_grad_sync:
            self.require_forward_param_sync = True
            self.reducer.prepare(_tensors_in(output))
        else:
            self.require_forward_param_sync = False
            if taeda.is_grad_enabled():
                self.reducer.skip()

    def _must_sync_buffers(self) -> bool:
        return (
            self.require_forward_param_sync
            and self.forward_sync_buffers
            and self.training
            and bool(self._buffers_to_send())
        )

    def will_sync_module_buffers(self) -> bool:
        """Whether the next forward pass sends rank 0's buffers."""
        return (
            self.require_forward_param_sync
            and self.forward_sync_buffers
            and bool(self._buffers_to_send())
        )

    def _note_rebuilt(self) -> None:
        self._rebuilt += 1

    @contextlib.contextmanager
    def no_sync(self):
        """A block in which gradients are added up here and sent by the next pass."""
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def register_comm_hook(self, state: object, hook) -> None:
        """Sends buckets by `hook(state, bucket)`, which returns a future.

        Raises:
            RuntimeError: there is one.
            TypeError: it cannot be called.
        """
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        if self.reducer.hook is not None:
            raise RuntimeError(
                "register_comm_hook or register_builtin_comm_hook can only be called "
                "once."
            )
        self._comm_hooks.append((hook, state))
        self.reducer.hook = (state, hook)

    def _register_builtin_comm_hook(self, comm_hook_type) -> None:
        """Sends buckets by one of `BuiltinCommHookType`; once, as `register_comm_hook`.

        Raises:
            RuntimeError: there is a hook.
        """
        from taeda.distributed.algorithms.ddp_comm_hooks import default_hooks

        hook = {
            "ALLREDUCE": default_hooks.allreduce_hook,
            "FP16_COMPRESS": default_hooks.fp16_compress_hook,
        }[comm_hook_type.name]
        self.register_comm_hook(self.process_group, hook)

    # Uneven inputs.

    def join(
        self,
        divide_by_initial_world_size: bool = True,
        enable: bool = True,
        throw_on_early_termination: bool = False,
    ) -> Join:
        """A block in which ranks may have different numbers of batches.

        Args:
            divide_by_initial_world_size: averages count ranks without inputs.
            enable: False makes the block do nothing.
            throw_on_early_termination: all ranks raise when one runs out.
        """
        return Join(
            [self],
            enable,
            throw_on_early_termination,
            divide_by_initial_world_size=divide_by_initial_world_size,
        )

    def join_hook(self, **kwargs) -> JoinHook:
        return _DDPJoinHook(self, kwargs.get("divide_by_initial_world_size", True))

    @property
    def join_device(self) -> taeda.device:
        return self.device

    @property
    def join_process_group(self):
        return self.process_group

    def _count_active(self, work) -> None:
        work.wait()
        active = int(work.result()[0])
        whole = self._divide_by_initial_world_size
        self.reducer.divide_by = None if whole else active

    def _any_rank_syncs(self, is_joined: bool) -> bool:
        flag = taeda.zeros(1, device=self.device)
        if not is_joined and self.require_backward_grad_sync:
            flag.fill_(1)
        collectives.all_reduce(flag, group=self.process_group)
        return bool(flag)

    def _common_rank(self, candidate: bool) -> int:
        """The highest rank that is a candidate."""
        mine = self.process_group.rank() if candidate else -1
        found = taeda.tensor([mine], device=self.device)
        collectives.all_reduce(found, ReduceOp.MAX, group=self.process_group)
        if int(found) < 0:
            raise ValueError("BUG! Expected rank_cond to be true for at least one rank")
        return int(found)

    def _sync_buffers_from_active(self, is_joined: bool) -> None:
        if self.forward_sync_buffers and self._buffers_to_send():
            root = self._common_rank(not is_joined)
            self._send_states(root, self._buffers_to_send())

    def _sync_final_model(self, is_last_joiner: bool) -> None:
        self._send_states(self._common_rank(is_last_joiner), self._states())

    # Modules.

    def scatter(self, inputs, kwargs, device_ids):
        """Inputs cut into a part for each device, as `DataParallel` does."""
        return scatter_kwargs(inputs, kwargs, device_ids, dim=self.dim)

    def gather(self, outputs, output_device):
        """Outputs of several devices, joined on one."""
        return gather(outputs, output_device, dim=self.dim)

    def to_kwargs(self, inputs, kwargs, device_id):
        """Inputs on a device of this model's kind: one pair of tuples."""
        from taeda.utils._pytree import tree_map_only

        device = taeda.device(self.device_type, device_id)
        moved = tree_map_only(taeda.Tensor, lambda t: t.to(device), (inputs, kwargs))
        return (moved[0],), (moved[1],)

    def train(self, mode: bool = True):
        super().train(mode)
        return self

    def __getstate__(self) -> dict:
        state = dict(self.__dict__)
        for name in ("process_group", "reducer"):
            state.pop(name, None)
        return state

    def __setstate__(self, state: dict) -> None:
        super().__setstate__(state)
        self.process_group = _get_default_group()
        found = _trained(self.module, self.parameters_to_ignore)
        self.reducer = self._make_reducer(found)

    def _get_ddp_logging_data(self) -> dict[str, Any]:
        """Facts for those who measure."""
        group = self.process_group
        return {
            "world_size": group.size(),
            "rank": group.rank(),
            "module_name": type(self.module).__name__,
            "backend_name": group.name(),
            "find_unused_parameters": self.find_unused_parameters,
            "gradient_as_bucket_view": self.gradient_as_bucket_view,
            "broadcast_buffers": self.forward_sync_buffers,
            "bucket_cap_bytes": self.bucket_bytes_cap,
            "has_rebuilt_buckets": int(self._rebuilt > 0),
            "bucket_sizes": ", ".join(map(str, self.reducer.bucket_bytes())),
            "num_parameter_tensors": len(self.reducer.parameters),
            "is_multi_device_module": 0,
        }
