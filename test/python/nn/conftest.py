"""Fixtures of the nn tests."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def torch():
    """PyTorch; tests that compare with it are skipped where it is missing."""
    return pytest.importorskip("torch")
