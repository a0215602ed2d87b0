"""What checkpoints must hold: the state of one process after as many steps."""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path

import campaign_programs as programs
import taeda
from campaign_cases import Case
from taeda.distributed.checkpoint import CheckpointException


class _Alone:
    """Training in this process, and its weights after each multiple of EVERY."""

    def __init__(self) -> None:
        self._model = programs.model_of()
        self._optimizer = programs.optimizer_of(self._model)
        self._weights = [self._copy()]

    def _copy(self) -> dict:
        return {k: v.detach().clone() for k, v in self._model.state_dict().items()}

    def after(self, steps: int) -> dict:
        """The weights; those of earlier calls are kept."""
        every = programs.EVERY
        for done in range((len(self._weights) - 1) * every, steps):
            x, y = programs.batch_of(done)
            self._optimizer.zero_grad()
            taeda.nn.functional.mse_loss(self._model(x), y).backward()
            self._optimizer.step()
            if (done + 1) % every == 0:
                self._weights.append(self._copy())
        return self._weights[steps // every]


@cache
def _alone() -> _Alone:
    return _Alone()


def check_checkpoint(folder: Path, case: Case) -> list[str]:
    """What is wrong with the checkpoint that a case left.

    Args:
        folder: of the case. `saved` has the step of the last `save` that returned.
        case: it; training that ended of itself has saved its last multiple of EVERY.
    """
    path, saved = folder / "saved", 0
    if path.exists():
        saved = int(path.read_text())
    model = programs.model_of()
    optimizer = programs.optimizer_of(model)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # there is no process group here
            step = programs.load(model, optimizer, folder / "checkpoint")
    except (Exception, CheckpointException) as error:
        return [f"lost checkpoint of step {saved}: {type(error).__name__}: {error}"]
    if not saved <= step <= saved + programs.EVERY:
        return [f"lost checkpoint: {saved} was saved, {step} is there"]
    last = case.steps // programs.EVERY * programs.EVERY
    if case.launched and case.is_outlived and step != last:
        return [f"training ended at the checkpoint of step {step}, not {last}"]
    wanted = _alone().after(step)
    for name, found in model.state_dict().items():
        error = float((found - wanted[name]).abs().max())
        if not error <= 1e-9:
            return [f"the checkpoint of step {step} has another {name}: {error:g}"]
    return []
