"""Names of types that signatures repeat."""

from __future__ import annotations

import taeda
from taeda import Tensor

MaybeTensor = Tensor | None
Flag = bool | None
MaybeFloat = float | None
MaybeInt = int | None
MaybeDevice = taeda.device | str | int | None
MaybeDtype = taeda.dtype | None
MaybeStr = str | None
