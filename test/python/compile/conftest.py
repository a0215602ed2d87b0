"""Capture is built where it knows the interpreter's frames (`test_versions.py`).

Helpers of this folder are importable from its tests.
"""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import taeda

if str(Path(__file__).parent) not in sys.path:
    sys.path.insert(0, str(Path(__file__).parent))

collect_ignore_glob = [] if find_spec("taeda._capture") else ["test_capture*.py"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Comparisons with PyTorch need it: it has no wheel for every interpreter."""
    left_out = set() if find_spec("torch") else set(_THEIRS)
    if os.environ.get("TAEDA_UNOPTIMIZED"):
        left_out.add("optimized")
    items[:] = [i for i in items if not left_out.intersection(_fixtures(i))]


@pytest.fixture(autouse=True)
def seeded() -> None:
    """The same inputs, whichever tests of the process came before."""
    taeda.manual_seed(5)


# Fixtures that run PyTorch.
_THEIRS = frozenset(["reference", "theirs"])


def _fixtures(item: pytest.Item) -> list[str]:
    return getattr(item, "fixturenames", [])


def _same(a, b) -> None:
    assert type(a) is type(b)
    if isinstance(a, taeda.Tensor):
        assert taeda.equal(a, b) and a.requires_grad == b.requires_grad
    elif isinstance(a, dict):
        assert list(a) == list(b)
        _same(list(a.values()), list(b.values()))
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for left, right in zip(a, b, strict=True):
            _same(left, right)
    else:
        assert a == b


@pytest.fixture
def optimized() -> None:
    """Asked for by tests of speed; `tools/dev test capture` builds without -O."""


@pytest.fixture
def same():
    """Asserts that two results are equal, containers and `requires_grad` too."""
    return _same
