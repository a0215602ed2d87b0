"""Fixtures of the nn tests."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def torch():
    """PyTorch, with which results are compared."""
    import torch

    return torch
