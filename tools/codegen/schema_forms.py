"""Derived schemas: the in-place and the out= form of a functional one."""

from __future__ import annotations

from dataclasses import replace

from .errors import CodegenError
from .schema_types import TENSOR_OPTIONS, Alias, Argument, Return, Schema


def _require_functional(schema: Schema, form: str) -> None:
    if not schema.is_functional or schema.is_view:
        raise CodegenError(
            f"{schema.name}: only a functional schema has a derived {form} form"
        )


def inplace_schema(schema: Schema, overload: str | None = None) -> Schema:
    """`add.Tensor(Tensor self, ...) -> Tensor` to `add_.Tensor(Tensor(a!) self, ...)`.

    A list operator (`Tensor[] self`) returns nothing, as torch's `_foreach_*_` do.
    """
    _require_functional(schema, "in-place")
    first = schema.arguments[:1]
    if not first or first[0].name != "self" or not first[0].type.is_tensor_like:
        raise CodegenError(f"{schema.name}: in-place needs a first `Tensor self`")
    written = first[0].type.with_alias(Alias(("a",), write=True))
    is_list = written.is_list
    if not is_list and (len(schema.returns) != 1 or not written.is_tensor):
        raise CodegenError(f"{schema.name}: in-place needs exactly one Tensor result")
    return replace(
        schema,
        base=schema.base + "_",
        overload=schema.overload if overload is None else overload,
        arguments=(replace(first[0], type=written), *schema.arguments[1:]),
        returns=() if is_list else (Return(written),),
    )


def out_overload_name(overload: str) -> str:
    """The commonest rule of torch: `` to `out`, `dim` to `dim_out`."""
    return f"{overload}_out" if overload else "out"


def out_schema(
    schema: Schema,
    overload: str | None = None,
    names: tuple[str, ...] | None = None,
) -> Schema:
    """The out= form: results become keyword-only written arguments.

    Names come from `names`, else from named returns, else `out` or `out0, out1, ...`.
    The group dtype, layout, device, pin_memory is dropped: the out tensor decides it.
    """
    _require_functional(schema, "out")
    returns = schema.returns
    if not returns or not all(r.type.is_tensor_like for r in returns):
        raise CodegenError(f"{schema.name}: out= needs Tensor results only")
    numbered = tuple(f"out{i}" for i in range(len(returns)))
    if names is None:
        named = tuple(r.name for r in returns if r.name)
        unnamed = ("out",) if len(returns) == 1 else numbered
        names = named if len(named) == len(returns) > 1 else unnamed
    if len(names) != len(returns):
        raise CodegenError(
            f"{schema.name}: {len(returns)} results but {len(names)} out names"
        )
    aliases = [Alias((chr(ord("a") + i),), write=True) for i in range(len(returns))]
    types = [r.type.with_alias(a) for r, a in zip(returns, aliases, strict=True)]
    outs = tuple(
        Argument(name, kind, kwarg_only=True)
        for name, kind in zip(names, types, strict=True)
    )
    dropped = TENSOR_OPTIONS if schema.is_factory else ()
    kept = tuple(a for a in schema.arguments if a.name not in dropped)
    has_list = any(kind.is_list for kind in types)
    # Results keep their names unless the out arguments are only numbered.
    anonymous = names in (("out",), numbered)
    results = tuple(
        Return(kind, None if anonymous else r.name)
        for kind, r in zip(types, returns, strict=True)
    )
    return replace(
        schema,
        overload=out_overload_name(schema.overload) if overload is None else overload,
        arguments=kept + outs,
        returns=() if has_list else results,
    )
