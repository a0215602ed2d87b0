"""Recorded calls on emulated devices, half 2 of 2."""

import pytest
from emulated import run


@pytest.mark.parametrize("share", [3, 4, 5])
def test_on_emulated_devices(share: int) -> None:
    run("device_operators.py", share=(share, 6))
