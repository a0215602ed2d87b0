"""The dtypes that records name, and the field `dtypes` of a record."""

from __future__ import annotations

from dataclasses import dataclass

from .choices import When, choices_of
from .yaml_fields import (
    Node,
    boolean,
    entries_of,
    entry,
    list_of,
    one_of,
    struct,
    text,
)

_INT = ("u8", "i8", "i16", "i32", "i64")
_WIDE_UNSIGNED = ("u16", "u32", "u64")
_FLOAT = ("f16", "bf16", "f32", "f64")
_COMPLEX = ("c32", "c64", "c128")
DTYPES = ("bool", *_INT, *_WIDE_UNSIGNED, *_FLOAT, *_COMPLEX)
DTYPE_CLASSES: dict[str, tuple[str, ...]] = {
    "all": ("bool", *_INT, *_FLOAT, *_COMPLEX),
    "real": ("bool", *_INT, *_FLOAT),
    "no_bool": (*_INT, *_FLOAT, *_COMPLEX),
    "real_no_bool": (*_INT, *_FLOAT),
    "float": _FLOAT,
    "float_complex": (*_FLOAT, *_COMPLEX),
    "complex": _COMPLEX,
    "int": _INT,
    "int_bool": ("bool", *_INT),
    "bool": ("bool",),
    # With those that have no loops of their own, 8-bit floats among them.
    "storage": DTYPES,
}
PROMOTIONS = (
    "int_to_long",
    "float_only",
    "default",
    "int_to_float",
    "int_to_real",
    "int_through_double",
    "bool_out",
    "complex_to_float",
    "bool_to_long",
    "no_opmath",
    "same",
    "first",
    "none",
)
COMPUTE_TYPES = (
    *("bool", *_INT, *_WIDE_UNSIGNED),
    *("f32", "f64", "c64", "c128"),
)
KINDS = ("bool", "int", "float", "complex")
KIND_OF_DTYPE = {
    "bool": "bool",
    **dict.fromkeys((*_INT, *_WIDE_UNSIGNED), "int"),
    **dict.fromkeys(_FLOAT, "float"),
    **dict.fromkeys(_COMPLEX, "complex"),
}


def _dtype_set(node: Node) -> tuple[str, ...]:
    if node.tag == "seq":
        return list_of(one_of(*DTYPES))(node)
    return DTYPE_CLASSES[one_of(*DTYPE_CLASSES)(node)]


@dataclass(frozen=True)
class Dtypes:
    """Storage dtypes accepted, the promotion rule, and the types computed in."""

    inputs: tuple[str, ...] = entry(_dtype_set, DTYPE_CLASSES["all"], key="in")
    promote: str = entry(one_of(*PROMOTIONS), "default")
    compute: tuple[str, ...] = entry(list_of(one_of(*COMPUTE_TYPES)), ())
    # Operands are converted to the common dtype. Of 16-bit floats this rounds numbers
    # and 0-dim tensors, but for these operands.
    exact: tuple[str, ...] = entry(list_of(text), ())
    # Of pointwise records whose rule differs by parameters; the fields above then are
    # the last one's promotion and what any of them takes.
    by_choice: tuple[tuple[When, Dtypes], ...] = ()

    def for_choice(self, when: When) -> Dtypes:
        """The rule where `when` holds."""
        for chosen, dtypes in self.by_choice:
            if set(chosen) <= set(when):
                return dtypes
        return self

    @property
    def compute_types(self) -> tuple[str, ...]:
        """`compute`, or the widest useful types for each kind of input."""
        if self.compute:
            return self.compute
        kinds = {KIND_OF_DTYPE[name] for name in self.inputs}
        if self.promote in ("int_to_float", "int_to_real", "int_through_double"):
            kinds = (kinds - {"bool", "int"}) | {"float"}
        by_kind = {
            "bool": ("bool",),
            "int": ("i64",),
            "float": ("f32", "f64"),
            "complex": ("c64", "c128"),
        }
        return tuple(name for k in KINDS if k in kinds for name in by_kind[k])


@dataclass(frozen=True)
class Taken:
    """The dtypes that a kernel takes, told by its first tensor.

    Kinds of dtypes without a member among `in` are refused behind the shape rule: by
    the kernel, on meta tensors and in graphs alike. `refused_as` is the name in the
    error, the record's if None; `empty` says that no elements are taken in any dtype.
    """

    inputs: tuple[str, ...] = entry(_dtype_set, DTYPES, key="in")
    refused_as: str | None = entry(text, None)
    empty: bool = entry(boolean, False)

    @property
    def refused_kinds(self) -> tuple[str, ...]:
        """The kinds that no accepted dtype has."""
        kinds = {KIND_OF_DTYPE[name] for name in self.inputs}
        return tuple(kind for kind in KINDS if kind not in kinds)


def dtypes_by_choice(node: Node) -> Dtypes:
    reserved = tuple(entries_of(Dtypes))
    found = tuple(choices_of(node, struct(Dtypes, "dtypes"), reserved))
    if len(found) == 1 and not found[0][0]:
        return found[0][1]
    rules = [dtypes for _, dtypes in found]
    inputs = {name for rule in rules for name in rule.inputs}
    compute = {name for rule in rules for name in rule.compute_types}
    return Dtypes(
        tuple(name for name in DTYPES if name in inputs),
        rules[-1].promote,
        tuple(name for name in COMPUTE_TYPES if name in compute),
        by_choice=found,
    )
