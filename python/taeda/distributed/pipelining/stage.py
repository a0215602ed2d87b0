"""A stage of a pipeline: a module, and what it must remember of each micro-batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import taeda
import taeda.distributed as dist
from taeda import nn
from taeda.utils import _pytree as pytree

from ._split import Later, of_inputs

__all__ = ["PipelineStage", "build_stage"]


def _as_tuple(value: Any) -> tuple:
    """One output or several, as a tuple."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


class PipelineStage:
    """A part of a model on this rank.

    The first stage is given the arguments of `step`, the others what the one before
    returns: a tensor or a tuple of tensors, whose shapes are sent along. Keyword
    arguments of `step` are given to the rank's own stages.

    Args:
        submodule: the part, on `device`.
        stage_index (int): from 0. num_stages (int): of the whole pipeline.
        device: where it computes.
        input_args, output_args: examples of a micro-batch's inputs and outputs; needed
            only by `get_fwd_recv_ops` and `get_bwd_recv_ops`, since `step` sends shapes
            along.
        output_grads, input_grads: examples of gradients; checked to have the shapes of
            `output_args` and `input_args`.
        group: of the pipeline; all ranks by default.
        dw_builder: returns, after a backward, a function that computes the gradients
            of weights, for modules that leave them to later.
        get_mesh: of DTensors; they cannot be sent yet.

    Raises:
        ValueError: an index outside of the pipeline. RuntimeError: more ranks than
            stages.

    On every rank:
        PipelineStage(model[2:], 1, 2, taeda.device("cpu"))
    """

    def __init__(
        self,
        submodule: nn.Module,
        stage_index: int,
        num_stages: int,
        device: taeda.device,
        input_args: taeda.Tensor | tuple[taeda.Tensor, ...] | None = None,
        output_args: taeda.Tensor | tuple[taeda.Tensor, ...] | None = None,
        output_grads: taeda.Tensor | tuple | None = None,
        input_grads: taeda.Tensor | tuple | None = None,
        group: dist.ProcessGroup | None = None,
        dw_builder: Callable[[], Callable[..., None]] | None = None,
        get_mesh: Callable | None = None,
    ) -> None:
        if not 0 <= stage_index < num_stages:
            raise ValueError(
                f"Stage index {stage_index} is out of range of {num_stages}"
            )
        if get_mesh is not None:
            raise NotImplementedError(
                "PipelineStage: get_mesh (DTensors between stages)"
            )
        self.submod, self.device, self.group = submodule, device, group
        self.stage_index, self.num_stages = stage_index, num_stages
        self.dw_builder = dw_builder
        self.group_rank = dist.get_rank(group)
        self.group_size = dist.get_world_size(group)
        if self.group_size > num_stages:
            raise RuntimeError(
                f"Pipeline group size {self.group_size} cannot be larger than number "
                f"of stages {num_stages}"
            )
        self.stage_index_to_group_rank = {
            stage: stage % self.group_size for stage in range(num_stages)
        }
        self._examples = {
            "input": _examples("input", input_args, input_grads),
            "output": _examples("output", output_args, output_grads),
        }
        self.has_backward = False
        self._loss_share = 1  # the loss is divided by this before its gradient is taken
        self.output_chunks: list[Any] = []
        self.clear_runtime_states()

    def __repr__(self) -> str:
        return f"PipelineStage({self.stage_index} of {self.num_stages})"

    @property
    def has_backward(self) -> bool:
        """Are gradients taken? The schedule says so."""
        return self._has_backward

    @has_backward.setter
    def has_backward(self, value: bool) -> None:
        self._has_backward = value

    @property
    def is_first(self) -> bool:
        """Does it get the arguments of `step`?"""
        return self.stage_index == 0

    @property
    def is_last(self) -> bool:
        """Does it make the output?"""
        return self.stage_index == self.num_stages - 1

    def clear_runtime_states(self) -> None:
        """Forgets all micro-batches."""
        self.output_chunks.clear()
        # By micro-batch: tensors that came in, what was made of them, gradients of
        # outputs, gradients of inputs, and what a later weights' part needs.
        self._inputs: dict[int, tuple] = {}
        self._outputs: dict[int, tuple] = {}
        self._grads: dict[int, tuple] = {}
        self._input_grads: dict[int, tuple] = {}
        self._later: dict[int, Any] = {}

    # What other stages give.
    def set_local_fwd_input(self, prev_stage_outputs: Any, mb_index: int) -> None:
        """Takes the outputs of the stage before, of this rank too, as inputs."""
        self.take_inputs(_as_tuple(prev_stage_outputs), mb_index)

    def take_inputs(
        self, tensors: Sequence, batch: int, flags: Sequence[bool] | None = None
    ) -> None:
        """Takes inputs of a micro-batch, and which of them require gradients."""
        flags = [t.requires_grad for t in tensors] if flags is None else flags
        self._inputs[batch] = tuple(
            tensor.detach().requires_grad_(flag and self.has_backward)
            for tensor, flag in zip(tensors, flags, strict=True)
        )

    def get_local_bwd_output(self, mb_index: int) -> tuple:
        """The gradients of inputs, for the stage before."""
        if not self.has_backward:
            raise RuntimeError(f"stage {self.stage_index} does no backward")
        if self.is_first:
            raise RuntimeError("the first stage has no stage before it")
        return self._input_grads.pop(mb_index)

    def set_local_bwd_input(self, next_stage_bwd_outputs: tuple, mb_index: int) -> None:
        """Takes the gradients of outputs from the stage behind."""
        if not self.has_backward:
            raise RuntimeError(f"stage {self.stage_index} does no backward")
        if self.is_last:
            raise RuntimeError("the last stage has no stage behind it")
        self._grads[mb_index] = tuple(next_stage_bwd_outputs)

    # Messages, for schedules written by hand.
    def _peer(self, stage: int) -> int:
        return self.stage_index_to_group_rank[stage]

    def _receiving(self, like: Sequence, source: int) -> tuple[list, list]:
        room = [taeda.empty(t.shape, dtype=t.dtype, device=self.device) for t in like]
        ops = [
            dist.P2POp(dist.irecv, t, group=self.group, group_peer=self._peer(source))
            for t in room
        ]
        return room, ops

    def _sending(self, tensors: Sequence, target: int) -> list:
        peer = self._peer(target)
        if peer == self.group_rank:
            return []
        parts = [t.detach().contiguous() for t in tensors]
        return [
            dist.P2POp(dist.isend, t, group=self.group, group_peer=peer) for t in parts
        ]

    def get_fwd_recv_ops(self, fwd_chunk_id: int) -> list[dist.P2POp]:
        """The messages that bring a micro-batch's inputs; needs `input_args`."""
        if self.is_first or self._peer(self.stage_index - 1) == self.group_rank:
            return []
        room, ops = self._receiving(self._example("input"), self.stage_index - 1)
        flags = [t.dtype.is_floating_point or t.dtype.is_complex for t in room]
        self._inputs[fwd_chunk_id] = tuple(
            t.requires_grad_(flag and self.has_backward)
            for t, flag in zip(room, flags, strict=True)
        )
        return ops

    def get_fwd_send_ops(self, fwd_chunk_id: int) -> list[dist.P2POp]:
        """The messages that take a micro-batch's outputs on."""
        if self.is_last:
            return []
        return self._sending(self._outputs[fwd_chunk_id], self.stage_index + 1)

    def get_bwd_recv_ops(self, bwd_chunk_id: int) -> list[dist.P2POp]:
        """The messages that bring the gradients of its outputs."""
        if self.is_last or not self.has_backward:
            return []
        if self._peer(self.stage_index + 1) == self.group_rank:
            return []
        like = self._outputs.get(bwd_chunk_id) or self._example("output")
        room, ops = self._receiving(like, self.stage_index + 1)
        self._grads[bwd_chunk_id] = tuple(room)
        return ops

    def get_bwd_send_ops(self, bwd_chunk_id: int) -> list[dist.P2POp]:
        """The messages that take the gradients of its inputs back.

        Raises:
            RuntimeError: an input has no gradient, which the other could not know.
        """
        if self.is_first or not self.has_backward:
            return []
        grads = self._input_grads.pop(bwd_chunk_id)
        if any(grad is None for grad in grads):
            raise RuntimeError(
                f"stage {self.stage_index}: an input has no gradient to be sent"
            )
        return self._sending(grads, self.stage_index - 1)

    def _example(self, name: str) -> tuple:
        found = self._examples[name]
        if found is None:
            raise RuntimeError(
                f"stage {self.stage_index}: {name}_args were not given, so what is to "
                "be received is not known"
            )
        return found

    # Computing.
    def forward_maybe_with_nosync(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the module; data-parallel ones leave gradients to the end."""
        if isinstance(self.submod, nn.parallel.DistributedDataParallel):
            with self.submod.no_sync():
                return self.submod(*args, **kwargs)
        return self.submod(*args, **kwargs)

    def forward_one_chunk(
        self,
        fwd_chunk_id: int,
        args: tuple[Any, ...],
        kwargs: dict[str, Any] | None = None,
        save_forward_output: bool = True,
    ) -> Any:
        """Runs the module on a micro-batch and returns what it returns.

        Args:
            args: for the first stage. kwargs: for any.
            save_forward_output (bool): the last stage keeps it for `step`'s result.

        Raises:
            RuntimeError: the module raised, or another stage would get no tensor.
        """
        if not self.is_first:
            args = self._inputs[fwd_chunk_id]
        try:
            output = self.forward_maybe_with_nosync(*args, **(kwargs or {}))
        except Exception as error:
            raise RuntimeError(
                f"[Stage {self.stage_index}] failed to run forward of micro-batch "
                f"{fwd_chunk_id} with {_shapes(args)} {_shapes(kwargs or {})}"
            ) from error
        outputs = _as_tuple(output)
        if self.is_last:
            if save_forward_output:
                self.output_chunks.append(output)
        else:
            self._check_sendable(outputs)
        if self.has_backward or not self.is_last:
            self._outputs[fwd_chunk_id] = outputs
        if not self.has_backward:
            self._inputs.pop(fwd_chunk_id, None)
        return output

    def _check_sendable(self, outputs: tuple) -> None:
        for value in outputs:
            if not isinstance(value, taeda.Tensor):
                raise RuntimeError(
                    f"[Stage {self.stage_index}] returns a {type(value).__name__}; "
                    "between stages go tensors, or tuples of tensors"
                )
            if hasattr(value, "to_local"):
                raise NotImplementedError(
                    f"[Stage {self.stage_index}] DTensors between stages"
                )

    def outputs_to_send(self, batch: int) -> tuple:
        """What the stage behind is given; forgotten here if no backward comes."""
        if self.has_backward:
            return self._outputs[batch]
        return self._outputs.pop(batch)

    def _roots(self, batch: int, loss: Any) -> tuple[list, list]:
        """Where a backward begins, and with which gradients."""
        outputs = self._outputs.pop(batch)
        if self.is_last:
            if loss is None:
                raise RuntimeError(f"[Stage {self.stage_index}] has no loss")
            return [loss], [taeda.ones_like(loss) / self._loss_share]
        grads = self._grads.pop(batch)
        pairs = [
            (output, grad)
            for output, grad in zip(outputs, grads, strict=True)
            if grad is not None and output.requires_grad
        ]
        return [p[0] for p in pairs], [p[1] for p in pairs]

    def backward_one_chunk(
        self,
        bwd_chunk_id: int,
        loss: Any = None,
        full_backward: bool = True,
        last_backward: bool = False,
    ) -> None:
        """Takes gradients for a micro-batch.

        Args:
            loss: of the last stage. full_backward (bool): False takes only those of
                inputs; `backward_weight_one_chunk` is then to be called.
            last_backward (bool): gradients of fully sharded modules are reduced.
        """
        if not self.has_backward:
            return
        roots, seeds = self._roots(bwd_chunk_id, loss)
        inputs = self._inputs.pop(bwd_chunk_id, ())
        whole = full_backward or self.dw_builder is not None
        grads: tuple = (None,) * len(inputs)
        later: Any = None
        if whole:
            self._run("full", roots, seeds, inputs, last_backward)
            grads = tuple(t.grad for t in inputs)
        elif not self.is_first:
            grads, later = self._run("input", roots, seeds, inputs, last_backward)
        if not self.is_first:
            self._input_grads[bwd_chunk_id] = grads
        if self.dw_builder is not None:
            later = self.dw_builder()
            if full_backward:
                later()
            else:
                self._later[bwd_chunk_id] = later
        elif not full_backward:
            self._later[bwd_chunk_id] = later or (roots, seeds)

    def backward_weight_one_chunk(
        self, bwd_chunk_id: int, last_backward: bool = False
    ) -> None:
        """Takes the gradients of weights that a partial backward has left."""
        if not self.has_backward:
            return
        if bwd_chunk_id not in self._later:
            raise AssertionError(
                f"[Stage {self.stage_index}] weights of micro-batch {bwd_chunk_id} "
                "before backward_one_chunk(full_backward=False)"
            )
        later = self._later.pop(bwd_chunk_id)
        if self.dw_builder is not None:
            later()
            return
        pieces = later if isinstance(later, Later) else None
        roots, seeds = ([], []) if pieces else later
        self._run("weight", roots, seeds, (), last_backward, pieces)

    def _run(
        self,
        kind: str,
        roots: list,
        seeds: list,
        inputs: tuple,
        last: bool,
        pieces: Later | None = None,
    ) -> Any:
        kwargs = {"roots": roots, "seeds": seeds, "inputs": inputs, "pieces": pieces}
        return self.backward_maybe_with_nosync(kind, kwargs, last)

    def backward_maybe_with_nosync(
        self, backward_type: str, bwd_kwargs: dict, last_backward: bool = False
    ) -> Any:
        """Runs autograd; fully sharded modules reduce gradients the last time only.

        Args:
            backward_type: "full", "input" or "weight".
            bwd_kwargs: `roots`, their gradients `seeds`, `inputs`, and `pieces`, what
                an "input" backward has left for "weight".
        """
        if hasattr(self.submod, "set_requires_gradient_sync"):
            self.submod.set_is_last_backward(last_backward)
            self.submod.set_reshard_after_backward(last_backward)
            self.submod.set_requires_gradient_sync(last_backward)
        roots, seeds = bwd_kwargs["roots"], bwd_kwargs["seeds"]
        if bwd_kwargs.get("pieces") is not None:
            bwd_kwargs["pieces"].run()
            return None
        if not roots:
            return (None,) * len(bwd_kwargs["inputs"]), None
        if backward_type == "full":
            taeda.autograd.backward(roots, seeds)
            return None
        if backward_type == "input":
            return self._input_gradients(roots, seeds, bwd_kwargs["inputs"])
        if backward_type != "weight":
            raise RuntimeError(f"Unknown backward type: {backward_type}")
        weights = [p for p in self.submod.parameters() if p.requires_grad]
        if self.is_first:
            taeda.autograd.backward(roots, seeds)
        elif weights:
            taeda.autograd.backward(roots, seeds, inputs=weights)
        return None

    def _input_gradients(self, roots: list, seeds: list, inputs: tuple) -> tuple:
        """Gradients of inputs, and what is left for those of weights."""
        wanted = [t for t in inputs if t.requires_grad]
        if not wanted:
            return (None,) * len(inputs), None
        grads, later = of_inputs(roots, seeds, wanted)
        found = iter(grads)
        return tuple(next(found) if t.requires_grad else None for t in inputs), later

    # Gradients of weights.
    def scale_grads(self, grad_scale_factor: int) -> None:
        """Divides the gradients of weights."""
        if grad_scale_factor != 1:
            for param in self.submod.parameters():
                if param.grad is not None:
                    param.grad.div_(grad_scale_factor)

    def perform_reduce_grad(self, grad_scale_factor: int) -> None:
        """Averages data-parallel gradients after the last micro-batch; divides all.

        Fully sharded modules have reduced theirs with the last backward.
        """
        if isinstance(self.submod, nn.parallel.DistributedDataParallel):
            group = self.submod.process_group
            for param in self.submod.parameters():
                if param.grad is not None:
                    dist.all_reduce(param.grad, dist.ReduceOp.AVG, group=group)
        self.scale_grads(grad_scale_factor)


def _examples(name: str, values: Any, grads: Any) -> tuple | None:
    """Examples as a tuple, of which gradients must have the shapes."""
    if values is None:
        return None
    values = _as_tuple(values)
    for value, grad in zip(values, _as_tuple(grads) if grads else (), strict=False):
        if grad is not None and grad.shape != value.shape:
            raise ValueError(
                f"{name}_grads: {tuple(grad.shape)} is not the shape of "
                f"{name}_args, {tuple(value.shape)}"
            )
    return values


def _shapes(values: Any) -> Any:
    """Shapes in place of tensors, for messages."""

    def shape(value: Any) -> Any:
        return tuple(value.shape) if isinstance(value, taeda.Tensor) else value

    return pytree.tree_map(shape, values)


def build_stage(
    stage_module: nn.Module,
    stage_index: int,
    pipe_info: Any,
    device: taeda.device,
    group: dist.ProcessGroup | None = None,
) -> PipelineStage:
    """The stage of a module that `pipeline` has cut out.

    Args:
        stage_module: of `Pipe.get_stage_module`. stage_index (int): its number.
        pipe_info: of `Pipe.info`. device: where it computes; the module is moved there.
        group: of the pipeline; all ranks by default.
    """
    module = stage_module.to(device)
    return PipelineStage(module, stage_index, pipe_info.num_stages, device, group=group)
