"""Pipelines: a model cut into stages on ranks, fed with micro-batches.

On every rank:
    stage = PipelineStage(part, rank, world, device)
    schedule = Schedule1F1B(stage, n_microbatches=8, loss_fn=loss)
    schedule.step(x) if rank == 0 else schedule.step(target=y, losses=losses)
"""

from __future__ import annotations

from taeda._lazy import attributes

# The modules and what is public of each.
_MODULES = {
    "_IR": "Pipe SplitPoint pipe_split pipeline",
    "schedules": "Schedule1F1B ScheduleDualPipeV ScheduleGPipe ScheduleInterleaved1F1B"
    " ScheduleInterleavedZeroBubble ScheduleLoopedBFS ScheduleZBVZeroBubble",
    "stage": "PipelineStage build_stage",
}
_PUBLIC = {name: module for module in _MODULES for name in _MODULES[module].split()}
_SUBMODULES = "microbatch schedules stage".split()

__all__ = [*_PUBLIC]
_find = attributes(__name__, _PUBLIC, _SUBMODULES)


def __getattr__(name: str):
    return _find(name)
