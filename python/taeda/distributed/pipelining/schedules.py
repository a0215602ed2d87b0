"""Schedules of pipelines: their tables, and what runs them."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import taeda

from . import _rules
from ._exchange import Exchange
from ._table import Action, Kind, Table, check, parse
from .microbatch import merge_chunks, split_args_kwargs_into_chunks, split_tensor
from .stage import PipelineStage

__all__ = [
    "PipelineScheduleMulti",
    "PipelineScheduleSingle",
    "Schedule1F1B",
    "ScheduleDualPipeV",
    "ScheduleGPipe",
    "ScheduleInterleaved1F1B",
    "ScheduleInterleavedZeroBubble",
    "ScheduleLoopedBFS",
    "ScheduleZBVZeroBubble",
    "get_schedule_class",
]

FORWARD, FULL_BACKWARD = Kind.FORWARD, Kind.FULL_BACKWARD
BACKWARD_INPUT, BACKWARD_WEIGHT = Kind.BACKWARD_INPUT, Kind.BACKWARD_WEIGHT
OVERLAP_F_B = Kind.OVERLAP_F_B
_Action, _ComputationType = Action, Kind


@dataclass
class _PipelineContext:
    """What a function of `register_custom_function` is told.

    Attributes:
        schedule_ref: the schedule.
        arg_mbs, kwarg_mbs, target_mbs: of all micro-batches.
        losses: those that have been computed, by micro-batch.
    """

    schedule_ref: Any
    arg_mbs: list[tuple] | None = None
    kwarg_mbs: list[dict] | None = None
    target_mbs: list | None = None
    losses: list | None = None


class _Step:
    """One run through a table at this rank."""

    def __init__(self, schedule: _Schedule, table: Table, context: Any) -> None:
        self.schedule, self.context = schedule, context
        stages = schedule._stages
        self.stages = {stage.stage_index: stage for stage in stages}
        self.rank_of, self.rank = schedule.stage_index_to_group_rank, schedule.rank
        device, group = stages[0].device, stages[0].group
        self.exchange = Exchange(group, table, self.rank_of, device)
        self.row = [action for action in table[self.rank] if action]
        self.last = self._last_backwards()

    def _last_backwards(self) -> set:
        """The actions after which a stage's gradients are complete."""
        last = {}
        for action in self.row:
            for part in action.parts():
                if part.computation_type in (FULL_BACKWARD, BACKWARD_WEIGHT):
                    last[part.stage_index] = part
        return set(last.values())

    def run(self) -> None:
        for action in self.row:
            for part in action.parts():
                self.bring(part)
            custom = self.schedule._custom.get(action.computation_type)
            if custom is not None:
                custom(action, self.context)
            else:
                for part in action.parts():
                    self.bring(part)
                    self.compute(part)
                    self.pass_on(part)
                continue
            for part in action.parts():
                self.pass_on(part)
        self.exchange.finish()

    def bring(self, action: Action) -> None:
        """Receives what an action needs from another rank."""
        stage, batch = self.stages[action.stage_index], action.microbatch_index
        kind, index = action.computation_type, action.stage_index
        if kind is FORWARD and index > 0 and batch not in stage._inputs:
            if self.rank_of[index - 1] != self.rank:
                tensors, flags = self.exchange.receive("F", index, batch)
                stage.take_inputs(tensors, batch, flags)
        elif kind in (FULL_BACKWARD, BACKWARD_INPUT) and not stage.is_last:
            if self.rank_of[index + 1] != self.rank and batch not in stage._grads:
                tensors, _ = self.exchange.receive("B", index, batch)
                stage._grads[batch] = tuple(tensors)

    def compute(self, action: Action) -> None:
        """Does what an action says with a stage of this rank."""
        stage, batch = self.stages[action.stage_index], action.microbatch_index
        schedule, context = self.schedule, self.context
        last = action in self.last
        if action.computation_type is FORWARD:
            keep = schedule._return_outputs
            args, kwargs = context.arg_mbs[batch], context.kwarg_mbs[batch]
            output = stage.forward_one_chunk(batch, args, kwargs, keep)
            schedule._note_loss(stage, output, batch, context)
        elif action.computation_type is BACKWARD_WEIGHT:
            stage.backward_weight_one_chunk(batch, last_backward=last)
        else:
            full = action.computation_type is FULL_BACKWARD
            loss = context.losses[batch] if stage.is_last else None
            stage.backward_one_chunk(batch, loss, full, last_backward=last)

    def pass_on(self, action: Action) -> None:
        """Gives what an action has made to the stage that waits for it."""
        stage, batch = self.stages[action.stage_index], action.microbatch_index
        if action.computation_type is FORWARD:
            if not stage.is_last:
                self._give(stage.outputs_to_send(batch), stage.stage_index + 1, batch)
        elif action.computation_type is not BACKWARD_WEIGHT and not stage.is_first:
            grads = stage.get_local_bwd_output(batch)
            self._give(grads, stage.stage_index - 1, batch, backward=True)

    def _give(
        self, tensors: tuple, target: int, batch: int, backward: bool = False
    ) -> None:
        if self.rank_of[target] != self.rank:
            self.exchange.tidy()
            self.exchange.send(target, tensors)
        elif backward:
            self.stages[target].set_local_bwd_input(tensors, batch)
        else:
            self.stages[target].set_local_fwd_input(tensors, batch)


class _Schedule:
    """What all schedules have; see PipelineScheduleMulti."""

    _name = ""  # in _rules.MAKERS
    _place: Callable = staticmethod(_rules.looped)

    def __init__(
        self,
        stages: list[PipelineStage],
        n_microbatches: int,
        loss_fn: Callable[..., taeda.Tensor] | None = None,
        args_chunk_spec: Any = None,
        kwargs_chunk_spec: Any = None,
        output_merge_spec: Any = None,
        scale_grads: bool = True,
    ) -> None:
        if n_microbatches < 1:
            raise ValueError(f"n_microbatches must be positive, got {n_microbatches}")
        self._stages, self._n_microbatches = stages, n_microbatches
        self._loss_fn, self.scale_grads = loss_fn, scale_grads
        self._args_chunk_spec = args_chunk_spec
        self._kwargs_chunk_spec = kwargs_chunk_spec
        self._output_merge_spec = output_merge_spec
        self._has_backward = loss_fn is not None
        self._return_outputs = True
        self._custom: dict[Kind, Callable] = {}
        self._num_stages = stages[0].num_stages
        self.pp_group_size, self.rank = stages[0].group_size, stages[0].group_rank
        self._place_stages(self._place(self.pp_group_size, self._num_stages))
        self.pipeline_order: Table = {}
        if self._name:
            make = _rules.MAKERS[self._name]
            self.pipeline_order = make(
                self.pp_group_size, self.stage_index_to_group_rank, n_microbatches
            )

    def _place_stages(self, rank_of: dict[int, int]) -> None:
        """Notes where stages are.

        Raises:
            ValueError: this rank's stages should be at another.
        """
        own = [stage for stage, rank in rank_of.items() if rank == self.rank]
        given = sorted(stage.stage_index for stage in self._stages)
        if given != sorted(own):
            raise ValueError(
                f"{type(self).__name__}: rank {self.rank} of {self.pp_group_size} "
                f"needs stages {sorted(own)}, and was given {given}"
            )
        self.stage_index_to_group_rank = rank_of
        for stage in self._stages:
            stage.stage_index_to_group_rank = rank_of

    def _note_loss(
        self, stage: PipelineStage, output: Any, batch: int, context: Any
    ) -> None:
        targets = context.target_mbs
        if not stage.is_last or self._loss_fn is None:
            return
        if targets is None:
            if self._has_backward or context.losses is None:
                raise TypeError("step() needs a target: the schedule has a loss_fn")
            return
        context.losses[batch] = self._loss_fn(
            output, targets[batch], **self._loss_kwargs
        )

    def _microbatches(self, args: tuple, kwargs: dict, target: Any) -> tuple:
        """Arguments and targets by micro-batch."""
        count = self._n_microbatches
        arg_mbs: list = [()] * count
        kwarg_mbs: list = [{}] * count
        if args or kwargs:
            arg_mbs, kwarg_mbs = split_args_kwargs_into_chunks(
                args, kwargs, count, self._args_chunk_spec, self._kwargs_chunk_spec
            )
            if len(arg_mbs) != count:
                raise ValueError(f"Expecting {count} arg_mbs but got {len(arg_mbs)}")
        if target is None:
            return arg_mbs, kwarg_mbs, None
        return arg_mbs, kwarg_mbs, list(split_tensor(target, 0, count))

    def step(
        self,
        *args: Any,
        target: Any = None,
        losses: list | None = None,
        return_outputs: bool = True,
        loss_kwargs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Runs a batch through the pipeline; gradients are added to those of weights.

        Args:
            args, kwargs: of the whole batch, `args` at the rank of the first stage.
            target: of the whole batch, at the rank of the last stage.
            losses (list): is filled with the loss of each micro-batch there.
            return_outputs (bool): the outputs are kept and put together.
            loss_kwargs (dict): further arguments of `loss_fn`.

        Returns:
            The output of the batch at the rank of the last stage, None elsewhere.

        Raises:
            RuntimeError: gradients are off. ValueError: too few rows for the number of
                micro-batches.
        """
        if self._has_backward and self._needs_grad and not taeda.is_grad_enabled():
            raise RuntimeError(
                "step() requires gradients to be enabled for backward computation; "
                "under no_grad() call eval() instead."
            )
        if losses is not None and not isinstance(losses, list):
            raise TypeError(f"losses must be a list but got a {type(losses)}")
        for stage in self._stages:
            stage.has_backward = self._has_backward
            stage._loss_share = self._n_microbatches if self.scale_grads else 1
            stage.clear_runtime_states()
        self._return_outputs, self._loss_kwargs = return_outputs, loss_kwargs or {}
        parts = self._microbatches(args, kwargs, target)
        context = _PipelineContext(self, *parts, [None] * self._n_microbatches)
        _Step(self, self._table(), context).run()
        if self._has_backward:
            for stage in self._stages:
                stage.perform_reduce_grad(1)
        return self._result(context, losses)

    _needs_grad = True

    def _table(self) -> Table:
        if self._has_backward:
            return self.pipeline_order
        return _rules.forward_only(
            self.pp_group_size, self.stage_index_to_group_rank, self._n_microbatches
        )

    def _result(self, context: _PipelineContext, losses: list | None) -> Any:
        """Hands out losses and outputs at the rank of the last stage."""
        last = [stage for stage in self._stages if stage.is_last]
        if not last:
            return None
        if losses is not None:
            if self._loss_fn is None or None in [type(x) for x in context.losses]:
                raise RuntimeError("there are no losses: the schedule has no loss_fn")
            losses[:] = context.losses
        if not self._return_outputs:
            return None
        chunks = last[0].output_chunks
        if self._has_backward:
            chunks = [_detached(chunk) for chunk in chunks]
        return merge_chunks(chunks, self._output_merge_spec)

    def eval(
        self,
        *args: Any,
        target: Any = None,
        losses: list | None = None,
        **kwargs: Any,
    ) -> Any:
        """Runs a batch forward only; arguments as of `step`."""
        before = self._has_backward
        self._has_backward = False
        try:
            return self.step(*args, target=target, losses=losses, **kwargs)
        finally:
            self._has_backward = before


def _detached(chunk: Any) -> Any:
    """Outputs without the graphs that the backwards have used up."""
    from taeda.utils import _pytree as pytree

    return pytree.tree_map(
        lambda v: v.detach() if isinstance(v, taeda.Tensor) else v, chunk
    )


class PipelineScheduleSingle(_Schedule):
    """A schedule with one stage on each rank.

    Args:
        stage (PipelineStage): this rank's.
        n_microbatches (int): into how many parts a batch is split.
        loss_fn: of (output, target), at the last stage; None means no backward.
        args_chunk_spec, kwargs_chunk_spec: how arguments are split, see
            `microbatch.split_args_kwargs_into_chunks`.
        output_merge_spec: how outputs are put together, see `microbatch.merge_chunks`.
        scale_grads (bool): gradients are those of the mean of the losses, and otherwise
            of their sum.
    """

    def __init__(
        self,
        stage: PipelineStage,
        n_microbatches: int,
        loss_fn: Callable | None = None,
        args_chunk_spec: Any = None,
        kwargs_chunk_spec: Any = None,
        output_merge_spec: Any = None,
        scale_grads: bool = True,
    ) -> None:
        super().__init__(
            [stage],
            n_microbatches,
            loss_fn,
            args_chunk_spec,
            kwargs_chunk_spec,
            output_merge_spec,
            scale_grads,
        )
        self._stage = stage


class ScheduleGPipe(PipelineScheduleSingle):
    """All micro-batches forward, then all backward."""

    _name = "GPipe"


class Schedule1F1B(PipelineScheduleSingle):
    """One forward, one backward: fewer micro-batches in memory than with GPipe."""

    _name = "1F1B"


class PipelineScheduleMulti(_Schedule):
    """A schedule with several stages on each rank.

    Arguments as of PipelineScheduleSingle, but `stages` is a list, and:

    Args:
        use_full_backward: deprecated, without effect.
        backward_requires_autograd (bool): False allows `step` without gradients, for
            functions of `register_custom_function` that do backwards of their own.
        defer_pp_recv (bool): as always here, a message is received when it is needed.

    Without a table of its own it runs the one of `_load_csv`.
    """

    def __init__(
        self,
        stages: list[PipelineStage],
        n_microbatches: int,
        loss_fn: Callable | None = None,
        args_chunk_spec: Any = None,
        kwargs_chunk_spec: Any = None,
        output_merge_spec: Any = None,
        use_full_backward: bool | None = None,
        scale_grads: bool = True,
        backward_requires_autograd: bool = True,
        defer_pp_recv: bool = False,
    ) -> None:
        super().__init__(
            list(stages),
            n_microbatches,
            loss_fn,
            args_chunk_spec,
            kwargs_chunk_spec,
            output_merge_spec,
            scale_grads,
        )
        self._needs_grad = backward_requires_autograd

    def register_custom_function(
        self, computation_type: Kind, custom_function: Callable
    ) -> None:
        """Has a function do the actions of a kind.

        Args:
            computation_type: FORWARD, FULL_BACKWARD, BACKWARD_INPUT, BACKWARD_WEIGHT or
                OVERLAP_F_B, of this module.
            custom_function: of (action, context); it calls the stages' methods. What
                they need has been received, and what they make is sent.

        Raises:
            ValueError: another kind.
        """
        if not isinstance(computation_type, Kind):
            raise ValueError(f"Invalid computation type {computation_type}")
        self._custom[computation_type] = custom_function

    def _load_csv(self, filename: str, format: str = "compute_only") -> None:
        """Takes the table of a file: a row for each rank, actions such as 0F1."""
        if format != "compute_only":
            raise NotImplementedError(f"pipeline tables of format {format!r}")
        with open(filename, newline="") as file:
            rows = list(csv.reader(file))
        table = {rank: [parse(text) for text in row] for rank, row in enumerate(rows)}
        rank_of = {
            part.stage_index: rank
            for rank, row in table.items()
            for action in row
            for part in (action.parts() if action else ())
        }
        check(table, self._num_stages, self._n_microbatches, rank_of)
        self._place_stages(rank_of)
        self.pipeline_order = table

    def _dump_csv(self, filename: str, format: str = "compute_only") -> None:
        """Writes the table to a file that `_load_csv` reads."""
        if format != "compute_only":
            raise NotImplementedError(f"pipeline tables of format {format!r}")
        with open(filename, "w", newline="") as file:
            for _, row in sorted(self.pipeline_order.items()):
                csv.writer(file).writerow(["" if a is None else str(a) for a in row])


_PipelineScheduleRuntime = PipelineScheduleMulti


class _Usual(PipelineScheduleMulti):
    """The arguments that most schedules of several stages have."""

    def __init__(
        self,
        stages: list[PipelineStage],
        n_microbatches: int,
        loss_fn: Callable | None = None,
        args_chunk_spec: Any = None,
        kwargs_chunk_spec: Any = None,
        output_merge_spec: Any = None,
        scale_grads: bool = True,
        backward_requires_autograd: bool = True,
        defer_pp_recv: bool = False,
    ) -> None:
        super().__init__(
            stages,
            n_microbatches,
            loss_fn,
            args_chunk_spec,
            kwargs_chunk_spec,
            output_merge_spec,
            scale_grads=scale_grads,
            backward_requires_autograd=backward_requires_autograd,
            defer_pp_recv=defer_pp_recv,
        )


class ScheduleLoopedBFS(PipelineScheduleMulti):
    """All micro-batches through a stage before the rank's next (arXiv:2211.05953)."""

    _name = "LoopedBFS"

    def __init__(
        self,
        stages: list[PipelineStage],
        n_microbatches: int,
        loss_fn: Callable | None = None,
        output_merge_spec: Any = None,
        scale_grads: bool = True,
        backward_requires_autograd: bool = True,
        defer_pp_recv: bool = False,
    ) -> None:
        super().__init__(
            stages,
            n_microbatches,
            loss_fn,
            output_merge_spec=output_merge_spec,
            scale_grads=scale_grads,
            backward_requires_autograd=backward_requires_autograd,
            defer_pp_recv=defer_pp_recv,
        )


class ScheduleInterleaved1F1B(_Usual):
    """1F1B with several stages on each rank (arXiv:2104.04473)."""

    _name = "Interleaved1F1B"


class ScheduleInterleavedZeroBubble(_Usual):
    """Interleaved, with weights' gradients in waiting slots (arXiv:2401.10241)."""

    _name = "InterleavedZeroBubble"


class _TwoStages(_Usual):
    """Schedules with a stage on the way there and one on the way back."""

    _place = staticmethod(_rules.v_shaped)
    _title = ""

    def _place_stages(self, rank_of: dict[int, int]) -> None:
        if len(self._stages) != 2:
            raise ValueError(
                f"{self._title} requires exactly 2 stages per rank, but got "
                f"{len(self._stages)}."
            )
        super()._place_stages(rank_of)


class ScheduleZBVZeroBubble(_TwoStages):
    """Zero bubble in a V: two stages on each rank (arXiv:2401.10241, section 6)."""

    _name, _title = "ZBVZeroBubble", "ZBV"


class ScheduleDualPipeV(_TwoStages):
    """DualPipe in a V: forwards and backwards at once (arXiv:2412.19437).

    Raises:
        ValueError: fewer micro-batches than stages.
    """

    _name, _title = "DualPipeV", "DualPipeV"


def get_schedule_class(schedule_name: str) -> type:
    """The class of a schedule by its name in any case, such as "1F1B".

    Raises:
        ValueError: there is none.
    """
    bases = PipelineScheduleSingle, PipelineScheduleMulti
    known = {name: globals()[f"Schedule{name}"] for name in _rules.MAKERS}
    known |= {kind.__name__: kind for kind in bases}
    for name, kind in known.items():
        if name.lower() == schedule_name.lower():
            return kind
    raise ValueError(
        f"Unknown schedule name '{schedule_name}'. The valid options are {list(known)}"
    )
