"""Which global names a pickle mentions, without building anything."""

from __future__ import annotations

from _pickle import UnpicklingError
from pickletools import genops


class _Memo:
    """Follows texts, the only values that STACK_GLOBAL uses."""

    def __init__(self) -> None:
        self.last: list = [None, None]  # what was pushed last; None: no text
        self.kept: dict = {}

    def push(self, value) -> None:
        self.last = [self.last[1], value]

    def step(self, name: str, argument) -> None:
        if "UNICODE" in name:
            self.push(argument)
        elif name == "MEMOIZE":
            self.kept[len(self.kept)] = self.last[1]
        elif name in ("BINPUT", "LONG_BINPUT"):
            self.kept[argument] = self.last[1]
        elif name in ("BINGET", "LONG_BINGET"):
            self.push(self.kept.get(argument))
        elif name not in ("PROTO", "FRAME"):
            self.push(None)


def global_names(data: bytes) -> list[tuple[str, str]]:
    """The (module, name) pairs in a pickle, in order.

    Raises:
        UnpicklingError: the pickle is damaged, or hides a name.
    """
    found, memo = [], _Memo()
    try:
        for code, argument, at in genops(data):
            if code.name in ("GLOBAL", "INST"):
                found.append(tuple(argument.split(" ", 1)))
            elif code.name == "STACK_GLOBAL":
                if None in memo.last:
                    raise UnpicklingError(f"a name at byte {at} that is no text")
                found.append(tuple(memo.last))
            memo.step(code.name, argument)
    except (ValueError, IndexError, KeyError) as error:
        raise UnpicklingError(f"the pickle is damaged: {str(error)[:200]}") from error
    return found
