"""Operator schemas as frozen dataclasses that print themselves in torch's text."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from .errors import CodegenError

Default = None | bool | int | float | str | tuple["Default", ...]

TENSOR_OPTIONS = ("dtype", "layout", "device", "pin_memory")
ESCAPES = {"n": "\n", "t": "\t", "f": "\f", "v": "\v", "r": "\r", "0": "\0"}
_UNESCAPES = {value: "\\" + key for key, value in ESCAPES.items()} | {
    char: "\\" + char for char in "\"'\\"
}


@dataclass(frozen=True)
class Alias:
    """An annotation such as `(a!)`, `(a -> *)` or `(b|a)`."""

    before: tuple[str, ...]
    write: bool = False
    after: tuple[str, ...] = ()

    def __str__(self) -> str:
        arrow = " -> " + "|".join(self.after) if self.after else ""
        return f"({'|'.join(self.before)}{'!' if self.write else ''}{arrow})"


@dataclass(frozen=True)
class Type:
    """A type; lists, optionals, tuples and generics hold their parts in `params`."""

    name: str
    params: tuple[Type, ...] = ()
    size: int | None = None
    alias: Alias | None = None

    @property
    def is_list(self) -> bool:
        """A list, or an optional list."""
        return self.name == "List" or (self.is_optional and self.params[0].is_list)

    @property
    def is_optional(self) -> bool:
        return self.name == "Optional"

    @property
    def element(self) -> Type:
        """What an optional or a list holds; the type itself otherwise."""
        return self.params[0] if self.name in ("Optional", "List") else self

    @property
    def base(self) -> str:
        """The innermost name: `Tensor` for `Tensor?[]`."""
        return self.element.base if self.element is not self else self.name

    @property
    def list_size(self) -> int | None:
        """The N of `int[N]` and `int[N]?`."""
        return self.params[0].list_size if self.is_optional else self.size

    @property
    def is_tensor(self) -> bool:
        """`Tensor` or `Tensor?`, not a list of them."""
        return self.base == "Tensor" and not self.is_list

    @property
    def is_tensor_like(self) -> bool:
        return self.base == "Tensor"

    @property
    def any_alias(self) -> Alias | None:
        """The annotation at whatever depth it stands."""
        if self.alias is not None or self.element is self:
            return self.alias
        return self.element.any_alias

    def with_alias(self, alias: Alias | None) -> Type:
        """Annotated at the innermost type, where torch writes it."""
        if self.element is self:
            return replace(self, alias=alias)
        return replace(self, params=(self.element.with_alias(alias),), alias=None)

    def __str__(self) -> str:
        alias = str(self.alias) if self.alias else ""
        inner = ", ".join(str(param) for param in self.params)
        if self.name == "List":
            return f"{inner}[{'' if self.size is None else self.size}]{alias}"
        if self.name == "Optional":
            return f"{inner}?{alias}"
        if self.name == "()":
            return f"({inner}){alias}"
        return f"{self.name}({inner}){alias}" if self.params else f"{self.name}{alias}"


@dataclass(frozen=True)
class Argument:
    name: str
    type: Type
    default: Default = None
    has_default: bool = False
    kwarg_only: bool = False

    @property
    def is_mutable(self) -> bool:
        alias = self.type.any_alias
        return alias is not None and alias.write

    def __str__(self) -> str:
        tail = f"={format_default(self.default)}" if self.has_default else ""
        return f"{self.type} {self.name}{tail}"


@dataclass(frozen=True)
class Return:
    type: Type
    name: str | None = None

    def __str__(self) -> str:
        return f"{self.type} {self.name}" if self.name else str(self.type)


@dataclass(frozen=True)
class Schema:
    """One overload: `namespace::base.overload(arguments) -> returns`."""

    base: str
    overload: str
    arguments: tuple[Argument, ...]
    returns: tuple[Return, ...]
    namespace: str = ""
    is_vararg: bool = False
    is_varret: bool = False

    @property
    def name(self) -> str:
        """`base.overload`, or the base alone for the unnamed overload."""
        return f"{self.base}.{self.overload}" if self.overload else self.base

    @property
    def positional(self) -> tuple[Argument, ...]:
        return tuple(a for a in self.arguments if not a.kwarg_only)

    @property
    def kwarg_only(self) -> tuple[Argument, ...]:
        return tuple(a for a in self.arguments if a.kwarg_only)

    @property
    def mutable_args(self) -> tuple[Argument, ...]:
        return tuple(a for a in self.arguments if a.is_mutable)

    @property
    def out_args(self) -> tuple[Argument, ...]:
        """The keyword-only arguments that are written to."""
        return tuple(a for a in self.mutable_args if a.kwarg_only)

    @property
    def tensor_args(self) -> tuple[Argument, ...]:
        """Arguments of type Tensor, Tensor?, Tensor[] or Tensor?[] that are read."""
        outs = self.out_args
        return tuple(
            a for a in self.arguments if a.type.is_tensor_like and a not in outs
        )

    @property
    def is_out(self) -> bool:
        return bool(self.out_args)

    @property
    def is_inplace(self) -> bool:
        first = self.arguments[:1]
        dunder = re.fullmatch(r"__i\w+__", self.base) is not None
        named = dunder or (self.base.endswith("_") and not self.base.endswith("__"))
        return named and bool(first) and first[0].is_mutable and not self.is_out

    @property
    def is_functional(self) -> bool:
        return not self.mutable_args

    @property
    def is_view(self) -> bool:
        """A return shares memory with an argument that the call does not write."""
        aliases = [r.type.any_alias for r in self.returns]
        return any(a is not None and not a.write for a in aliases)

    @property
    def is_factory(self) -> bool:
        """Takes the whole group dtype, layout, device, pin_memory."""
        names = {a.name for a in self.arguments}
        return all(option in names for option in TENSOR_OPTIONS)

    @property
    def makes_memory(self) -> bool:
        """A factory that is no copy: copies are pinned only beside an accelerator."""
        return self.is_factory and all(a.name != "non_blocking" for a in self.arguments)

    def argument(self, name: str) -> Argument:
        for argument in self.arguments:
            if argument.name == name:
                return argument
        raise CodegenError(f"{self.name}: no argument named {name!r}")

    def __str__(self) -> str:
        parts = [str(a) for a in self.positional]
        if self.kwarg_only:
            parts += ["*"] + [str(a) for a in self.kwarg_only]
        if self.is_vararg:
            parts.append("...")
        prefix = f"{self.namespace}::" if self.namespace else ""
        return f"{prefix}{self.name}({', '.join(parts)}) -> {self._returns_text()}"

    def _returns_text(self) -> str:
        if self.is_varret:
            return "..."
        texts = [str(r) for r in self.returns]
        # A lone result that starts with a tuple type would read as several results.
        if len(texts) == 1 and not texts[0].startswith("("):
            return texts[0]
        return f"({', '.join(texts)})"


def format_default(value: Default) -> str:
    """A default as torch prints it: floats with 17 digits and always a point."""
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, float):
        text = f"{value:.17g}"
        return text if re.search(r"[.en]", text) else text + "."
    if isinstance(value, str):
        return '"' + "".join(_UNESCAPES.get(c, c) for c in value) + '"'
    if isinstance(value, tuple):
        return "[" + ", ".join(format_default(item) for item in value) + "]"
    return str(value)
