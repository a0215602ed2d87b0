"""Pools, graphs and memory of several processes, on emulated devices."""

from __future__ import annotations

import pytest
from emulated import run


@pytest.mark.parametrize(
    "name", ["device_pools.py", "device_graphs.py", "device_sharing.py"]
)
def test_on_emulated_devices(name: str) -> None:
    run(name)
