"""Helpers of this folder, the compiler's random programs and the records' calls are
importable."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
for folder in (HERE, HERE.parent / "compile", HERE.parent / "records", HERE.parents[2]):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
