"""Version strings that compare as versions."""

from __future__ import annotations

import re

__all__ = ["TorchVersion"]

_PARTS = re.compile(
    r"v?(\d+(?:\.\d+)*)(?:[-_.]?(a|alpha|b|beta|rc|c)[-_.]?(\d*))?"
    r"(?:[-_.]?(post|dev)[-_.]?(\d*))?(?:\+.*)?$",
    re.IGNORECASE,
)
_STAGES = {"a": 0, "alpha": 0, "b": 1, "beta": 1, "rc": 2, "c": 2}


def _key(version) -> tuple:
    """What versions are ordered by (PEP 440, without epochs and local parts)."""
    if isinstance(version, (tuple, list)):
        version = ".".join(map(str, version))
    found = _PARTS.match(str(version).strip())
    if found is None:
        raise ValueError(f"TorchVersion: {version!r} is not a version")
    release, stage, stage_number, extra, extra_number = found.groups()
    numbers = [int(part) for part in release.split(".")]
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()
    before = (_STAGES[stage.lower()], int(stage_number or 0)) if stage else (3, 0)
    # A development build precedes what it leads to, a post-release follows it.
    step = {None: 0, "dev": -1, "post": 1}[extra and extra.lower()]
    if step < 0 and not stage:
        before = (-1, 0)
    return tuple(numbers), before, step, int(extra_number or 0)


class TorchVersion(str):
    """A version string; compares with strings and tuples of numbers as a version.

    >>> TorchVersion("2.10.0") > "2.9"
    True
    """

    __slots__ = ()
    __hash__ = str.__hash__

    def __lt__(self, other) -> bool:
        return _key(self) < _key(other)

    def __le__(self, other) -> bool:
        return _key(self) <= _key(other)

    def __gt__(self, other) -> bool:
        return _key(self) > _key(other)

    def __ge__(self, other) -> bool:
        return _key(self) >= _key(other)

    def __eq__(self, other) -> bool:
        try:
            return _key(self) == _key(other)
        except ValueError:
            return False
