"""Types that annotations for scripting name."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple, Union  # noqa: F401, UP035

__all__: list[str] = []


class _Broadcasting:
    """A list for which one number may stand; `BroadcastingList2[int]` marks it."""

    def __getitem__(self, types) -> None:
        return None


BroadcastingList1 = _Broadcasting()
for _count in range(2, 7):
    globals()[f"BroadcastingList{_count}"] = BroadcastingList1
