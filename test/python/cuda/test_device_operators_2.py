"""Recorded calls on emulated devices, share 2 of 2."""

from emulated import run


def test_on_emulated_devices() -> None:
    run("device_operators.py", share=(1, 2))
