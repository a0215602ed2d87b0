"""What a sparse tensor prints as: its parts, each as a tensor."""

from __future__ import annotations

__all__ = ["named_parts", "sparse_parts"]


def named_parts(tensor) -> list[tuple[str, object]]:
    """(name, part), as constructors call them."""
    layout = str(tensor.layout).rpartition("_")[2]
    if layout == "coo":
        return [("indices", tensor._indices()), ("values", tensor._values())]
    major, minor = ("crow", "col") if layout in ("csr", "bsr") else ("ccol", "row")
    names = f"{major}_indices", f"{minor}_indices", "values"
    return [(name, getattr(tensor, name)()) for name in names]


def sparse_parts(tensor, indent: int, contents, default) -> tuple[str, list[str]]:
    """The parts as text, and what is said about the whole.

    Args:
        tensor: sparse, without history. indent: columns that are taken already.
        contents: gives the values of a strided tensor as text, by (tensor, indent).
        default: dtypes that are not named.
    """
    texts = []
    for name, part in named_parts(tensor):
        start = f"{name}=tensor("
        text = contents(part, indent + len(start)) if part.numel() else "[]"
        if not part.numel():
            text += f", size={tuple(part.shape)}"
        texts.append(f"{start}{text})")
    suffixes = [f"size={tuple(tensor.shape)}", f"nnz={tensor._nnz()}"]
    if tensor.dtype not in default:
        suffixes.append(f"dtype={tensor.dtype}")
    suffixes.append(f"layout={tensor.layout}")
    return (",\n" + " " * indent).join(texts), suffixes
