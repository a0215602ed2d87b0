"""Numbers that may be expressions over sizes: `SymInt`, `SymFloat` and `SymBool`.

A `SymInt` stands for the size of a tensor whose sizes are symbols. Arithmetic makes
expressions; a question about one (`if x.shape[0] > 3`) is answered by the hint, the
size that was seen, and leaves a guard in the `ShapeEnv`.
"""

from __future__ import annotations

import math
import operator

from taeda import _C

__all__ = ["SymBool", "SymFloat", "SymInt", "symbol_text"]


def symbol_text(v) -> str:
    """A symbolic number as its expression, also where programs see the number."""
    if isinstance(v, (SymBool, SymInt)):
        return v.node.text()
    return v._text if isinstance(v, SymFloat) else repr(v)


def _is_int(v) -> bool:
    return isinstance(v, (int, SymInt)) and not isinstance(v, bool)


class SymBool:
    """A condition on symbols that nobody has decided yet; `bool()` decides it.

    Args:
        node: what the native side knows of it.

    Raises:
        GuardOnDataDependentSymNode: deciding it, where a symbol has no hint.

    Example:
        >>> size = taeda.fx.experimental.symbolic_shapes.ShapeEnv().create_size(8)
        >>> size > 3
        s0 >= 4
    """

    __slots__ = ("node",)

    def __init__(self, node) -> None:
        self.node = node

    def __bool__(self) -> bool:
        return self.node.decide()

    def __int__(self) -> int:
        return int(self.node.decide())

    def __and__(self, other):
        return SymBool(self.node.both(_truth(other)))

    def __or__(self, other):
        return SymBool(self.node.either(_truth(other)))

    def __invert__(self):
        return self.__sym_not__()

    def __sym_not__(self):
        """The opposite."""
        return SymBool(self.node.negate())

    __rand__, __ror__ = __and__, __or__

    def __eq__(self, other):
        return bool(self) == bool(other)

    def __hash__(self) -> int:
        return hash(_known(self.node, "SymBool"))

    def __repr__(self) -> str:
        return repr(bool(self)) if self.node.is_number() else self.node.text()


def _truth(v):
    return v.node if isinstance(v, SymBool) else bool(v)


def _known(node, kind: str):
    """The value of what is decided already: others cannot be keys of tables."""
    value = node.known()
    if value is None:
        raise TypeError(f"unhashable type: non-nested {kind}")
    return value


def _condition(node):
    known = node.known()
    return SymBool(node) if known is None else known


def _number(v):
    """What arithmetic goes on with: of a bool, 0 or 1."""
    return int(v) if isinstance(v, bool) else v


def _comparison(name: str):
    def compare(self, other):
        other = _number(other)
        if _is_int(other):
            return _condition(getattr(self.node, name)(other))
        if isinstance(other, (float, SymFloat)):
            return getattr(operator, name)(SymFloat.of(self), other)
        return NotImplemented

    return compare


def _binary(name: str, operation, swapped: bool = False):
    """Of two integers a native expression, with a float one of floats."""

    def compute(self, other):
        other = _number(other)
        if _is_int(other):
            return getattr(self.node, name)(other)
        if isinstance(other, (float, SymFloat)):
            mine = SymFloat.of(self)
            return operation(other, mine) if swapped else operation(mine, other)
        return NotImplemented

    return compute


def _bitwise(operation, swapped: bool = False):
    """Bits have no expression: the numbers are fixed."""

    def compute(self, other):
        if not _is_int(other):
            return NotImplemented
        mine, other = int(self), int(other)
        return operation(other, mine) if swapped else operation(mine, other)

    return compute


class SymInt:
    """An integer that may be an expression over sizes.

    `int()`, indexing and whatever else needs the number fix it to its hint, which
    leaves a guard.

    Args:
        node: what the native side knows of it.

    Raises:
        GuardOnDataDependentSymNode: it is fixed, or compared, and a symbol has no hint.

    Example:
        >>> size = taeda.fx.experimental.symbolic_shapes.ShapeEnv().create_size(8)
        >>> 2 * size + 1
        2*s0 + 1
    """

    __slots__ = ("node",)

    def __init__(self, node) -> None:
        self.node = node

    def __int__(self) -> int:
        return self.node.fix()

    __index__ = __int__

    def __float__(self) -> float:
        return float(self.node.fix())

    def __bool__(self) -> bool:
        return bool(self != 0)

    __add__ = _binary("add", operator.add)
    __radd__ = _binary("add", operator.add, swapped=True)
    __sub__ = _binary("sub", operator.sub)
    __rsub__ = _binary("rsub", operator.sub, swapped=True)
    __mul__ = _binary("mul", operator.mul)
    __rmul__ = _binary("mul", operator.mul, swapped=True)
    __floordiv__ = _binary("floordiv", operator.floordiv)
    __rfloordiv__ = _binary("rfloordiv", operator.floordiv, swapped=True)
    __mod__ = _binary("mod", operator.mod)
    __rmod__ = _binary("rmod", operator.mod, swapped=True)
    __and__, __rand__ = _bitwise(operator.and_), _bitwise(operator.and_)
    __or__, __ror__ = _bitwise(operator.or_), _bitwise(operator.or_)
    __xor__, __rxor__ = _bitwise(operator.xor), _bitwise(operator.xor)
    __rlshift__ = _bitwise(operator.lshift, swapped=True)
    __rrshift__ = _bitwise(operator.rshift, swapped=True)
    __eq__ = _comparison("eq")
    __lt__ = _comparison("lt")
    __le__ = _comparison("le")
    __gt__ = _comparison("gt")
    __ge__ = _comparison("ge")

    def __ne__(self, other):
        same = self.__eq__(other)
        if same is NotImplemented:
            return same
        return same.__sym_not__() if isinstance(same, SymBool) else not same

    def __truediv__(self, other):
        if _is_int(other):
            return _quotient(self, other)
        return SymFloat.of(self) / other

    def __rtruediv__(self, other):
        if _is_int(other):
            return _quotient(other, self)
        return other / SymFloat.of(self)

    def __pow__(self, other):
        if not _is_int(other) or other < 0:
            return SymFloat.of(self) ** other
        product = 1
        for _ in range(int(other)):
            product = product * self
        return product

    def __rpow__(self, other):
        return other ** self.node.fix()

    def __lshift__(self, other):
        return self * (1 << int(other)) if _is_int(other) else NotImplemented

    def __rshift__(self, other):
        return self // (1 << int(other)) if _is_int(other) else NotImplemented

    def __invert__(self):
        return -self - 1

    def __divmod__(self, other):
        return self // other, self % other

    def __neg__(self):
        return self * -1

    def __pos__(self):
        return self

    def __abs__(self):
        return self if self >= 0 else -self

    def __round__(self, digits=None):
        if digits is None or digits >= 0:
            return self
        return round(self.node.fix(), int(digits))

    __floor__ = __ceil__ = __trunc__ = __pos__

    def __sym_max__(self, other):
        return self.node.max(other) if _is_int(other) else max(float(self), other)

    def __sym_min__(self, other):
        return self.node.min(other) if _is_int(other) else min(float(self), other)

    def __sym_float__(self):
        return SymFloat.of(self)

    def __sym_int__(self):
        return self

    def conjugate(self):
        """Itself."""
        return self

    def as_integer_ratio(self) -> tuple:
        """Itself over 1."""
        return self, 1

    def bit_length(self) -> int:
        """Bits that the integer needs; fixes it."""
        return int(self).bit_length()

    def __hash__(self) -> int:
        if not self.node.is_number() and not self.node.is_fixed():
            raise TypeError("unhashable type: non-nested SymInt")
        return hash(self.node.fix())

    def __str__(self) -> str:
        return str(self.node.fix()) if self.node.is_number() else self.node.text()

    def __format__(self, form: str) -> str:
        number = self.node.fix() if self.node.is_number() else self.node.text()
        return format(number, form)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __repr__(self) -> str:
        return str(self)


def _quotient(a, b) -> SymFloat:
    text = f"IntTrueDiv({symbol_text(a)}, {symbol_text(b)})"
    return SymFloat(text, operator.truediv, a, b)


class SymFloat:
    """A float that depends on symbols.

    Its value is asked for by `float()` and by comparisons, which fix the symbols in it.

    Args:
        text: how it is shown.
        compute: the function that gives the value.
        parts: its arguments, numbers and symbolic numbers.
    """

    __slots__ = ("_compute", "_parts", "_text")

    def __init__(self, text: str, compute, *parts) -> None:
        self._text, self._compute, self._parts = text, compute, parts

    @classmethod
    def of(cls, value):
        """A symbolic integer as a float; other numbers as they are."""
        if isinstance(value, SymInt):
            return cls(f"ToFloat({symbol_text(value)})", float, value)
        return value

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        """A call of the library with such a number among the arguments."""
        from taeda.fx.experimental._above import call_with_floats

        return call_with_floats(func, args, kwargs or {})

    def __float__(self) -> float:
        parts = [
            float(p) if isinstance(p, SymFloat) else int(p) if _is_int(p) else p
            for p in self._parts
        ]
        return float(self._compute(*parts))

    def evaluate(self, sizes: dict[str, int]) -> float:
        """The value where the sources of its symbols have these sizes."""
        parts = [
            p.evaluate(sizes)
            if isinstance(p, SymFloat)
            else p.node.evaluate(sizes)
            if isinstance(p, SymInt)
            else p
            for p in self._parts
        ]
        return float(self._compute(*parts))

    def __int__(self) -> int:
        return int(float(self))

    def __bool__(self) -> bool:
        return float(self) != 0

    def __neg__(self):
        return self * -1.0

    def __pos__(self):
        return self

    def __abs__(self):
        return SymFloat(f"Abs({self._text})", abs, self)

    def conjugate(self):
        """Itself."""
        return self

    def as_integer_ratio(self) -> tuple[int, int]:
        """The value as a fraction; fixes it."""
        return float(self).as_integer_ratio()

    def hex(self) -> str:
        """The value in hexadecimal; fixes it."""
        return float(self).hex()

    def is_integer(self) -> bool:
        """Whether the value is a whole number; fixes it."""
        return float(self).is_integer()

    def __sym_int__(self) -> int:
        return int(self)

    def __sym_float__(self):
        return self

    def __sym_max__(self, other):
        return max(float(self), float(other))

    def __sym_min__(self, other):
        return min(float(self), float(other))

    def __trunc__(self) -> int:
        return int(self)

    def __floor__(self) -> int:
        return math.floor(float(self))

    def __ceil__(self) -> int:
        return math.ceil(float(self))

    def __round__(self, digits=None):
        return round(float(self), digits)

    def __hash__(self) -> int:
        raise TypeError("unhashable type: SymFloat")

    def _is_number(self) -> bool:
        """Whether programs take it for its number: see ShapeEnv in C++."""
        return any(
            p._is_number() if isinstance(p, SymFloat) else p.node.is_number()
            for p in self._parts
            if isinstance(p, (SymFloat, SymInt))
        )

    def __repr__(self) -> str:
        return repr(float(self)) if self._is_number() else self._text

    def __format__(self, form: str) -> str:
        return format(float(self) if self._is_number() else self._text, form)


def _fill_float() -> None:
    """The operators of SymFloat: expressions, and comparisons that decide."""

    def arithmetic(operation, form: str, swapped: bool):
        def compute(self, other):
            if not isinstance(other, (int, float, SymInt, SymFloat)):
                return NotImplemented
            other = SymFloat.of(other)
            left, right = (other, self) if swapped else (self, other)
            return SymFloat(
                form.format(symbol_text(left), symbol_text(right)),
                operation,
                left,
                right,
            )

        return compute

    for name, form in (
        ("add", "{} + {}"),
        ("sub", "{} - {}"),
        ("mul", "{}*{}"),
        ("truediv", "FloatTrueDiv({}, {})"),
        ("floordiv", "({}//{})"),
        ("mod", "Mod({}, {})"),
        ("pow", "FloatPow({}, {})"),
    ):
        operation = getattr(operator, name)
        setattr(SymFloat, f"__{name}__", arithmetic(operation, form, False))
        setattr(SymFloat, f"__r{name}__", arithmetic(operation, form, True))

    def comparing(operation):
        def compare(self, other):
            if not isinstance(other, (int, float, SymInt, SymFloat)):
                return NotImplemented
            return operation(float(self), float(other))

        return compare

    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        setattr(SymFloat, f"__{name}__", comparing(getattr(operator, name)))


_fill_float()
for _class in (SymBool, SymFloat, SymInt):
    _class.__module__ = "taeda"
_C._set_sym_int_type(SymInt)


def _plain(value):
    """Integers in place of symbols, for which guards are left: dims, say."""
    if isinstance(value, (list, tuple)):
        return type(value)(map(_plain, value))
    return operator.index(value) if isinstance(value, SymInt) else value


def call_operator(name: str, variant: str, rows):
    """A call that has symbols among its arguments, made by the operator's object.

    Args:
        name, variant: the overload's.
        rows: of each argument the parameter's name, the schema's, which is empty where
            the schema has none, and the value.

    Raises:
        NotImplementedError: there is an `out`.
    """
    from taeda._ops import overload_of

    made = overload_of(name, variant)
    arguments, extra = {}, {}
    for parameter, argument, value in rows:
        if argument:
            arguments[argument] = value
        else:
            extra[parameter] = value
    if extra.get("out") is not None:
        raise NotImplementedError(
            f"{name}: out= is not there for calls with symbolic integers"
        )
    try:
        made = made(**arguments)
    except TypeError:  # a parameter that no symbol can be
        kinds = {each.name: str(each.type) for each in made._schema.arguments}
        plain = {k: _plain(v) for k, v in arguments.items() if kinds[k][:3] == "int"}
        made = made(**{**arguments, **plain})
    if isinstance(made, list):
        return tuple(made)
    return made.requires_grad_() if extra.get("requires_grad") else made
