"""Closed sets of named numbers, without the cost of importing enum."""

from __future__ import annotations


class _Choices(type):
    def __iter__(cls):
        return iter(cls.__members__.values())

    def __len__(cls) -> int:
        return len(cls.__members__)

    def __getitem__(cls, name):
        return cls.__members__[name]


class Choice(metaclass=_Choices):
    """One of the named numbers that its class lists in `_values`."""

    __slots__ = ("_name", "_value")
    __members__: dict = {}

    def __init_subclass__(cls) -> None:
        cls.__members__ = {}
        for name, value in cls._values.items():
            one = object.__new__(cls)
            one._name, one._value = name, value
            cls.__members__[name] = one
            setattr(cls, name, one)

    def __new__(cls, value):
        for member in cls:
            if member is value or member._value == value:
                return member
        raise ValueError(f"{value!r} is not a valid {cls.__name__}")

    @property
    def name(self) -> str:
        return self._name

    @property
    def value(self) -> int:
        return self._value

    def __repr__(self) -> str:
        return f"<{type(self).__name__}.{self._name}: {self._value}>"

    def __str__(self) -> str:
        return f"{type(self).__name__}.{self._name}"

    def __eq__(self, other) -> bool:
        return self is other

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._value))

    def __int__(self) -> int:
        return self._value

    __index__ = __int__

    def __reduce__(self):
        return type(self), (self._value,)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self
