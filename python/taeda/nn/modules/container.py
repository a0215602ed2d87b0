"""Modules that hold modules or parameters."""

from __future__ import annotations

from collections import OrderedDict
from operator import index as _index

from taeda import Tensor, typename

from .._native import warn
from ..parameter import Parameter
from .module import Module

__all__ = [
    "Container",
    "ModuleDict",
    "ModuleList",
    "ParameterDict",
    "ParameterList",
    "Sequential",
]


def _place(at, size: int) -> int:
    """A position counted from the beginning."""
    at = _index(at)
    if not -size <= at < size:
        raise IndexError(f"index {at} is out of range")
    return at % size


def _is_iterable(value) -> bool:
    return hasattr(type(value), "__iter__")


class Container(Module):
    """Deprecated: `Module` does the same.

    Example:
        >>> taeda.nn.Container(act=taeda.nn.ReLU()).act
        ReLU()
    """

    def __init__(self, **kwargs) -> None:
        super().__init__()
        warn("`nn.Container` is deprecated, subclass nn.Module", FutureWarning)
        for name, module in kwargs.items():
            self.add_module(name, module)


class _Numbered(Module):
    """Modules under the names "0", "1", ..., as a list."""

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules.values())

    def __dir__(self):
        return [name for name in super().__dir__() if not name.isdigit()]

    def _renumber(self) -> None:
        modules = self._modules.values()
        self._modules = {str(i): module for i, module in enumerate(modules)}

    def __delitem__(self, idx) -> None:
        names = list(self._modules)
        picked = (
            names[idx] if isinstance(idx, slice) else [names[_place(idx, len(names))]]
        )
        for name in picked:
            delattr(self, name)
        self._renumber()

    def __setitem__(self, idx: int, module: Module) -> None:
        names = list(self._modules)
        setattr(self, names[_place(idx, len(names))], module)

    def append(self, module: Module):
        """Put a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def pop(self, key):
        """Take a module (or a slice of them) out and return it."""
        found = self[key]
        del self[key]
        return found

    def _make_room(self, index: int, module) -> None:
        modules = list(self._modules.values())
        modules.insert(index, module)
        self._modules.clear()
        self._modules.update((str(i), m) for i, m in enumerate(modules))


class Sequential(_Numbered):
    """Calls its modules one after the other.

    Args:
        args: modules, or one OrderedDict from names to modules.

    Example:
        >>> taeda.nn.Sequential(taeda.nn.Linear(1, 2), taeda.nn.ReLU())
        Sequential(
          (0): Linear(in_features=1, out_features=2, bias=True)
          (1): ReLU()
        )
    """

    def __init__(self, *args) -> None:
        super().__init__()
        named = len(args) == 1 and isinstance(args[0], OrderedDict)
        for name, module in args[0].items() if named else enumerate(args):
            self.add_module(name if named else str(name), module)

    def forward(self, input):
        for module in self._modules.values():
            input = module(input)
        return input

    def __getitem__(self, idx):
        if isinstance(idx, slice):
            return type(self)(OrderedDict(list(self._modules.items())[idx]))
        return list(self._modules.values())[_place(idx, len(self))]

    def insert(self, index: int, module: Module):
        """Put a module before position `index`.

        Raises:
            AssertionError: it is no module.
            IndexError: `index` out of range.
        """
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        size = len(self)
        if not -size <= index <= size:
            raise IndexError(f"Index out of range: {index}")
        self._make_room(index + size if index < 0 else index, module)
        return self

    def extend(self, sequential):
        """Put modules at the end, one by one."""
        for module in sequential:
            self.append(module)
        return self

    def _joined(self, other):
        if not isinstance(other, Sequential):
            raise ValueError(
                "add operator supports only objects of Sequential class, but "
                f"{type(other)} is given."
            )
        return list(other)

    def __add__(self, other):
        return Sequential(*self, *self._joined(other))

    def __iadd__(self, other):
        return self.extend(self._joined(other))

    def _times(self, count) -> int:
        if not isinstance(count, int):
            raise TypeError(
                f"unsupported operand type(s) for *: {type(self)} and {type(count)}"
            )
        if count <= 0:
            raise ValueError(
                f"Non-positive multiplication factor {count} for {type(self)}"
            )
        return count

    def __mul__(self, other: int):
        return Sequential(*list(self) * self._times(other))

    __rmul__ = __mul__

    def __imul__(self, other: int):
        return self.extend(list(self) * (self._times(other) - 1))


class ModuleList(_Numbered):
    """A list of modules, which registers them; it has no forward.

    Args:
        modules: modules to begin with.

    Example:
        >>> taeda.nn.ModuleList([taeda.nn.ReLU() for _ in range(3)])
        ModuleList(
          (0-2): 3 x ReLU()
        )
    """

    def __init__(self, modules=None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __getitem__(self, idx):
        if isinstance(idx, slice):
            return type(self)(list(self._modules.values())[idx])
        return self._modules[str(_place(idx, len(self)))]

    def __iadd__(self, modules):
        return self.extend(modules)

    def __add__(self, other):
        return ModuleList([*self, *other])

    def insert(self, index: int, module: Module) -> None:
        """Put a module before position `index`."""
        self._make_room(index, module)

    def extend(self, modules):
        """Put modules at the end.

        Raises:
            TypeError: `modules` is not iterable.
        """
        if not _is_iterable(modules):
            raise TypeError(
                "ModuleList.extend should be called with an iterable, but got "
                f"{type(modules).__name__}"
            )
        for module in list(modules):
            self.append(module)
        return self

    def __repr__(self) -> str:
        runs: list[list] = []  # [first, last, text] of equal neighbours
        for i, text in enumerate(map(repr, self)):
            if runs and runs[-1][2] == text:
                runs[-1][1] = i
            else:
                runs.append([i, i, text])
        lines = []
        for first, last, text in runs:
            if first == last:
                line = f"({first}): {text}"
            else:
                line = f"({first}-{last}): {last - first + 1} x {text}"
            lines.append(line.replace("\n", "\n  "))
        inner = "".join(f"\n  {line}" for line in lines) + "\n" if lines else ""
        return f"{self._get_name()}({inner})"


def _pairs(kind: str, given):
    """(key, value) pairs of what `update` may be given."""
    if hasattr(given, "items"):
        return list(given.items())
    if not _is_iterable(given):
        raise TypeError(
            f"{kind}.update should be called with an iterable of key/value pairs, but "
            f"got {type(given).__name__}"
        )
    pairs = []
    for i, pair in enumerate(given):
        if not _is_iterable(pair):
            raise TypeError(
                f"{kind} update sequence element #{i} should be Iterable; is "
                f"{type(pair).__name__}"
            )
        pair = tuple(pair)
        if len(pair) != 2:
            raise ValueError(
                f"{kind} update sequence element #{i} has length {len(pair)}; 2 is "
                "required"
            )
        pairs.append(pair)
    return pairs


class ModuleDict(Module):
    """A dictionary of modules, which registers them; it has no forward.

    Args:
        modules: a mapping from names to modules, or pairs.

    Example:
        >>> layers = taeda.nn.ModuleDict({"act": taeda.nn.ReLU()})
        >>> layers["act"]
        ReLU()
    """

    def __init__(self, modules=None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.register_module(key, module)

    def __delitem__(self, key: str) -> None:
        self._modules.__delitem__(key)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Take all modules out."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Take a module out and return it."""
        return self._modules.pop(key)

    def keys(self):
        """The names."""
        return self._modules.keys()

    def items(self):
        """The (name, module) pairs."""
        return self._modules.items()

    def values(self):
        """The modules."""
        return self._modules.values()

    def update(self, modules) -> None:
        """Add or replace modules.

        Raises:
            TypeError: neither a mapping nor pairs.
            ValueError: an element that is no pair.
        """
        for name, module in _pairs("ModuleDict", modules):
            self[name] = module


def _described(key, value, kind) -> str:
    """One line of the repr of a container of parameters."""
    if not isinstance(value, Tensor):
        return f"  ({key}): Object of type: {type(value).__name__}"
    name = "Parameter" if isinstance(value, Parameter) else "Tensor"
    size = "x".join(map(str, value.size()))
    at = "" if value.device.type in ("cpu", "meta") else f" ({value.device})"
    return f"  ({key}): {name} containing: [{kind(value)} of size {size}{at}]"


def _as_parameter(value):
    plain = isinstance(value, Tensor) and not isinstance(value, Parameter)
    return Parameter(value) if plain else value


class ParameterList(Module):
    """A list of parameters, which registers them; tensors become parameters.

    Args:
        values: parameters, tensors or anything else to begin with.

    Example:
        >>> len(taeda.nn.ParameterList([taeda.ones(2), taeda.zeros(1)]))
        2
    """

    def __init__(self, values=None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def __getitem__(self, idx):
        if isinstance(idx, slice):
            return type(self)([self[i] for i in range(len(self))[idx]])
        return getattr(self, str(_place(idx, len(self))))

    def __setitem__(self, idx: int, param) -> None:
        setattr(self, str(_place(idx, len(self))), _as_parameter(param))

    def __len__(self) -> int:
        return self._size

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __iadd__(self, parameters):
        return self.extend(parameters)

    def __dir__(self):
        return [name for name in super().__dir__() if not name.isdigit()]

    def append(self, value):
        """Put a value at the end."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values):
        """Put values at the end.

        Raises:
            TypeError: `values` is not iterable, or is a tensor.
        """
        if not _is_iterable(values) or isinstance(values, Tensor):
            raise TypeError(
                "ParameterList.extend should be called with an iterable, but got "
                f"{type(values).__name__}"
            )
        for value in list(values):
            self.append(value)
        return self

    def extra_repr(self) -> str:
        items = enumerate(self)
        return "\n".join(_described(i, v, lambda t: t.dtype) for i, v in items)

    def __call__(self, *args, **kwargs):
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """A dictionary of parameters, which registers them; tensors become parameters.

    Args:
        parameters: a mapping from names to values, or pairs. The keys of a plain
            mapping are taken in sorted order.

    Example:
        >>> list(taeda.nn.ParameterDict({"w": taeda.ones(2)}).keys())
        ['w']
    """

    def __init__(self, parameters=None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}  # in order; a set would lose it
        self.update({} if parameters is None else parameters)

    def _key_to_attr(self, key) -> str:
        if not isinstance(key, str):
            raise TypeError(
                "Index given to ParameterDict cannot be used as a key as it is not a "
                f"string (type is '{type(key).__name__}')"
            )
        return key

    def __getitem__(self, key: str):
        return getattr(self, self._key_to_attr(key))

    def __setitem__(self, key: str, value) -> None:
        name = self._key_to_attr(key)
        self._keys[key] = None
        setattr(self, name, _as_parameter(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, self._key_to_attr(key))

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self):
        return iter(self._keys)

    def __reversed__(self):
        return reversed(self._keys)

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def copy(self) -> ParameterDict:
        """Another dictionary with the same parameters."""
        return ParameterDict(OrderedDict(self.items()))

    def setdefault(self, key: str, default=None):
        """The value of `key`, first set to `default` where there is none."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Take all values out."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str):
        """Take a value out and return it."""
        value = self[key]
        del self[key]
        return value

    def popitem(self):
        """Take the last (key, value) out and return it."""
        if not self._keys:
            raise KeyError("popitem(): ParameterDict is empty")
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def get(self, key: str, default=None):
        """The value of `key`, or `default`."""
        return self[key] if key in self else default

    def fromkeys(self, keys, default=None) -> ParameterDict:
        """A new dictionary of `keys`, all with the value `default`."""
        return ParameterDict([(key, default) for key in keys])

    def keys(self):
        """The keys."""
        return self._keys.keys()

    def items(self):
        """The (key, value) pairs."""
        return ((key, self[key]) for key in self._keys)

    def values(self):
        """The values."""
        return (self[key] for key in self._keys)

    def update(self, parameters) -> None:
        """Add or replace values.

        Raises:
            TypeError: neither a mapping nor pairs.
            ValueError: an element that is no pair.
        """
        pairs = _pairs("ParameterDict", parameters)
        ordered = (OrderedDict, ParameterDict)
        if hasattr(parameters, "items") and not isinstance(parameters, ordered):
            pairs.sort(key=lambda pair: pair[0])
        for key, value in pairs:
            self[key] = value

    def extra_repr(self) -> str:
        items = self.items()
        return "\n".join(_described(key, value, typename) for key, value in items)

    def __call__(self, input):
        raise RuntimeError("ParameterDict should not be called.")

    def __or__(self, other: ParameterDict) -> ParameterDict:
        return self.copy().__ior__(other)

    def __ror__(self, other: ParameterDict) -> ParameterDict:
        return other.copy().__ior__(self)

    def __ior__(self, other: ParameterDict) -> ParameterDict:
        self.update(other)
        return self
