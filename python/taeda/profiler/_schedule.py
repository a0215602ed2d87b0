"""Which steps are recorded."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate

from taeda.profiler._kinds import ProfilerAction


def schedule(
    *,
    wait: int,
    warmup: int,
    active: int,
    repeat: int = 0,
    skip_first: int = 0,
    skip_first_wait: int = 0,
):
    """A function from a step's number to what the profiler does in it.

    Args:
        wait: steps of a cycle without recording.
        warmup: steps then that are recorded and thrown away.
        active: steps then that are recorded.
        repeat: the number of cycles; 0 for no end.
        skip_first: steps before the first cycle.
        skip_first_wait: leave the waiting out of the first cycle, when not 0.
    """
    if min(wait, warmup, repeat, active - 1) < 0:
        raise AssertionError(
            f"profiler.schedule: expected wait={wait}, warmup={warmup} and "
            f"repeat={repeat} to be >= 0 and active={active} to be > 0"
        )
    *ends, length = accumulate((wait, warmup, active - 1, 1))
    parts = tuple(ProfilerAction)  # of a cycle, in their order
    start = skip_first - (wait if skip_first_wait else 0)

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        cycle, place = divmod(step - start, length)
        if step < skip_first or (repeat and cycle >= repeat):
            return ProfilerAction.NONE
        return parts[bisect_right(ends, place)]

    return action
