"""Errors of the compiler."""

from __future__ import annotations

__all__ = ["TorchDynamoException", "Unsupported", "UserError"]


class TorchDynamoException(RuntimeError):
    """Base of the compiler's errors."""


class Unsupported(TorchDynamoException):
    """Something that cannot be captured."""


class UserError(Unsupported):
    """A wrong use of the compiler."""
