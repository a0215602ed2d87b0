"""Which values may be keys of a dictionary or members of a set.

CPython hashes a tuple by recursion, without a limit of depth and without remembering
the result, and its hashes of numbers and tuples can be made to collide. So keys are
looked at before they are hashed.
"""

from __future__ import annotations

from _pickle import UnpicklingError

import taeda
from taeda._io import names
from taeda._io.limits import ELEMENT, Allowance

_MAX_DEPTH = 16
_MAX_ELEMENTS = 10_000
# sys.hash_info.modulus: integers below it are their own hash.
_MODULUS = 2**61 - 1
# Their hashes are secret (text), few, or cannot collide more than some dozen times.
_PLAIN = frozenset((str, bytes, bool, float, type(None)))


def _leaves() -> frozenset:
    """What else may be a key, or part of one."""
    own = taeda.dtype, taeda.device, taeda.layout, taeda.Tensor, taeda.nn.Parameter
    return _PLAIN | {int, complex, *own}


class Keys:
    """Checks the keys of one load; `allowance` bounds hashing and comparing."""

    def __init__(self, allowance: Allowance) -> None:
        self.allowance = allowance
        self.leaves = _leaves()
        self.same_hash: dict[int, list] = {}

    def check(self, keys) -> None:
        """Refuse what must not be hashed.

        Raises:
            UnpicklingError: a type that is no key, or too deep, large or many.
        """
        for key in keys:
            kind = type(key)
            if kind in _PLAIN or (kind is int and -_MODULUS < key < _MODULUS):
                continue
            elements = self._elements(key, 0)
            self.allowance.spend(ELEMENT * elements)
            self._compare(key, elements)

    def _elements(self, key, depth: int) -> int:
        """How many values hashing looks at."""
        kind = type(key)
        if kind is taeda.Size:
            count = 1 + len(key)
        elif kind is tuple:
            if depth == _MAX_DEPTH:
                raise UnpicklingError(f"a key is nested deeper than {_MAX_DEPTH} times")
            count = 1
            for item in key:
                count += self._elements(item, depth + 1)
                if count > _MAX_ELEMENTS:
                    break
        elif kind in self.leaves or isinstance(key, type) or names.trusted_class(kind):
            count = 1
        else:
            raise UnpicklingError(
                f"a value of type {kind.__name__[:60]} is no key of a dictionary"
            )
        if count > _MAX_ELEMENTS:
            raise UnpicklingError(f"a key has more than {_MAX_ELEMENTS} elements")
        return count

    def _compare(self, key, elements: int) -> None:
        """Pay for the comparisons with keys of the same hash."""
        same = self.same_hash.setdefault(hash(key), [])
        self.allowance.spend(ELEMENT * (4 + elements * len(same)))
        if not any(key is other for other in same) and key not in same:
            same.append(key)
