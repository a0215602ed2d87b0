"""Patterns of the names of modules and files."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["GlobGroup"]

GlobPattern = str | Iterable[str]


class GlobGroup:
    """Names that one of some patterns matches, and none of others.

    `*` stands for any part of a segment, `**` for any number of whole segments.

    Args:
        include: a pattern or several.
        exclude: patterns of names that are left out.
        separator: what lies between segments.

    Raises:
        ValueError: `**` is only a part of a segment.

    Example:
        >>> group = GlobGroup("model.**", exclude="model.tests")
        >>> [group.matches(n) for n in ("model", "model.a.b", "model.tests", "other")]
        [True, True, False, False]
    """

    def __init__(
        self,
        include: GlobPattern,
        *,
        exclude: GlobPattern = (),
        separator: str = ".",
    ) -> None:
        self._text = f"GlobGroup(include={include}, exclude={exclude})"
        self.separator = separator
        self.include = _expressions(include, separator)
        self.exclude = _expressions(exclude, separator)

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__

    def matches(self, candidate: str) -> bool:
        """Is a name one of the group's?"""
        name = self.separator + candidate
        if not any(pattern.fullmatch(name) for pattern in self.include):
            return False
        return not any(pattern.fullmatch(name) for pattern in self.exclude)


def _expressions(patterns: GlobPattern, separator: str) -> list[re.Pattern]:
    patterns = [patterns] if isinstance(patterns, str) else patterns
    return [_expression(pattern, separator) for pattern in patterns]


def _expression(pattern: str, separator: str) -> re.Pattern:
    """One that matches names with a separator before each segment."""
    between = re.escape(separator)
    inside = f"[^{between}]"

    def segment(text: str) -> str:
        if text == "**":
            return f"(?:{between}{inside}+)*"
        if "**" in text:
            raise ValueError(
                f"** must be a whole segment of a pattern; got {pattern!r}"
            )
        return between + f"{inside}*".join(map(re.escape, text.split("*")))

    return re.compile("".join(map(segment, pattern.split(separator))))
