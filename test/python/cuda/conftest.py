"""Helpers of this folder, the compiler's random programs and the records' calls are
importable. TAEDA_TEST_SHARE=i/n leaves each n-th test of a file, from the i-th on.
"""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
for folder in (HERE, HERE.parent / "compile", HERE.parent / "records", HERE.parents[2]):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def pytest_collection_modifyitems(items: list) -> None:
    first, count = map(int, os.environ.get("TAEDA_TEST_SHARE", "0/1").split("/"))
    items[:] = items[first::count]
