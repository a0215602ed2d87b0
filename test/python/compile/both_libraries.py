"""What files of programs (`*_programs.py`) and their tests share."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path


def plain(L, value):
    """Results as lists."""
    if isinstance(value, L.Tensor):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(L, each) for each in value]
    return [type(value).__name__, value]


def told_by(programs) -> dict:
    """What a file of programs prints as a script: PyTorch's side, in a new process."""
    script = Path(__file__).with_name(f"{programs.__name__}.py")
    told = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=True
    )
    return json.loads(told.stdout)
