"""Errors of the code generator: a place, a message, and a caret where there is text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Location:
    """A line of a record file; line 0 means the file as a whole."""

    file: str = "<string>"
    line: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


class CodegenError(Exception):
    """A mistake in a record, printed as `file:line: message` with the text below.

    `text` and `column` (0-based) may be added by an outer handler through `at`, because
    the expression parser knows the column and only the record loader knows the line.
    """

    def __init__(
        self,
        message: str,
        location: Location | None = None,
        text: str | None = None,
        column: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.location = location
        self.text = text
        self.column = column

    def at(self, location: Location, text: str | None = None) -> CodegenError:
        """The same error with what it does not know yet filled in."""
        return CodegenError(
            self.message,
            self.location or location,
            self.text if self.text is not None else text,
            self.column,
        )

    def __str__(self) -> str:
        lines = [f"{self.location}: {self.message}" if self.location else self.message]
        if self.text is not None:
            lines.append(f"    {self.text}")
            if self.column is not None:
                lines.append("    " + " " * self.column + "^")
        return "\n".join(lines)


class CodegenErrors(CodegenError):
    """Several errors found in one pass, so that one run shows all of them."""

    def __init__(self, errors: Iterable[CodegenError]) -> None:
        self.errors = tuple(errors)
        super().__init__("\n".join(str(error) for error in self.errors))
