"""How compiled functions of the process behave: `set_stance`."""

from __future__ import annotations

import functools
import sys

__all__ = ["effective", "forces_eager", "set_stance"]

# As `Policy::Stance` of csrc/compiler/capture/policy.h counts them.
_NUMBERS = {
    "default": 0,
    "force_eager": 1,
    "eager_on_recompile": 2,
    "fail_on_recompile": 3,
}
# The process's, as in PyTorch; the interpreter's lock guards it.
_current = "default"


def effective() -> int:
    """The number of the stance, by `config.disable` too."""
    from taeda._dynamo import config

    return _NUMBERS["force_eager" if config.disable else _current]


def forces_eager() -> bool:
    """Whether everything runs as it is written."""
    return effective() == _NUMBERS["force_eager"]


def _set(stance: str) -> None:
    global _current
    _current = stance
    capture = sys.modules.get("taeda._capture")
    if capture is not None:
        capture.configure("stance", effective())


class set_stance:
    """Sets how compiled functions behave, at once; as a context, until it is left.

    Args:
        stance: "default"; "force_eager" runs everything as it is written;
            "eager_on_recompile" runs what was captured where it fits and the rest as
            it is written; "fail_on_recompile" raises where something would have to be
            captured.

    Raises:
        RuntimeError: an unknown stance.
        NotImplementedError: "eager_then_compile", "aot_eager_then_compile";
            `skip_guard_eval_unsafe`; `force_backend`.

    Example:
        >>> double = taeda.compile(lambda x: x * 2)
        >>> with taeda.compiler.set_stance("force_eager"):
        ...     double(taeda.ones(1))
        tensor([2.])
    """

    def __init__(
        self,
        stance: str = "default",
        *,
        skip_guard_eval_unsafe: bool = False,
        force_backend=None,
    ) -> None:
        if stance in ("eager_then_compile", "aot_eager_then_compile"):
            raise NotImplementedError(f"set_stance: {stance!r} is not implemented")
        if stance not in _NUMBERS:
            raise RuntimeError(
                f"set_stance: invalid stance {stance!r}, should be one of: "
                f"{', '.join(_NUMBERS)}"
            )
        if skip_guard_eval_unsafe or force_backend is not None:
            raise NotImplementedError(
                "set_stance: skip_guard_eval_unsafe and force_backend are not "
                "implemented"
            )
        self._stance, self._before = stance, _current
        _set(stance)

    def __call__(self, fn):
        """The function, which runs under the stance; it is not set otherwise."""
        _set(self._before)
        stance = self._stance

        @functools.wraps(fn)
        def under(*args, **kwargs):
            with set_stance(stance):
                return fn(*args, **kwargs)

        return under

    def __enter__(self) -> None:
        _set(self._stance)

    def __exit__(self, *error) -> None:
        _set(self._before)
