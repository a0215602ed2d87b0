"""Memory in use over time, as a file."""

from __future__ import annotations

import gzip
import json

__all__ = ["write_timeline"]

_TAKEN, _GIVEN_BACK = 0, 3  # PyTorch's numbers of what happened


def write_timeline(profile, path: str, device: str | None) -> None:
    """See `taeda.profiler.profile.export_memory_timeline`."""
    if device not in (None, "cpu"):
        raise NotImplementedError(
            f"export_memory_timeline: memory of {device}; that of the CPU is recorded"
        )
    if not profile.profile_memory:
        raise RuntimeError("export_memory_timeline requires profile_memory=True")
    if path.endswith(".html"):
        profile.export_page(path)
        return
    recording = profile._recorder("exporting memory")._done()
    if recording is None:
        raise RuntimeError("export_memory_timeline: no recording has ended")
    moments = recording.memory
    if path.endswith("raw.json.gz"):
        data: list = [
            [int(m.time_us * 1000), _TAKEN if m.size > 0 else _GIVEN_BACK, m.size, 0]
            for m in moments
        ]
    else:
        data = [[m.time_us for m in moments], [[m.total] for m in moments]]
    open_file = gzip.open if path.endswith(".gz") else open
    with open_file(path, "wt", encoding="utf-8") as file:
        json.dump(data, file)
