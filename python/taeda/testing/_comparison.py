"""assert_close: tensors, numbers and containers of them compared with tolerances."""

from __future__ import annotations

import cmath
import math

import taeda

__all__ = ["assert_allclose", "assert_close"]

# PyTorch's default tolerances (rtol, atol) by dtype; other dtypes compare exactly.
_TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex32": (1e-3, 1e-5),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}


def default_tolerances(*dtypes) -> tuple[float, float]:
    """The loosest default (rtol, atol) of some dtypes."""
    pairs = [_TOLERANCES.get(str(d).rpartition(".")[2], (0.0, 0.0)) for d in dtypes]
    return max(p[0] for p in pairs), max(p[1] for p in pairs)


class _Options:
    """What one call of assert_close was told."""

    def __init__(self, **values) -> None:
        self.__dict__.update(values)


class _Mismatch(Exception):
    def __init__(self, kind: type, text: str, path: tuple) -> None:
        super().__init__(text)
        self.kind, self.text, self.path = kind, text, path


def assert_close(
    actual,
    expected,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg=None,
) -> None:
    """Raise unless |actual - expected| <= atol + rtol * |expected| everywhere.

    Args:
        actual, expected: tensors, arrays, numbers, or sequences and mappings of them.
        allow_subclasses: whether the two may be of different, related types.
        rtol, atol: tolerances; both or neither. By default they follow the dtype.
        equal_nan: whether NaN equals NaN.
        check_device, check_dtype, check_layout, check_stride: what else has to agree.
        msg: the message, or a function that makes it from the default one.

    Raises:
        AssertionError: they are not close; the message names the worst elements.

    Example:
        >>> taeda.testing.assert_close(taeda.ones(2), taeda.ones(2) + 1e-7)
    """
    options = _Options(**locals())
    if (rtol is None) != (atol is None):
        given, other = ("rtol", "atol") if atol is None else ("atol", "rtol")
        raise ValueError(
            f"Both 'rtol' and 'atol' must be either specified or unspecified, but "
            f"got no value for {other} and {given}={rtol if atol is None else atol}."
        )
    found: list[_Mismatch] = []
    with taeda.no_grad():
        _compare(actual, expected, options, (), found)
    if not found:
        return
    texts = [_located(m) for m in found]
    text = texts[0]
    if len(texts) > 1:
        text = f"The failure occurred for {len(texts)} items:\n\n" + "\n\n".join(texts)
    if msg is not None:
        text = msg(text) if callable(msg) else msg
    raise found[0].kind(text)


def _located(mismatch: _Mismatch) -> str:
    if not mismatch.path:
        return mismatch.text
    place = "".join(f"[{part!r}]" for part in mismatch.path)
    return f"{mismatch.text}\n\nThe failure occurred for item {place}"


def _compare(actual, expected, options, path, found) -> None:
    try:
        _compare_one(actual, expected, options, path, found)
    except _Mismatch as mismatch:
        found.append(mismatch)


def _is_array(value) -> bool:
    return isinstance(value, taeda.Tensor) or hasattr(value, "__array_interface__")


def _compare_one(actual, expected, options, path, found) -> None:
    from collections.abc import Mapping, Sequence

    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        return _compare_mappings(actual, expected, options, path, found)
    both_sequences = isinstance(actual, Sequence) and isinstance(expected, Sequence)
    if both_sequences and not isinstance(actual, str):
        return _compare_sequences(actual, expected, options, path, found)
    if _is_array(actual) or _is_array(expected):
        return _compare_tensors(actual, expected, options, path)
    numbers = (bool, int, float, complex)
    if isinstance(actual, numbers) and isinstance(expected, numbers):
        return _compare_numbers(actual, expected, options, path)
    if actual is None or expected is None:
        if actual is not expected:
            raise _Mismatch(
                AssertionError, f"None mismatch: {actual} is not {expected}", path
            )
        return None
    raise _Mismatch(
        TypeError,
        f"No comparison pair was able to handle inputs of type {type(actual)} and "
        f"{type(expected)}.",
        path,
    )


def _compare_mappings(actual, expected, options, path, found) -> None:
    if set(actual) != set(expected):
        missing = sorted(map(repr, set(expected) - set(actual)))
        extra = sorted(map(repr, set(actual) - set(expected)))
        raise _Mismatch(
            AssertionError,
            "The keys of the mappings do not match:\n"
            f"Missing keys in the actual mapping: [{', '.join(missing)}]\n"
            f"Additional keys in the actual mapping: [{', '.join(extra)}]",
            path,
        )
    for key in actual:
        _compare(actual[key], expected[key], options, (*path, key), found)


def _compare_sequences(actual, expected, options, path, found) -> None:
    if len(actual) != len(expected):
        raise _Mismatch(
            AssertionError,
            f"The length of the sequences mismatch: {len(actual)} != {len(expected)}",
            path,
        )
    for i, pair in enumerate(zip(actual, expected, strict=True)):
        _compare(*pair, options, (*path, i), found)


def _tolerances(options, *dtypes) -> tuple[float, float]:
    if options.rtol is not None:
        return options.rtol, options.atol
    return default_tolerances(*dtypes)


def _compare_numbers(actual, expected, options, path) -> None:
    kinds = {bool: taeda.bool, int: taeda.int64, float: taeda.float64}
    dtypes = [kinds.get(type(v), taeda.complex128) for v in (actual, expected)]
    if options.check_dtype and dtypes[0] != dtypes[1]:
        raise _Mismatch(
            AssertionError,
            f"The (d)types do not match: {type(actual)} != {type(expected)}.",
            path,
        )
    rtol, atol = _tolerances(options, *dtypes)
    if actual == expected or (
        options.equal_nan and cmath.isnan(actual) and cmath.isnan(expected)
    ):
        return
    difference = abs(actual - expected)
    if math.isfinite(difference) and difference <= atol + rtol * abs(expected):
        return
    word = "equal" if rtol == 0 and atol == 0 else "close"
    text = f"Scalars are not {word}!\n\nExpected {expected} but got {actual}.\n"
    text += f"Absolute difference: {difference}"
    text += f" (up to {atol} allowed)\n" if word == "close" else "\n"
    relative = difference / abs(expected) if expected else math.inf
    text += f"Relative difference: {relative}"
    text += f" (up to {rtol} allowed)" if word == "close" else ""
    raise _Mismatch(AssertionError, text, path)


def _compare_tensors(actual, expected, options, path) -> None:
    related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
    direct = type(actual) is type(expected)
    if not (direct or (options.allow_subclasses and related)):
        raise _Mismatch(
            TypeError,
            "No comparison pair was able to handle inputs of type "
            f"{type(actual)} and {type(expected)}.",
            path,
        )
    a, b = taeda.as_tensor(actual).detach(), taeda.as_tensor(expected).detach()
    _compare_attributes(a, b, options, path)
    rtol, atol = _tolerances(options, a.dtype, b.dtype)
    if a.is_meta or a.numel() == 0:
        return
    text = _difference(a, b, rtol, atol, options.equal_nan)
    if text is not None:
        raise _Mismatch(AssertionError, text, path)


def _compare_attributes(a, b, options, path) -> None:
    checks = [("shape", True), ("device", options.check_device)]
    checks += [("layout", options.check_layout), ("dtype", options.check_dtype)]
    for name, wanted in checks:
        ours, theirs = getattr(a, name), getattr(b, name)
        if wanted and ours != theirs:
            raise _Mismatch(
                AssertionError,
                f"The values for attribute '{name}' do not match: {ours} != {theirs}.",
                path,
            )
    if options.check_stride and a.stride() != b.stride():
        raise _Mismatch(
            AssertionError,
            f"The values for attribute 'stride()' do not match: {a.stride()} != "
            f"{b.stride()}.",
            path,
        )


def _comparable(t):
    """Integers in int64, so that differences do not wrap around."""
    return t if t.is_complex() or t.is_floating_point() else t.to(taeda.int64)


def _difference(a, b, rtol, atol, equal_nan) -> str | None:
    """The text about tensors that are not close; None if they are."""
    common = taeda.promote_types(a.dtype, b.dtype)
    x, y = _comparable(a.to(common)), _comparable(b.to(common))
    close = taeda.isclose(x, y, rtol=rtol, atol=atol, equal_nan=equal_nan)
    if bool(close.all()):
        return None
    bad = int((~close).sum())
    total = a.numel()
    gap = (x - y).abs()
    relative = gap / y.abs()
    # What is close does not count for the worst place.
    gap = taeda.where(close, taeda.zeros_like(gap), gap)
    relative = taeda.where(close, taeda.zeros_like(relative), relative)
    word = "equal" if rtol == 0 and atol == 0 else "close"
    if a.dim() == 0:
        text = f"Scalars are not {word}!\n\nExpected {b.item()} but got {a.item()}.\n"
        text += f"Absolute difference: {gap.item()}{_allowed(word, atol)}\n"
        return text + f"Relative difference: {relative.item()}{_allowed(word, rtol)}"
    text = f"Tensor-likes are not {word}!\n\n"
    text += f"Mismatched elements: {bad} / {total} ({bad / total:.1%})\n"
    text += f"Greatest absolute difference: {_worst(gap)}{_allowed(word, atol)}\n"
    return (
        text
        + f"Greatest relative difference: {_worst(relative)}"
        + _allowed(word, rtol)
    )


def _allowed(word: str, tolerance: float) -> str:
    return f" (up to {tolerance} allowed)" if word == "close" else ""


def _worst(values) -> str:
    """The largest value (NaN counts as such) and its index."""
    flat = values.reshape(-1).tolist()
    at = max(range(len(flat)), key=lambda i: (math.isnan(flat[i]), flat[i]))
    index, rest = [], at
    for size in reversed(values.shape):
        index.append(rest % size)
        rest //= size
    return f"{flat[at]} at index {tuple(reversed(index))}"


def assert_allclose(
    actual, expected, rtol=None, atol=None, equal_nan=True, msg=""
) -> None:
    """The old form of `assert_close`: only values are compared."""
    actual, expected = taeda.as_tensor(actual), taeda.as_tensor(expected)
    if rtol is None and atol is None:
        rtol, atol = default_tolerances(actual.dtype, expected.dtype)
    assert_close(
        actual,
        expected,
        msg=msg or None,
        check_dtype=False,
        equal_nan=equal_nan,
        rtol=rtol,
        atol=atol,
    )
