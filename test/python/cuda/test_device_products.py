"""NVIDIA's libraries, and backward passes, on emulated devices."""

import pytest
from emulated import run


@pytest.mark.parametrize(
    "name",
    [f"device_{n}.py" for n in ("products", "convolutions", "fourier", "backward")],
)
def test_on_emulated_devices(name: str) -> None:
    run(name)
