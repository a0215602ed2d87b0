"""Old warnings of PyTorch's, as switches: each is off, and cannot be given here.

`keepdim_warning` and `broadcast_warning` told of changes in releases before 0.2.
"""

from __future__ import annotations

__all__ = ["Warning", "broadcast_warning", "keepdim_warning"]


class Warning:
    """A warning that can stay off.

    enabled: False.

    Raises:
        NotImplementedError: it is set to True.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def enabled(self) -> bool:
        return False

    @enabled.setter
    def enabled(self, value: bool) -> None:
        if value:
            raise NotImplementedError(f"utils.backcompat.{self._name}: it was removed")


keepdim_warning = Warning("keepdim_warning")
broadcast_warning = Warning("broadcast_warning")
