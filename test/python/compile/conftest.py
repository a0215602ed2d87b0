"""Capture is built where it knows the interpreter's frames (`test_versions.py`)."""

from importlib.util import find_spec

import pytest
import taeda

collect_ignore_glob = [] if find_spec("taeda._capture") else ["test_capture*.py"]


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
def same():
    """Asserts that two results are equal, containers and `requires_grad` too."""
    return _same
