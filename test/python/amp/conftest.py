"""Makes the helpers of this folder and of `records` importable from its tests."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
for place in (HERE, HERE.parent / "records", HERE.parents[2]):
    if str(place) not in sys.path:
        sys.path.insert(0, str(place))
