"""Prints docs/placeholders.md."""

from taeda._compat import listing

print(listing(), end="")
