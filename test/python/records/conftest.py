"""Makes the helpers of this folder and `tools.codegen` importable from its tests."""

from __future__ import annotations

import sys
from pathlib import Path

for place in (Path(__file__).parent, Path(__file__).resolve().parents[3]):
    if str(place) not in sys.path:
        sys.path.insert(0, str(place))
