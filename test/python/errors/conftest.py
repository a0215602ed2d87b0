"""Makes `refusals.py` importable from the tests of this folder."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def torch():
    """PyTorch, whose types of errors are the reference."""
    import torch

    return torch
