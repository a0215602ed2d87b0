"""Intel's MKL, which this build does not use."""

from __future__ import annotations


def is_available() -> bool:
    """False."""
    return False


VERBOSE_OFF, VERBOSE_ON = 0, 1


class verbose:
    """Lets MKL say what it computes within a `with` block.

    Args:
        enable: VERBOSE_OFF or VERBOSE_ON.

    Raises:
        AssertionError: on entering with VERBOSE_ON; there is no MKL to speak.
    """

    def __init__(self, enable: int) -> None:
        self.enable = enable

    def __enter__(self) -> verbose:
        if self.enable != VERBOSE_OFF:
            raise AssertionError(
                "Failed to set MKL into verbose mode: this build does not use MKL"
            )
        return self

    def __exit__(self, exc_type, exc_val, exc_tb) -> bool:
        return False
