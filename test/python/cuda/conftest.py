"""Helpers of this folder, and the compiler's random programs, are importable."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
for folder in (HERE, HERE.parent / "compile"):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
