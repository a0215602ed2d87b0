"""Small helpers of the layers."""

from __future__ import annotations

__all__ = ["consume_prefix_in_state_dict_if_present"]


def _ntuple(n: int, name: str = "parse"):
    """A function that makes one value n values, and any sequence a tuple."""

    def spread(x):
        if type(x) is int:
            return (x,) * n
        if hasattr(x, "__iter__") and not isinstance(x, str):
            return tuple(x)
        return (x,) * n

    spread.__name__ = spread.__qualname__ = name
    return spread


_single, _pair, _triple, _quadruple = (
    _ntuple(n, name)
    for n, name in enumerate(("_single", "_pair", "_triple", "_quadruple"), 1)
)


def _reverse_repeat_tuple(t, n: int):
    """(a, b) -> (b, b, a, a) for n = 2: sizes in the order that pad takes."""
    return tuple(x for x in reversed(t) for _ in range(n))


def _list_with_default(out_size, defaults):
    """Output sizes with None replaced by the input's own."""
    if isinstance(out_size, int):
        return out_size
    if len(defaults) <= len(out_size):
        raise ValueError(f"Input dimension should be at least {len(out_size) + 1}")
    own = defaults[-len(out_size) :]
    return [n if want is None else want for want, n in zip(out_size, own, strict=False)]


def consume_prefix_in_state_dict_if_present(state_dict: dict, prefix: str) -> None:
    """Strip `prefix` from the keys of a state dictionary, in place.

    Args:
        state_dict: keys without the prefix stay as they are.
        prefix: such as "module.".

    Example:
        >>> state = {"module.weight": 1}
        >>> f = taeda.nn.modules.utils.consume_prefix_in_state_dict_if_present
        >>> f(state, "module.")
        >>> state
        {'weight': 1}
    """
    for key in list(state_dict):
        if key.startswith(prefix):
            state_dict[key[len(prefix) :]] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", None)
    if metadata is None:
        return
    for key in list(metadata):
        # "module." itself is kept in the metadata as "module".
        if key and (key == prefix.rstrip(".") or key.startswith(prefix)):
            metadata[key[len(prefix) :]] = metadata.pop(key)


def described(module, names: str, *, keys: bool = True) -> str:
    """Attributes for `extra_repr`: "a=1, b=2", or "1, 2" without keys."""
    own = module.__dict__
    if keys:
        return ", ".join(f"{name}={own[name]}" for name in names.split())
    return ", ".join(str(own[name]) for name in names.split())
