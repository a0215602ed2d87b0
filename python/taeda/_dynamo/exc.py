"""Errors of the compiler."""

from __future__ import annotations

__all__ = ["InvalidBackend", "TorchDynamoException", "Unsupported", "UserError"]


class TorchDynamoException(RuntimeError):
    """Base of the compiler's errors."""


class InvalidBackend(TorchDynamoException):
    """No backend has this name."""


class Unsupported(TorchDynamoException):
    """Something that cannot be captured."""


class UserError(Unsupported):
    """A wrong use of the compiler."""
