"""Errors of the compiler."""

from __future__ import annotations

from enum import Enum

__all__ = [
    "BackendCompilerFailed",
    "FailOnRecompileLimitHit",
    "InvalidBackend",
    "RecompileError",
    "TorchDynamoException",
    "TorchRuntimeError",
    "UncapturedHigherOrderOpError",
    "Unsupported",
    "UserError",
    "UserErrorType",
]


class TorchDynamoException(RuntimeError):
    """Base of the compiler's errors."""


class InvalidBackend(TorchDynamoException):
    """No backend has this name."""


class BackendCompilerFailed(TorchDynamoException):
    """A backend raised while it compiled a graph.

    Attributes:
        backend_name: the backend's.
        inner_exception: what it raised, which is the `__cause__` too.
    """

    def __init__(self, backend_fn, inner_exception: Exception) -> None:
        name = getattr(backend_fn, "__name__", backend_fn)
        self.backend_name = str(name)
        self.inner_exception = inner_exception
        raised = f"{type(inner_exception).__name__}: {inner_exception}"
        super().__init__(f"backend={self.backend_name!r} raised:\n{raised}")


class KernelDiffers(TorchDynamoException):
    """Under `options={"check": True}`: a kernel's result is not that of its calls."""


class RecompileError(TorchDynamoException):
    """A function had to be captured again under `config.error_on_recompile`."""


class FailOnRecompileLimitHit(Exception):
    """A function of one graph was captured `config.recompile_limit` times."""


class Unsupported(TorchDynamoException):
    """Something that cannot be captured."""


class TorchRuntimeError(Unsupported):
    """What a program raises while it is captured, as its cause, under `fullgraph`.

    PyTorch has it for calls of tensors, and `Unsupported` for a `raise`.
    """


class UncapturedHigherOrderOpError(TorchDynamoException):
    """A function that an operator of control flow takes cannot be captured whole.

    Under `fullgraph`; elsewhere the graph ends before the operator.

    Attributes:
        msg: the text.
    """

    def __init__(self, msg: str) -> None:
        super().__init__(msg)
        self.msg = msg


# What a `UserError` is about.
UserErrorType = Enum(
    "UserErrorType",
    "DYNAMIC_CONTROL_FLOW ANTI_PATTERN STANDARD_LIBRARY CONSTRAINT_VIOLATION"
    " DYNAMIC_DIM INVALID_INPUT INVALID_OUTPUT"
    " UNSUPPORTED_ALIASED_MUTATED_DYNAMIC_INPUTS",
    module=__name__,
)


class UserError(TorchDynamoException):
    """A wrong use of the compiler.

    Args:
        error_type: what it is about.
        msg: the text.
    """

    def __init__(self, error_type: UserErrorType, msg: str, case_name=None) -> None:
        super().__init__(msg)
        self.error_type, self.message = error_type, msg
