"""Objects that know how to be saved."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar, runtime_checkable

__all__ = ["Stateful", "StatefulT"]


@runtime_checkable
class Stateful(Protocol):
    """Anything with `state_dict` and `load_state_dict`.

    `save` saves what `state_dict` returns. `load` reads into what `state_dict` returns
    and then gives that to `load_state_dict`.
    """

    def state_dict(self) -> dict[str, Any]:
        """What is to be saved."""
        ...

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what was loaded."""
        ...


StatefulT = TypeVar("StatefulT", bound=Stateful)
