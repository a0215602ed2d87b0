"""Linear algebra on emulated devices."""

from __future__ import annotations

import pytest
from emulated import run


@pytest.mark.parametrize("share", range(2))
def test_on_emulated_devices(share: int) -> None:
    run("device_linalg.py", (share, 2))
