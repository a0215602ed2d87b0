"""The order in which Python tries overloads, and the deprecated orders of arguments.

Both are PyTorch's: a call must pick the same overload, and an error must list the same
signatures in the same order.
"""

from __future__ import annotations

from .schema import Argument, Schema, Type

# Orders of arguments from before keyword-only arguments existed, after PyTorch's
# tools/autograd/deprecated.yaml. The in-place forms have them as well.
_PRODUCT = "Scalar beta, Tensor self, {alpha}Tensor {a}, Tensor {b}"


def _product(a: str, b: str) -> tuple[str, ...]:
    return tuple(
        _PRODUCT.format(alpha=alpha, a=a, b=b) for alpha in ("Scalar alpha, ", "")
    )


DEPRECATED: dict[str, tuple[str, ...]] = {
    "add": ("Tensor self, Scalar alpha, Tensor other",),
    "sub": ("Tensor self, Scalar alpha, Tensor other",),
    "addcdiv": ("Tensor self, Scalar value, Tensor tensor1, Tensor tensor2",),
    "addcmul": ("Tensor self, Scalar value, Tensor tensor1, Tensor tensor2",),
    "addbmm": _product("batch1", "batch2"),
    "baddbmm": _product("batch1", "batch2"),
    "addmm": _product("mat1", "mat2"),
    "sspaddmm": _product("mat1", "mat2"),
    "addmv": _product("mat", "vec"),
    "addr": _product("vec1", "vec2"),
}

# In-place forms that are functions of PyTorch's top level as well; the others are
# methods only.
INPLACE_FUNCTIONS = frozenset(
    (
        "abs acos acosh addmv alpha_dropout arccos arccosh arcsin arcsinh arctan"
        " arctanh as_strided asin asinh atan atanh ceil celu clamp clamp_max clamp_min"
        " clip conj_physical cos cosh deg2rad detach dropout embedding_renorm erf erfc"
        " exp exp2 expm1 feature_alpha_dropout feature_dropout fill fix floor frac gcd"
        " i0 index_put lcm ldexp log log10 log1p log2 logit nan_to_num neg negative"
        " rad2deg reciprocal relu resize_as resize_as_sparse round rrelu rsqrt selu"
        " sigmoid sin sinc sinh sqrt square tan tanh threshold trunc xlogy zero"
        " elu gelu hardsigmoid hardswish hardtanh leaky_relu mish relu6"
        " rrelu_with_noise silu"
    ).split()
)

_NAMES = {
    "Scalar": "Scalar",
    "Tensor": "Tensor",
    "int": "int64_t",
    "SymInt": "SymInt",
    "float": "double",
    "bool": "bool",
    "str": "c10::string_view",
}
_LISTS = {
    "Tensor": "TensorList",
    "Scalar": "ScalarList",
    "int": "IntArrayRef",
    "SymInt": "SymIntArrayRef",
    "float": "ArrayRef<double>",
}


def _type_text(kind: Type) -> str:
    """PyTorch's name of a type in signatures, by which overloads are sorted first."""
    if kind.is_optional:
        return _type_text(kind.element) + "?"
    if kind.is_list:
        if kind.base == "bool":
            return f"::std::array<bool,{kind.list_size}>"
        if kind.element.is_optional:
            return "c10::List<::std::optional<Tensor>>"
        size = f"[{kind.list_size}]" if kind.list_size else ""
        return _LISTS[kind.base] + size
    return _NAMES.get(kind.base, kind.base)


def _argument_text(argument: Argument) -> str:
    name = argument.name
    if name == "self" and argument.type.is_tensor:
        name = "input"
    tail = f"={argument.default}" if argument.has_default else ""
    return f"{_type_text(argument.type)} {name}{tail}"


def _signature_text(schema: Schema) -> str:
    parts = [_argument_text(a) for a in schema.positional]
    if schema.kwarg_only:
        parts += ["*"] + [_argument_text(a) for a in schema.kwarg_only]
    return ", ".join(parts)


def _bare(kind: Type) -> str:
    return str(kind.with_alias(None))


def _type_precedes(a: str, b: str) -> bool:
    """Whether a parameter of type `a` takes objects that `b` would take as well."""
    return (
        (a, b) in (("Scalar", "Tensor"), ("Scalar?", "Tensor?"))
        or (a == "int[]" and b in ("int", "int?"))
        or (a == "Tensor[]" and "[]" in b)
        or (a == "SymInt[]" and b == "int[]")
        or (a in ("SymInt", "int") and b == "Tensor")
    )


def _is_tried_after(first: Schema, second: Schema) -> bool:
    a = [_bare(x.type) for x in first.arguments]
    b = [_bare(x.type) for x in second.arguments]
    if len(a) != len(b) or a == b:
        return False
    pairs = zip(a, b, strict=True)
    return all(x == y or _type_precedes(x, y) for x, y in pairs)


def overload_order(schemas: list[Schema]) -> list[int]:
    """Positions of the overloads in the order in which they are tried.

    Sorted by text, then topologically, so that what takes numbers comes after what
    takes tensors in the same places.
    """
    by_text = sorted(range(len(schemas)), key=lambda i: _signature_text(schemas[i]))
    waits: dict[int, set[int]] = {}
    for i in by_text:
        before = {j for j in by_text if _is_tried_after(schemas[i], schemas[j])}
        if before:
            waits[i] = before
    order = [i for i in by_text if i not in waits]
    for done in order:
        for i in by_text:
            if i in waits:
                waits[i].discard(done)
                if not waits[i]:
                    del waits[i]
                    order.append(i)
    return order
