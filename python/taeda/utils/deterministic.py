"""What `use_deterministic_algorithms` adds: no memory is handed out unfilled."""

from __future__ import annotations

from taeda.backends._switches import properties

__all__: list[str] = []


class _Fill:
    """One attribute, set under the interpreter's lock."""

    value = True
    freezes = False

    def read(self) -> bool:
        return self.value

    def write(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise RuntimeError(
                f"expected a bool, but got {type(value).__name__}: "
                "utils.deterministic.fill_uninitialized_memory"
            )
        self.value = value
        from taeda import _determinism

        _determinism.apply_fill(value)


properties(__name__, fill_uninitialized_memory=_Fill())
