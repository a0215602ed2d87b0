"""What a notebook shows of tensors and modules: HTML without scripts or styles."""

from __future__ import annotations

from html import escape

import taeda

__all__ = ["module_html", "tensor_html"]

_SOME = 1 << 24  # elements up to which values are summed up


def _table(facts: dict[str, str]) -> str:
    names = "".join(f"<th>{escape(name)}</th>" for name in facts)
    values = "".join(f"<td>{escape(value)}</td>" for value in facts.values())
    return f"<table><tr>{names}</tr><tr>{values}</tr></table>"


def _bytes(count: int) -> str:
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.4g} {unit}"
        size /= 1024
    return f"{size:.4g} TiB"


def _values(tensor) -> dict[str, str]:
    """Least, mean and largest element; how many are NaN or infinite, where any is."""
    real = tensor.is_floating_point() and not tensor.is_meta
    if not real or not 0 < tensor.numel() <= _SOME:
        return {}
    wide = tensor.detach().double()
    finite = wide[wide.isfinite()]
    odd = wide.numel() - finite.numel()
    facts = {"not finite": str(odd)} if odd else {}
    if finite.numel():
        found = {"min": finite.min(), "mean": finite.mean(), "max": finite.max()}
        facts |= {name: f"{float(value):.6g}" for name, value in found.items()}
    return facts


def tensor_html(tensor) -> str:
    """A table of facts, and the tensor's text below it.

    Args:
        tensor (Tensor): of any kind.
    """
    facts = {
        "shape": " x ".join(map(str, tensor.shape)) or "scalar",
        "dtype": str(tensor.dtype).rpartition(".")[2],
        "device": str(tensor.device),
        "memory": _bytes(tensor.numel() * tensor.element_size()),
    }
    if tensor.grad_fn is not None:
        facts["gradient"] = tensor.grad_fn.name()
    elif tensor.requires_grad:
        facts["gradient"] = "leaf"
    with taeda.no_grad():
        facts |= _values(tensor)
    return f"{_table(facts)}<pre>{escape(repr(tensor))}</pre>"


def _parameters(module) -> str:
    counts = [0, 0]
    for p in module.parameters():
        if not taeda.nn.parameter.is_lazy(p):
            counts[p.requires_grad] += p.numel()
    fixed = f", {counts[0]:,} of them fixed" if counts[0] else ""
    return f"{sum(counts):,} parameters{fixed}"


def module_html(module, name: str = "") -> str:
    """The tree of a module's parts, which can be folded, with counts of parameters.

    Args:
        module (Module): the root. name: what stands before it.
    """
    label = f"{name}: " if name else ""
    settings = module.extra_repr().replace("\n", " ")
    head = escape(f"{label}{type(module).__name__}({settings})")
    head += f" <small>{_parameters(module)}</small>"
    children = [(n, m) for n, m in module._modules.items() if m is not None]
    if not children:
        return f"<div>{head}</div>"
    inner = "".join(module_html(child, n) for n, child in children)
    unfolded = "" if name else " open"
    return (
        f"<details{unfolded}><summary>{head}</summary>"
        f'<div style="margin-left:1.5em">{inner}</div></details>'
    )
