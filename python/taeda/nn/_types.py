"""Names of types that signatures repeat."""

from __future__ import annotations

MaybeTensor = "Tensor | None"
Flag = "bool | None"
MaybeFloat = "float | None"
MaybeInt = "int | None"
