"""How tensors print: as PyTorch prints them, character by character.

The values are taken as nested lists of Python numbers, of the edges alone where the
tensor is summarised, so that printing needs no operators.
"""

from __future__ import annotations

import math
import sys

import taeda
from taeda import _C
from taeda._functorch.levels import wrapper_text

__all__ = ["set_printoptions", "tensor_text"]

_GAP = ...  # stands in lists for what is left out


# Values by name of profile, in the order of `_NAMES`.
_NAMES = ("precision", "threshold", "edgeitems", "linewidth")
_PROFILES = {
    "default": (4, 1000, 3, 80),
    "short": (2, 1000, 2, 80),
    "full": (4, math.inf, 3, 80),
}


class _Options:
    """How tensors print at present; see `set_printoptions`."""

    def __init__(self) -> None:
        self.sci_mode: bool | None = None
        self.take(_PROFILES["default"])

    def take(self, values) -> None:
        """Set those that are not None."""
        for name, value in zip(_NAMES, values, strict=True):
            if value is not None:
                setattr(self, name, value)


PRINT_OPTS = _Options()


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors print.

    Args:
        precision: digits after the point.
        threshold: number of elements above which a tensor is summarised.
        edgeitems: elements shown at each end of a summarised dim.
        linewidth: characters in a line.
        profile: "default", "short" or "full", which sets all of these.
        sci_mode: True or False forces scientific notation on or off; None decides by
            the values.
    """
    if profile is not None:
        PRINT_OPTS.take(_PROFILES[profile])
    PRINT_OPTS.take((precision, threshold, edgeitems, linewidth))
    PRINT_OPTS.sci_mode = sci_mode


class _Formatter:
    """Gives all numbers of one tensor the same width and notation."""

    def __init__(self, values: list, floating: bool) -> None:
        self.floating = floating
        self.int_mode = True
        self.sci_mode = False
        self.width = 1
        if not floating:
            self.width = max((len(str(v)) for v in values), default=1)
            return
        shown = [v for v in values if v != 0 and math.isfinite(v)]
        if not shown:
            return
        self._choose(shown)

    def _choose(self, shown: list[float]) -> None:
        sizes = [abs(v) for v in shown]
        low, high = min(sizes), max(sizes)
        self.int_mode = all(v == math.floor(v) for v in shown)
        wide = high / low > 1000.0 or high > 1.0e8
        self.sci_mode = wide or (not self.int_mode and low < 1.0e-4)
        if PRINT_OPTS.sci_mode is not None:
            self.sci_mode = PRINT_OPTS.sci_mode
        precision = PRINT_OPTS.precision
        if self.sci_mode:
            lengths = [len(f"{v:.{precision}e}") for v in shown]
        elif self.int_mode:
            lengths = [len(f"{v:.0f}") + 1 for v in shown]
        else:
            lengths = [len(f"{v:.{precision}f}") for v in shown]
        self.width = max(self.width, *lengths)

    def __call__(self, value) -> str:
        if not self.floating:
            text = str(value)
        elif self.sci_mode:
            text = f"{value:{self.width}.{PRINT_OPTS.precision}e}"
        elif self.int_mode:
            text = f"{value:.0f}"
            if math.isfinite(value):
                text += "."
        else:
            text = f"{value:.{PRINT_OPTS.precision}f}"
        return text.rjust(self.width)


class _ComplexFormatter:
    """Real and imaginary parts each in a notation of their own."""

    def __init__(self, values: list[complex]) -> None:
        self.real = _Formatter([v.real for v in values], floating=True)
        self.imag = _Formatter([v.imag for v in values], floating=True)
        self.width = self.real.width + self.imag.width + 1

    def __call__(self, value: complex) -> str:
        imag = (self.imag(value.imag) + "j").lstrip()
        sign = "" if imag.startswith("-") else "+"
        return self.real(value.real) + sign + imag


def _chosen(size: int, summarize: bool) -> list:
    """Indices shown along a dim."""
    edge = PRINT_OPTS.edgeitems
    if not summarize or size <= 2 * edge:
        return list(range(size))
    if not edge:
        return [_GAP]
    return [*range(edge), _GAP, *range(size - edge, size)]


def _nested(tensor, summarize: bool):
    """Nested lists of the values shown, with gaps."""
    if tensor.dim() == 0 or not summarize:
        return tensor.tolist()
    indices = _chosen(tensor.shape[0], summarize)
    if tensor.dim() == 1 and _GAP not in indices:
        return tensor.tolist()
    return [_GAP if i is _GAP else _nested(tensor[i], summarize) for i in indices]


def _flat(nested) -> list:
    if nested is _GAP:
        return []
    if not isinstance(nested, list):
        return [nested]
    return [value for part in nested for value in _flat(part)]


def _text(nested, dim: int, indent: int, form) -> str:
    if dim == 0:
        return form(nested)
    if dim > 1:
        parts = [
            "..." if part is _GAP else _text(part, dim - 1, indent + 1, form)
            for part in nested
        ]
        between = "," + "\n" * (dim - 1) + " " * (indent + 1)
        return "[" + between.join(parts) + "]"
    room = PRINT_OPTS.linewidth - indent
    per_line = max(1, room // (form.width + 2))
    gap = "..." if len(nested) == 1 else " ..."
    parts = [gap if value is _GAP else form(value) for value in nested]
    lines = [", ".join(parts[i : i + per_line]) for i in range(0, len(parts), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _contents(tensor, indent: int) -> str:
    summarize = tensor.numel() > PRINT_OPTS.threshold
    nested = _nested(tensor, summarize)
    values = _flat(nested)
    if tensor.is_complex():
        form = _ComplexFormatter(values)
    else:
        form = _Formatter(values, tensor.is_floating_point())
    return _text(nested, tensor.dim(), indent, form)


def _with_suffixes(
    text: str, suffixes: list[str], indent: int, new_line: bool = False
) -> str:
    length = len(text) - text.rfind("\n") + 1
    for i, suffix in enumerate(suffixes):
        starts = new_line and i == 0
        if starts or length + len(suffix) + 2 > PRINT_OPTS.linewidth:
            text += ",\n" + " " * indent + suffix
            length = indent + len(suffix)
        else:
            text += ", " + suffix
            length += len(suffix) + 2
    return text + ")"


def _grad_suffix(tensor) -> list[str]:
    try:
        node = tensor.grad_fn
    except RuntimeError:  # a view whose base was changed in a way it cannot follow
        return ["grad_fn=<Invalid>"]
    if node is None:
        return ["requires_grad=True"] if tensor.requires_grad else []
    return [f"grad_fn=<{type(node).__name__}>"]


def _is_hollow(tensor) -> bool:
    """Whether there are no values: on the meta device, or in a wrapper."""
    if tensor.is_meta:
        return True
    if type(tensor) is taeda.Tensor or type(tensor).__name__ == "Parameter":
        return False
    return _C._has_torch_dispatch(type(tensor)) and tensor.data_ptr() == 0


def _parts(tensor, indent: int) -> tuple[str, list[str]]:
    """The values as text, and what is said about shape and dtype."""
    default = _C.get_default_dtype()
    size = f"size={tuple(tensor.shape)}"
    dtype = f"dtype={tensor.dtype}"
    if _is_hollow(tensor):
        return "...", [size] if tensor.dtype == default else [size, dtype]
    if tensor.layout is not _C.strided:
        from taeda.sparse._text import sparse_parts

        return sparse_parts(tensor, indent, _contents, (default, default.to_complex()))
    suffixes: list[str] = []
    if tensor.numel() == 0:
        if tensor.dim() != 1:
            suffixes.append(size)
        if tensor.dtype != default:
            suffixes.append(dtype)
        return "[]", suffixes
    if not PRINT_OPTS.edgeitems:
        suffixes.append(size)
    if tensor.dtype not in (default, default.to_complex(), _C.int64, _C.bool):
        suffixes.append(dtype)
    return _contents(tensor, indent), suffixes


def _plain(tensor):
    """Without history or lazy conjugation."""
    found = tensor.data if tensor.requires_grad else tensor
    if found.is_conj():
        found = found.resolve_conj()
    return found.resolve_neg() if found.is_neg() else found


def _tangent(tensor):
    """The tangent at the current level of forward mode, if any."""
    forward_ad = sys.modules.get("taeda.autograd.forward_ad")
    return None if forward_ad is None else forward_ad.tangent_of(tensor)


def tensor_text(tensor, *, tensor_contents: str | None = None) -> str:
    """The text of `repr(tensor)`.

    Args:
        tensor: any tensor.
        tensor_contents: shown in place of the values.
    """
    import sys
    from contextlib import nullcontext

    # Modes can only be there when their module is.
    dispatch = sys.modules.get("taeda.utils._python_dispatch")
    before = _C._set_torch_function_enabled(False, False)
    try:
        with dispatch._disable_current_modes() if dispatch else nullcontext():
            return _tensor_text(tensor, tensor_contents)
    finally:
        _C._set_torch_function_enabled(*before)


def _tensor_text(tensor, contents: str | None) -> str:
    wrapper = wrapper_text(tensor)
    if wrapper is not None:
        return wrapper
    kind = type(tensor)
    is_plain = kind is taeda.Tensor or kind.__name__ == "Parameter"
    prefix = "tensor(" if is_plain else f"{kind.__name__}("
    indent = len(prefix)
    suffixes: list[str] = []
    if tensor.device.type != _C._get_default_device().type:
        suffixes.append(f"device='{tensor.device}'")
    is_wrapper = not tensor.is_meta and _is_hollow(tensor)
    plain = tensor if is_wrapper else _plain(tensor)
    tangent = None if is_wrapper else _tangent(tensor)
    text, facts = _parts(plain if tangent is None else plain.detach(), indent)
    if is_wrapper and contents:
        facts = facts[1:]  # the contents show the size
    suffixes += facts + _grad_suffix(tensor)
    if tangent is not None:
        suffixes.append(f"tangent={tangent}")
    text = _with_suffixes(
        prefix + (contents or text), suffixes, indent, plain.is_sparse
    )
    is_wrapped = not is_plain and getattr(tensor, "_is_param", False)
    return f"Parameter({text})" if is_wrapped else text


# Names that subclasses of Tensor print themselves with.
_tensor_str = _contents
_str_intern = tensor_text


def _add_suffixes(tensor_str: str, suffixes: list[str], indent: int, force_newline):
    return _with_suffixes(tensor_str, suffixes, indent, force_newline)
