"""Weak references to tensors and dicts of them, by identity."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, MutableMapping
from typing import Any

__all__ = [
    "TensorWeakRef",
    "WeakIdKeyDictionary",
    "WeakIdRef",
    "WeakTensorKeyDictionary",
]


class WeakIdRef(weakref.ref):
    """A reference that is equal to others of the same object, whatever the object's own
    `==` says: tensors compare element by element."""

    __slots__ = ("_id",)

    def __init__(self, key, callback=None) -> None:
        super().__init__(key, callback)
        self._id = id(key)

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other) -> bool:
        mine, theirs = self(), other()
        if mine is not None and theirs is not None:
            return mine is theirs
        return self is other

    def __ne__(self, other) -> bool:  # the base class has one of its own
        return not self == other


class WeakIdKeyDictionary(MutableMapping):
    """A dict whose keys are objects by identity; an entry goes when its key dies.

    Args:
        dict: the first entries.
        ref_type: the class of the references.
    """

    def __init__(self, dict=None, ref_type: type = WeakIdRef) -> None:
        self.data: Any = {}
        self.ref_type = ref_type
        data = self.data
        # Of the dict, not of this object, which would never die.
        self._forget = lambda key: data.pop(key, None)
        if dict is not None:
            self.update(dict)

    def __getitem__(self, key):
        return self.data[self.ref_type(key)]

    def __setitem__(self, key, value) -> None:
        self.data[self.ref_type(key, self._forget)] = value

    def __delitem__(self, key) -> None:
        del self.data[self.ref_type(key)]

    def __contains__(self, key) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:  # no weak reference to it can be made
            return False

    def __iter__(self) -> Iterator:
        # Keys may die while somebody iterates.
        for reference in list(self.data):
            key = reference()
            if key is not None:
                yield key

    def __len__(self) -> int:
        return len(self.data)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {id(self):#x}>"

    def keyrefs(self) -> list:
        """The references."""
        return list(self.data)

    def copy(self):
        """Another one with the same entries."""
        return type(self)(self, self.ref_type)

    __copy__ = copy

    def __deepcopy__(self, memo):
        from copy import deepcopy

        made = type(self)(ref_type=self.ref_type)
        for key, value in self.items():
            made[key] = deepcopy(value, memo)
        return made

    def __or__(self, other):
        made = self.copy()
        made.update(other)
        return made

    def __ior__(self, other):
        self.update(other)
        return self

    def __eq__(self, other) -> bool:
        if not isinstance(other, WeakIdKeyDictionary):
            return NotImplemented
        entries = [{id(k): v for k, v in table.items()} for table in (self, other)]
        return entries[0] == entries[1]

    __hash__ = None


WeakTensorKeyDictionary = WeakIdKeyDictionary


class TensorWeakRef:
    """A weak reference to a tensor.

    Args:
        tensor: a Tensor.

    Attributes:
        ref: the reference that Python keeps.
    """

    __slots__ = ("ref",)

    def __init__(self, tensor) -> None:
        from taeda import Tensor

        if not isinstance(tensor, Tensor):
            raise AssertionError(f"expected Tensor, got {type(tensor)}")
        self.ref = weakref.ref(tensor)

    def __call__(self):
        """The tensor; None once it is gone."""
        return self.ref()
