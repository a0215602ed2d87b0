"""The tests compare with real PyTorch where it is installed."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def torch():
    import torch

    return torch
