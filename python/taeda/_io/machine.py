"""A pickle machine that builds data and runs nothing.

Opcodes as in the standard library's pickletools (protocols 2 to 5). A global name is
looked up in `names`; only functions from there are called, with checked arguments.
What the file makes the machine do is paid out of an allowance (`limits.py`): lengths
are checked against the bytes that are left, calls that copy pay for it, and pickles
large enough to matter run on a table of steps that count (`watch.py`).
"""

from __future__ import annotations

import gc
from _pickle import UnpicklingError
from collections import Counter, OrderedDict
from itertools import repeat
from struct import Struct
from struct import error as StructError

from taeda._io import copies, names
from taeda._io.keys import Keys
from taeda._io.limits import ELEMENT, Allowance, short

_INT32, _UINT16 = Struct("<i"), Struct("<H")
_UINT32, _UINT64 = Struct("<I"), Struct("<Q")
_DOUBLE = Struct(">d")
_MAX_PROTOCOL = 5
_MAPPINGS = (dict, OrderedDict, Counter)
# Larger integers take long to hash and to print. LONG1 goes up to 255 bytes.
_MAX_INTEGER = 1024
# No opcode makes more than this many bytes for each of its own.
_DENSEST = 512
_STEP = 4 * ELEMENT
# Bytes from which the collector of cycles would be felt.
_LONG = 100_000
# A hash of a tuple nested deeper than this may overrun the stack.
MAX_DEPTH = 30_000
_ABSENT = object()


class Machine:
    """Runs one pickle after another out of `data`.

    Args:
        data: bytes-like. persistent_load: called with each persistent id.
        encoding: of Python 2's strings; "bytes" leaves them as they are.
        resolve: (module, name) -> (value, call). allowance: what the file may cost.
    """

    def __init__(
        self,
        data,
        persistent_load,
        encoding="utf-8",
        resolve=names.resolve,
        allowance: Allowance | None = None,
    ) -> None:
        self.data, self.at, self.end = bytes(data), 0, len(data)
        self.persistent_load, self.encoding = persistent_load, encoding
        self.resolve = resolve
        self.allowance = allowance or Allowance(len(data))
        self.keys = Keys(self.allowance)
        self.table = self._steps()

    def _steps(self) -> list:
        """The plain table for pickles that can neither fill the memory nor nest."""
        worst, allowance = _DENSEST * self.end, self.allowance
        # A compressed pickle may be a thousand times its file: that is mostly time.
        allowance.spend(_STEP * max(0, self.end - allowance.size))
        tuples = sum(map(self.data.count, (b"t", b"\x85", b"\x86", b"\x87")))
        if worst + 2 * allowance.size <= allowance.left and tuples <= MAX_DEPTH:
            allowance.spend(worst)
            return STEPS
        from taeda._io.watch import watched_steps

        return watched_steps()

    def run(self):
        """The object of the next pickle; `at` is then just behind it.

        What a large pickle makes lives: looking through it for cycles, again and again
        while it grows, would take most of the time.
        """
        collects = self.end > _LONG and gc.isenabled()
        if collects:
            gc.disable()
        try:
            return self._run()
        finally:
            if collects:
                gc.enable()

    def _run(self):
        self.stack: list = []
        self.marks: list = []
        self.memo: list = []
        self.calls: dict = {}  # id of a value on the stack -> its call
        self.depths: dict = {}  # id of a tuple in `held` -> how deep it is nested
        self.held: list = []
        data, end, table = self.data, self.end, self.table
        try:
            while self.at < end:
                code = data[self.at]
                self.at += 1
                if code == 0x2E:  # STOP
                    return self.stack.pop()
                step = table[code]
                if step is None:
                    raise UnpicklingError(f"Unsupported operand {code}")
                step(self)
        except (IndexError, KeyError, StructError, UnicodeDecodeError) as error:
            raise UnpicklingError(
                f"the pickle is damaged at byte {self.at}: {type(error).__name__} "
                f"{error}"
            ) from error
        raise UnpicklingError(f"the pickle ends at byte {end} without STOP")

    # Bytes.
    def take(self, count: int) -> bytes:
        start = self.at
        if count > self.end - start:
            raise UnpicklingError(
                f"the pickle is truncated: {count} bytes at {start} of {self.end}"
            )
        self.at = start + count
        return self.data[start : start + count]

    def byte(self) -> int:
        value = self.data[self.at]
        self.at += 1
        return value

    def number(self, kind: Struct):
        (value,) = kind.unpack_from(self.data, self.at)
        self.at += kind.size
        return value

    def line(self) -> str:
        stop = self.data.find(b"\n", self.at, self.at + 1024)
        if stop < 0:
            raise UnpicklingError(f"no end of line after byte {self.at}")
        text = self.data[self.at : stop]
        self.at = stop + 1
        return text.decode()

    def pop_mark(self) -> list:
        items = self.stack
        self.stack = self.marks.pop()
        return items

    # Opcodes.
    def proto(self) -> None:
        version = self.byte()
        if version > _MAX_PROTOCOL:
            raise UnpicklingError(f"unsupported pickle protocol: {version}")

    def frame(self) -> None:
        if self.number(_UINT64) > self.end - self.at:
            raise UnpicklingError("a frame ends outside the pickle")

    def mark(self) -> None:
        self.marks.append(self.stack)
        self.stack = []

    def pop(self) -> None:
        if self.stack:
            self.stack.pop()
        else:
            self.pop_mark()

    def duplicate(self) -> None:
        self.stack.append(self.stack[-1])

    def tuple_of_mark(self) -> None:
        items = self.pop_mark()
        self.stack.append(tuple(items))

    def tuple1(self) -> None:
        self.stack[-1] = (self.stack[-1],)

    def tuple2(self) -> None:
        second = self.stack.pop()
        self.stack[-1] = (self.stack[-1], second)

    def tuple3(self) -> None:
        third = self.stack.pop()
        second = self.stack.pop()
        self.stack[-1] = (self.stack[-1], second, third)

    def append(self) -> None:
        item = self.stack.pop()
        self._list().append(item)

    def appends(self) -> None:
        items = self.pop_mark()
        self._list().extend(items)

    def _list(self) -> list:
        target = self.stack[-1]
        if type(target) is not list:
            raise UnpicklingError(
                f"Can only append to lists, but got {short(type(target))}"
            )
        return target

    def add_items(self) -> None:
        items = self.pop_mark()
        target = self.stack[-1]
        if type(target) is not set:
            raise UnpicklingError(f"Can only add to sets, but got {short(target)}")
        self.hashed(target.update, items, items)

    def set_item(self) -> None:
        value = self.stack.pop()
        key = self.stack.pop()
        self._store([key, value], "SETITEM")

    def set_items(self) -> None:
        self._store(self.pop_mark(), "SETITEMS")

    def _store(self, items: list, name: str) -> None:
        target = self.stack[-1]
        kind = type(target)
        if kind not in _MAPPINGS:
            raise UnpicklingError(
                f"Can only {name} for dict, collections.OrderedDict, "
                f"collections.Counter, but got {short(kind)}"
            )
        if len(items) % 2:
            raise UnpicklingError("a key without a value")
        keys = items[::2]
        # A Counter's own update adds to what is there.
        update = OrderedDict.update if kind is OrderedDict else dict.update
        self.hashed(update, keys, target, zip(keys, items[1::2], strict=True))

    def hashed(self, store, keys, *args):
        self.keys.check(keys)
        try:
            return store(*args)
        except TypeError as error:
            raise UnpicklingError(f"the pickle is damaged: {error}") from error

    def get(self, index: int) -> None:
        value = self.memo[index]
        if value is _ABSENT:
            raise UnpicklingError(f"nothing is remembered under {index}")
        self.stack.append(value)

    def put(self, index: int) -> None:
        memo, value = self.memo, self.stack[-1]
        gap = index - len(memo)
        if gap < 0:
            memo[index] = value
            return
        if gap:  # Python 2 counted from 1, and optimised pickles leave some out
            self.allowance.spend(9 * gap)
            memo.extend(repeat(_ABSENT, gap))
        memo.append(value)

    def text(self, count: int) -> None:
        self.stack.append(str(self.take(count), "utf-8", "surrogatepass"))

    def old_string(self, count: int) -> None:
        if count < 0:
            raise UnpicklingError("a string of negative length")
        data = self.take(count)
        if self.encoding != "bytes":
            data = data.decode(self.encoding)
        self.stack.append(data)

    def long(self, count: int) -> None:
        if not 0 <= count <= _MAX_INTEGER:
            raise UnpicklingError(
                f"an integer of {count} bytes; at most {_MAX_INTEGER} are read"
            )
        value = int.from_bytes(self.take(count), "little", signed=True)
        self.stack.append(value)

    def find_global(self, module: str, name: str) -> None:
        value, call = self.resolve(module, name)
        if call is not None:
            self.calls[id(value)] = call
        self.stack.append(value)

    def global_lines(self) -> None:
        module = self.line()
        self.find_global(module, self.line())

    def global_stack(self) -> None:
        name = self.stack.pop()
        module = self.stack.pop()
        if type(name) is not str or type(module) is not str:
            raise UnpicklingError("STACK_GLOBAL requires two strings")
        self.find_global(module, name)

    def reduce(self) -> None:
        args = self.stack.pop()
        function = self.stack[-1]
        call = self.calls.get(id(function)) or names.trusted_call(function)
        if call is None:
            raise UnpicklingError(
                "Trying to call reduce for unrecognized function "
                f"{self._function(function)}"
            )
        self.stack[-1] = self._call(call, args)

    def new_object(self) -> None:
        args = self.stack.pop()
        kind = self.stack[-1]
        call = self.calls.get(id(kind)) or names.trusted_call(kind)
        if call is None or not isinstance(kind, type):
            raise UnpicklingError(
                "Can only create new object for nn.Parameter or classes allowlisted "
                f"via `add_safe_globals` but got {short(kind)}"
            )
        if names.trusted_class(kind) and type(args) is tuple:
            call, args = kind.__new__, (kind, *args)
        self.stack[-1] = self._call(call, args)

    @staticmethod
    def _function(value) -> str:
        """What was to be called, a method with its class."""
        name = getattr(value, "__qualname__", None) if callable(value) else None
        if type(name) is not str:
            return short(value)
        owner = getattr(value, "__self__", None)
        of = f" of {owner.__module__}.{owner.__name__}" if type(owner) is type else ""
        return ascii(f"{name[:200]}{of[:200]}")[1:-1]

    def _call(self, call, args):
        if type(args) is not tuple:
            raise UnpicklingError(f"arguments are {short(args)}, not a tuple")
        copy = copies.BY_ID.get(id(call)) if args else None
        try:
            return call(*args) if copy is None else copy(self, *args)
        except (TypeError, ValueError, OverflowError, AttributeError) as error:
            name = getattr(call, "__name__", type(call).__name__)
            raise UnpicklingError(
                f"the checkpoint is damaged: {name}: {str(error)[:200]}"
            ) from error

    def build(self) -> None:
        state = self.stack.pop()
        target = self.stack[-1]
        if type(target) in (OrderedDict, Counter):
            if type(state) is not dict or {*map(type, state)} - {str}:
                raise UnpicklingError(
                    "the state of a dictionary is no dictionary of names"
                )
            self.allowance.spend(200 * len(state))
            target.__dict__.update(state)
        elif names.trusted_class(type(target)):
            self._call(_set_state, (target, state))
        else:
            raise UnpicklingError(
                "Can only build OrderedDict or types allowlisted via "
                f"`add_safe_globals`, but got {short(type(target))}"
            )

    def persistent(self) -> None:
        key = self.stack.pop()
        self.stack.append(self.persistent_load(key))


def _set_state(target, state) -> None:
    """What the class, which the user trusts, does with its state."""
    if hasattr(target, "__setstate__"):
        target.__setstate__(state)
        return
    slots = None
    if isinstance(state, tuple) and len(state) == 2:
        state, slots = state
    if state:
        target.__dict__.update(state)
    for name, value in (slots or {}).items():
        setattr(target, name, value)


def _push(value):
    return lambda m: m.stack.append(value)


def _operations() -> dict:
    new = {b"}": dict, b"]": list, b"\x8f": set}
    table = {
        code: (lambda m, k=kind: m.stack.append(k())) for code, kind in new.items()
    }
    constants = {b"N": None, b"\x88": True, b"\x89": False, b")": ()}
    table |= {code: _push(value) for code, value in constants.items()}
    table |= {
        b"\x80": Machine.proto,
        b"\x95": Machine.frame,
        b"(": Machine.mark,
        b"0": Machine.pop,
        b"1": lambda m: m.pop_mark() and None,
        b"2": Machine.duplicate,
        b"t": Machine.tuple_of_mark,
        b"\x85": Machine.tuple1,
        b"\x86": Machine.tuple2,
        b"\x87": Machine.tuple3,
        b"a": Machine.append,
        b"e": Machine.appends,
        b"\x90": Machine.add_items,
        b"s": Machine.set_item,
        b"u": Machine.set_items,
        b"h": lambda m: m.get(m.byte()),
        b"j": lambda m: m.get(m.number(_UINT32)),
        b"q": lambda m: m.put(m.byte()),
        b"r": lambda m: m.put(m.number(_UINT32)),
        b"\x94": lambda m: m.put(len(m.memo)),
        b"K": lambda m: m.stack.append(m.byte()),
        b"M": lambda m: m.stack.append(m.number(_UINT16)),
        b"J": lambda m: m.stack.append(m.number(_INT32)),
        b"G": lambda m: m.stack.append(m.number(_DOUBLE)),
        b"\x8a": lambda m: m.long(m.byte()),
        b"\x8b": lambda m: m.long(m.number(_INT32)),
        b"\x8c": lambda m: m.text(m.byte()),
        b"X": lambda m: m.text(m.number(_UINT32)),
        b"\x8d": lambda m: m.text(m.number(_UINT64)),
        b"U": lambda m: m.old_string(m.byte()),
        b"T": lambda m: m.old_string(m.number(_INT32)),
        b"C": lambda m: m.stack.append(m.take(m.byte())),
        b"B": lambda m: m.stack.append(m.take(m.number(_UINT32))),
        b"\x8e": lambda m: m.stack.append(m.take(m.number(_UINT64))),
        b"\x96": lambda m: m.stack.append(bytearray(m.take(m.number(_UINT64)))),
        b"c": Machine.global_lines,
        b"\x93": Machine.global_stack,
        b"R": Machine.reduce,
        b"\x81": Machine.new_object,
        b"b": Machine.build,
        b"Q": Machine.persistent,
    }
    return table


STEPS: list = [None] * 256
for _code, _step in _operations().items():
    STEPS[_code[0]] = _step
