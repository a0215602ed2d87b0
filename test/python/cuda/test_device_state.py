"""Memory, streams, faults and random numbers on emulated devices."""

from __future__ import annotations

from pathlib import Path

import pytest
from emulated import FILES, HERE, run


def test_all_files_are_here_and_run() -> None:
    assert {path.name for path in HERE.glob("device_*.py")} == set(FILES)
    texts = [Path(path).read_text() for path in HERE.glob("test_device_*.py")]
    assert all(any(name in text for text in texts) for name in FILES)


@pytest.mark.parametrize(
    "name",
    [
        "device_memory.py",
        "device_streams.py",
        "device_faults.py",
        "device_random.py",
        "device_amp.py",
    ],
)
def test_on_emulated_devices(name: str) -> None:
    run(name)
