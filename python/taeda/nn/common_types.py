"""Names of the types of size arguments, for annotations."""

from __future__ import annotations


def _scalar_or_tuple(kind: str, n) -> str:
    inner = "..." if n == "any" else ", ".join([kind] * (n - 1))
    return kind if n == 1 else f"{kind} | tuple[{kind}, {inner}]"


for _n in ("any", 1, 2, 3, 4, 5, 6):
    globals()[f"_size_{_n}_t"] = _scalar_or_tuple("int", _n)
    globals()[f"_size_{_n}_opt_t"] = _scalar_or_tuple("int | None", _n)
    globals()[f"_ratio_{_n}_t"] = _scalar_or_tuple("float", _n)
_tensor_list_t = "Tensor | tuple[Tensor, ...]"
_maybe_indices_t = "Tensor | tuple[Tensor, Tensor]"
