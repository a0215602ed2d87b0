"""`taeda.cuda.comm` by the name that PyTorch has it under here."""

from __future__ import annotations

from taeda.cuda.comm import *  # noqa: F403
from taeda.cuda.comm import __all__ as __all__
