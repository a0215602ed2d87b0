"""A count on stderr: what `hub.tqdm` is where the package of that name is not there."""

from __future__ import annotations

import sys

__all__ = ["Progress"]


class Progress:
    """Shows how far a loop or a download has come, on one line.

    Args:
        iterable: what is looped over; None where `update` counts.
        total: how many there are; by default the iterable's length.
        disable: show nothing.
        desc: what stands before the count.
        file: where it is printed, stderr by default.
        options: others of tqdm's, which change only the look.

    Example:
        >>> with Progress(total=2, disable=True) as bar:
        ...     bar.update(2)
        >>> bar.n
        2
    """

    def __init__(
        self, iterable=None, *, total=None, disable=False, desc="", file=None, **options
    ) -> None:
        if total is None and hasattr(iterable, "__len__"):
            total = len(iterable)
        self.iterable, self.total, self.disable = iterable, total, disable
        self.desc, self.file, self.n, self._shown = desc, file, 0, None

    def update(self, n=1) -> None:
        """Counts n more."""
        self.n += n
        self._show()

    def set_description(self, desc: str = "") -> None:
        """Sets what stands before the count."""
        self.desc = desc

    def close(self) -> None:
        """Ends the line."""
        if self._shown is not None:
            print(file=self.file or sys.stderr)
            self._shown = None

    def _show(self) -> None:
        count = f"{100 * self.n // self.total}%" if self.total else str(self.n)
        text = f"{self.desc} {count}".strip()
        if not self.disable and text != self._shown:
            print(f"\r{text}", end="", file=self.file or sys.stderr, flush=True)
            self._shown = text

    def __enter__(self):
        return self

    def __exit__(self, *error) -> None:
        self.close()

    def __iter__(self):
        with self:
            for value in self.iterable:
                yield value
                self.update()
