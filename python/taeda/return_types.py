"""Named tuples that operators with several results return."""

from __future__ import annotations

from taeda import _C

_NAMES = frozenset(_C._return_type_names())
# What an operator wrote to `out=` it returns in a tuple of the same type.
_WRITTEN = {
    f"{name}_out": name
    for name, _, schema in _C._op_schemas()
    if name in _NAMES and "!" in schema
}
_LISTS = ("all_return_types",)
__all__ = [*_NAMES, *_WRITTEN, *_LISTS, "pytree_register_structseq"]


def pytree_register_structseq(cls: type) -> None:
    """Let trees go through instances of a class such as these, or `time.struct_time`.

    Args:
        cls: a type of named tuples that is made of one sequence.
    """
    from taeda.utils._pytree import register_pytree_node

    register_pytree_node(cls, lambda value: (list(value), None), lambda v, _: cls(v))


def __getattr__(name: str):
    if name == "all_return_types":
        layers = {*dir(_C._nn)}
        public = sorted(n for n in _NAMES if n[0] != "_" and n not in layers)
        found = [__getattr__(n) for n in public]
    else:
        try:
            found = _C._return_type(_WRITTEN.get(name, name))
        except KeyError:
            raise AttributeError(
                f"module {__name__!r} has no attribute {name!r}"
            ) from None
        found.__doc__ = _about(_WRITTEN.get(name, name), found.__match_args__)
    globals()[name] = found
    return found


def _about(name: str, fields: tuple[str, ...]) -> str:
    lines = [f"    {field} (Tensor): result {i}." for i, field in enumerate(fields)]
    first = f"The results of `{name}`, a tuple whose fields have names."
    return "\n".join([first, "", "Attributes:", *lines])


def __dir__():
    return sorted({*globals(), *__all__})
