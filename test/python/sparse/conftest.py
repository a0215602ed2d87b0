"""Makes `sides.py` importable from the tests of this folder."""

from __future__ import annotations

import sys
from pathlib import Path

if (place := str(Path(__file__).parent)) not in sys.path:
    sys.path.insert(0, place)
