"""Elementwise functions for GPUs, given as C++ text: not there yet."""

from __future__ import annotations

from taeda.cuda._devices import is_available

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__: list[str] = []


class _JittedFunction:
    """A function's text and the defaults of its scalars; calling it needs a GPU.

    Raises:
        AssertionError: on a call, without a GPU.
        NotImplementedError: on a call, with one.
    """

    def __init__(self, code_string: str, outputs: int, **defaults: Any) -> None:
        self.code_string, self.num_outputs = code_string, outputs
        self.kwargs_dict = defaults

    def __call__(self, *tensors: Any, **scalars: Any) -> Any:
        if not is_available():
            raise AssertionError(
                "Jiterator is only supported on CUDA and ROCm GPUs, none are available."
            )
        raise NotImplementedError("cuda.jiterator is not there yet")


def _create_jit_fn(code_string: str, **kwargs: Any) -> _JittedFunction:
    """The function of one result that a text defines; `kwargs` are its scalars."""
    return _JittedFunction(code_string, 1, **kwargs)


def _create_multi_output_jit_fn(
    code_string: str, num_outputs: int, **kwargs: Any
) -> _JittedFunction:
    """The same with several results, at most eight.

    Raises:
        AssertionError: more.
    """
    if not 0 < num_outputs <= 8:
        raise AssertionError(f"jiterator: 1 to 8 outputs, got {num_outputs}")
    return _JittedFunction(code_string, num_outputs, **kwargs)
