"""The library under the name that PyTorch's modules have it: `functional.torch`."""

from __future__ import annotations

import taeda

torch = taeda
