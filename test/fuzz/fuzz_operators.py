"""Any arguments of a schema's types give a result or a documented error.

Calls `taeda.ops.aten` with tensors of every dtype, size (0 among them) and stride, and
numbers up to the ends of int64. Crashes and the sanitizer's findings end the process.
"""

from __future__ import annotations

import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

import taeda
from harness import main

from tools.codegen.records import load_records
from tools.codegen.schema_types import Argument, Schema, Type

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENTED = (RuntimeError, ValueError, TypeError, IndexError, OverflowError)
# Sizes between these and the small ones would be allocated and filled: of a number
# beyond 32 bits that is no size there is the negative alone. Ranges, whose ends are
# numbers and not integers, would be filled from there too.
EXTREME_NUMBERS = (2**45, 2**55, 2**62, 2**63 - 1, -(2**63), -(2**40))
EXTREME = (*EXTREME_NUMBERS, -(2**31) - 1)
FLOATS = (0.0, 1.0, -1.0, 0.5, 1e-30, 1e30, float("inf"), float("-inf"), float("nan"))
WORDS = ("none", "mean", "sum", "floor", "trunc", "tanh", "linear", "reflect", "ij", "")
DTYPES = list(
    {str(x): x for x in vars(taeda).values() if isinstance(x, taeda.dtype)}.values()
)
COMMON = (taeda.float32, taeda.float64, taeda.int64, taeda.bool, taeda.bfloat16)
FORMATS = (
    taeda.contiguous_format,
    taeda.preserve_format,
    taeda.channels_last,
    taeda.channels_last_3d,
)


def _schemas() -> list[Schema]:
    records = load_records(ROOT / "aten" / "ops")
    overloads = [overload for record in records for overload in record.overloads]
    schemas = [schema for o in overloads for schema in o.schemas.values()]
    # Some have a Python function alone.
    return [s for s in schemas if hasattr(taeda.ops.aten, s.base)]


SCHEMAS = _schemas()


class Arguments:
    """Random arguments that share one shape and dtype more often than not."""

    def __init__(self, source: random.Random) -> None:
        self.source = source
        self.shape = self._shape()
        self.dtype = source.choice(COMMON if source.random() < 0.7 else DTYPES)

    def _shape(self) -> list[int]:
        sizes = (0, 1, 1, 2, 3, 4, 7)
        return [self.source.choice(sizes) for _ in range(self.source.randrange(6))]

    def _filled(self, shape: list[int], dtype: taeda.dtype) -> taeda.Tensor:
        count = 1
        for size in shape:
            count *= size
        kind = self.source.randrange(3)
        if kind == 0:
            values = [self.source.randint(-3, 5) for _ in range(count)]
        elif kind == 1:
            values = [self.source.choice(FLOATS) for _ in range(count)]
        else:
            values = [self.source.gauss(0, 2) for _ in range(count)]
        return taeda.tensor(values, dtype=taeda.float64).to(dtype).reshape(shape)

    def tensor(self) -> taeda.Tensor:
        """Same shape, a broadcastable one, or any; contiguous, strided or expanded."""
        draw = self.source.random
        shape = list(self.shape)
        if draw() < 0.2:
            shape = [1 if draw() < 0.4 else size for size in shape]
        elif draw() < 0.2:
            shape = self._shape()
        dtype = self.dtype if draw() < 0.7 else self.source.choice(DTYPES)
        kind = self.source.randrange(5)
        if kind == 1 and len(shape) > 1:
            return self._filled(shape[::-1], dtype).permute(
                *reversed(range(len(shape)))
            )
        if kind == 2 and shape:
            wide = [*shape[:-1], 2 * shape[-1]]
            return self._filled(wide, dtype)[..., ::2]
        if kind == 3 and shape:
            return self._filled([1, *shape[1:]], dtype).expand(shape)
        return self._filled(shape, dtype)

    def integer(self, extreme: tuple[int, ...] = EXTREME) -> int:
        """Small, or at the ends of the range."""
        if self.source.random() < 0.03:
            return self.source.choice(extreme)
        return self.source.randint(-2, 5)

    def number(self) -> bool | int | float | complex:
        kind = self.source.randrange(8)
        if kind == 0:
            return complex(self.source.choice(FLOATS), self.source.choice(FLOATS))
        if kind == 1:
            return self.source.random() < 0.5
        return self.integer(EXTREME_NUMBERS) if kind < 5 else self.source.choice(FLOATS)

    def atom(self, name: str) -> object:
        match name:
            case "Tensor":
                return self.tensor()
            case "Scalar":
                return self.number()
            case "int" | "SymInt":
                return self.integer()
            case "float":
                return self.source.choice(FLOATS)
            case "bool":
                return self.source.random() < 0.5
            case "str":
                return self.source.choice(WORDS)
            case "ScalarType":
                return self.source.choice(DTYPES)
            case "MemoryFormat":
                return self.source.choice(FORMATS)
            case "Device":
                return taeda.device(self.source.choice(("cpu", "meta")))
            case "Layout":
                return taeda.strided
            case "Generator":
                return taeda.Generator()
        raise AssertionError(f"no rule for a {name}")

    def value(self, kind: Type) -> object:
        if kind.is_optional and (
            kind.base == "Generator" or self.source.random() < 0.5
        ):
            return None
        if not kind.is_list:
            return self.atom(kind.base)
        length = self.source.randrange(4)
        if kind.list_size and self.source.random() < 0.9:
            length = kind.list_size
        inner = kind.params[0].params[0] if kind.is_optional else kind.params[0]
        return [self.value(inner) for _ in range(length)]

    def degree(self, kind: Type) -> object:
        """A polynomial takes as many steps as its degree says, here and in PyTorch."""
        while True:
            n = self.value(kind)
            if isinstance(n, taeda.Tensor):
                # -1 becomes four billion there.
                large = n.dtype in (taeda.uint32, taeda.uint64)
            else:
                large = not isinstance(n, complex) and n > 1000
            if not large:
                return n

    def argument(self, argument: Argument) -> object:
        if argument.has_default and self.source.random() < 0.4:
            return argument.default
        return self.value(argument.type)


def attempt(source: random.Random) -> bool:
    """One call; True when it gave a result."""
    schema = source.choice(SCHEMAS)
    arguments = Arguments(source)
    packet = getattr(taeda.ops.aten, schema.base)
    function = getattr(packet, schema.overload or "default")
    positional, named = [], {}
    try:
        for each in schema.arguments:
            if each.name == "n" and "polynomial" in schema.base:
                value = arguments.degree(each.type)
            else:
                value = arguments.argument(each)
            if each.kwarg_only:
                named[each.name] = value
            else:
                positional.append(value)
        with taeda.no_grad():
            result = function(*positional, **named)
        for each in result if isinstance(result, (list, tuple)) else (result,):
            if isinstance(each, taeda.Tensor) and each.device.type == "cpu":
                each.to(taeda.complex128).sum().item()
    except DOCUMENTED as error:
        if "INTERNAL" in str(error):
            raise AssertionError(f"{schema.name}: {error}") from error
        return False
    return True


if __name__ == "__main__":
    sys.exit(main("fuzz_operators", attempt))
