"""NVIDIA's libraries, and backward passes, on emulated devices."""

import pytest
from emulated import run


@pytest.mark.parametrize(
    "name",
    [
        "device_products.py",
        "device_convolutions.py",
        "device_fourier.py",
        "device_backward.py",
    ],
)
def test_on_emulated_devices(name: str) -> None:
    run(name)
