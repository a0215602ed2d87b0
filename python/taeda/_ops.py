"""`taeda.ops`: operators by namespace, name and overload.

`taeda.ops.aten.add` is a packet of overloads, `taeda.ops.aten.add.Tensor` one of them.
"""

from __future__ import annotations

from functools import cached_property

import taeda
from taeda import _C
from taeda._schema import Mismatch, Schema

# Of operators that `library` declared: tags by name and overload. Each entry is
# written by one dict operation.
user_tags: dict[tuple[str, str], list] = {}


class _Doc:
    """`__doc__` of a class, and of its instances that of their operator's record."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __get__(self, instance, owner=None) -> str:
        if instance is None:
            return self._text
        from taeda._record_docs import text

        return text(getattr(instance, "_packet", instance)._native_name)


class OpOverload:
    __doc__ = _Doc("One overload; calling it dispatches like the public function does.")

    # Of a custom operator: its function is not for tensors without data.
    needs_fake = False
    # Its rule of vmap, where a user gave one.
    vmap_rule = None

    def __init__(self, packet: OpOverloadPacket, overload: str, schema: str) -> None:
        self._packet = packet
        self._overloadname = overload or "default"
        self._opname = packet.__name__
        self._native = (packet._native_name, overload)
        self._schema = Schema(schema, packet._namespace)
        self._entry = _C._op_entry(*self._native)
        self.__name__ = f"{packet.__name__}.{self._overloadname}"
        self.__qualname__ = self.__name__
        self.__module__ = packet.__module__

    @property
    def overloadpacket(self) -> OpOverloadPacket:
        """The packet of all overloads of the name."""
        return self._packet

    @property
    def namespace(self) -> str:
        """The part before `::`."""
        return self._packet._namespace

    def name(self) -> str:
        """`aten::add.Tensor`."""
        qualname = self._packet._qualified_op_name
        return f"{qualname}.{self._native[1]}" if self._native[1] else qualname

    @cached_property
    def record(self):
        """What the operator's record says, as a tree of namespaces and lists.

        Attributes: name, schema, form ("functional", "inplace", "out"), family, tags,
        differentiable, arguments and results (name, type, default, alias, ...), dtypes
        (accepts, computes, promotes, result), autocast (cpu, cuda), axes, expressions
        (role, kind, text, `choice` where a formula differs by parameters, `accumulator`
        of a part of a reduction or scan), element (name, family: what an operator of
        lists calls for each entry).

        Example:
            >>> taeda.ops.aten.exp.default.record.expressions[0].text
            'exp(self)'
        """
        from json import loads
        from types import SimpleNamespace

        return loads(
            _C._op_record(*self._native),
            object_hook=lambda fields: SimpleNamespace(**fields),
        )

    @cached_property
    def tags(self) -> list:
        """The `taeda.Tag`s that the operator has."""
        from taeda._tags import Tag

        if self._native in user_tags:
            return list(user_tags[self._native])
        return [Tag[name] for name in self.record.tags]

    def __call__(self, /, *args, **kwargs):
        if self.vmap_rule is not None and _C._functorch.in_transform():
            from taeda._functorch.operator_rules import call_with_rule

            return call_with_rule(self, self.vmap_rule, args, kwargs, self._call)
        return self._call(*args, **kwargs)

    def _call(self, /, *args, **kwargs):
        values = self._schema.bind(self.name(), args, kwargs)
        try:
            return _C._op_call(self._entry, values)
        except TypeError:
            # What is no tensor may stand for one: a proxy of a trace.
            others = _overriding((*args, *kwargs.values()))
            if not others:
                raise
        return _C._handle_torch_function(self, others, *args, **kwargs)

    def __reduce__(self):
        return overload_of, (self._packet._native_name, self._native[1])

    def decompose(self, /, *args, **kwargs):
        """The result computed by other operators; NotImplemented where no record says
        how. Composites and operators that records define by others (`means`) have it.
        """
        values = self._schema.bind(self.name(), args, kwargs)
        return _C._op_decompose(self._entry, values)

    @cached_property
    def decomposes(self) -> bool:
        """Whether `decompose` gives a result."""
        return _C._op_decomposes(*self._native)

    @cached_property
    def is_view(self) -> bool:
        """Whether a result shares an argument's memory that is not written."""
        shared = [r.alias_info for r in self._schema.returns if r.alias_info]
        return any(not info.is_write for info in shared)

    def has_kernel_for_dispatch_key(self, key) -> bool:
        """Whether a kernel is registered at the key."""
        return _C._op_has_kernel(*self._native, str(key).split(".")[-1])

    def __repr__(self) -> str:
        return (
            f"<OpOverload(op='{self.namespace}.{self._packet.__name__}', "
            f"overload='{self._overloadname}')>"
        )

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"

    def __hash__(self) -> int:
        return hash(self._native)


def _overriding(values) -> list:
    """What stands for tensors among arguments, in lists too, and is none itself."""
    found: list = []
    for a in values:
        if isinstance(a, (list, tuple)):
            found += _overriding(a)
        elif hasattr(type(a), "__torch_function__") and not isinstance(a, taeda.Tensor):
            found.append(a)
    return found


class OpOverloadPacket:
    __doc__ = _Doc("All overloads of a name; a call tries them in that order.")

    def __init__(self, namespace: str, name: str, overloads: dict[str, str]) -> None:
        self._namespace = namespace
        self._native_name = name if namespace == "aten" else f"{namespace}::{name}"
        self._qualified_op_name = f"{namespace}::{name}"
        self._texts = overloads
        self._made: dict[str, OpOverload] = {}
        self.__name__ = name
        self.__qualname__ = name
        # As in PyTorch, whose name the package has under as_torch.
        self.__module__ = f"{taeda.__name__}._ops.{namespace}"

    def overloads(self) -> list[str]:
        """Names of the overloads; the unnamed one is `default`."""
        return [name or "default" for name in self._texts]

    def __getattr__(self, key: str) -> OpOverload:
        name = "" if key == "default" else key
        if key.startswith("__") or name not in self._texts:
            raise AttributeError(
                f"The underlying op of '{self}' has no overload name '{key}'"
            )
        if name not in self._made:
            self._made[name] = OpOverload(self, name, self._texts[name])
        return self._made[name]

    def __call__(self, /, *args, **kwargs):
        others = _overriding((*args, *kwargs.values()))
        if others:
            return _C._handle_torch_function(self, others, *args, **kwargs)
        names = self.overloads()
        if len(names) == 1:
            return getattr(self, names[0])(*args, **kwargs)
        failures = []
        for name in names:
            try:
                return getattr(self, name)(*args, **kwargs)
            except (TypeError, Mismatch) as error:
                failures.append(str(error))
        raise TypeError(
            f"{self._qualified_op_name}(): no overload fits the arguments:\n"
            + "\n".join(failures)
        )

    def __deepcopy__(self, memo=None) -> OpOverloadPacket:
        return self

    def __reduce__(self):
        return _packet_of, (self._namespace, self.__name__)

    def __iter__(self):
        return iter(self.overloads())

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self._namespace}.{self.__name__}')>"

    def __str__(self) -> str:
        return f"{self._namespace}.{self.__name__}"


def _packet_of(namespace: str, name: str) -> OpOverloadPacket:
    """What a pickled packet is."""
    return getattr(getattr(taeda.ops, namespace), name)


def _placeholder(namespace: str, op: str):
    """What packages use as the key of a table while they are imported; else None."""
    from taeda._compat import absent_function, entries

    overloads = [
        name.partition(".")[2]
        for name in entries(f"taeda.ops:{namespace}")
        if name.partition(".")[0] == op
    ]
    if not overloads:
        return None
    packet = absent_function(f"ops.{namespace}.{op}")
    for overload in overloads:
        setattr(packet, overload, absent_function(f"ops.{namespace}.{op}.{overload}"))
    return packet


class OpNamespace:
    """The operators of one namespace, made when they are first named."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, op: str) -> OpOverloadPacket:
        overloads = self._find(op)
        packet = None if overloads else self._other(op)
        if packet is not None:
            return packet
        if not overloads:
            raise AttributeError(
                f"'_OpNamespace' '{self.name}' object has no attribute '{op}'"
            )
        packet = OpOverloadPacket(self.name, op, overloads)
        setattr(self, op, packet)
        return packet

    def _other(self, op: str):
        if self.name == "higher_order":
            from taeda._higher_order_ops._operators import operator_of

            return operator_of(op)
        if self.name == "aten":
            from taeda._size_ops import size_packet

            packet = size_packet(op)
            if packet is not None:
                return vars(self).setdefault(op, packet)
        return _placeholder(self.name, op)

    def _find(self, op: str) -> dict[str, str]:
        wanted = op if self.name == "aten" else f"{self.name}::{op}"
        return {o: text for n, o, text in _C._op_schemas() if n == wanted}

    def __dir__(self):
        prefix = "" if self.name == "aten" else f"{self.name}::"
        names = (n for n, _, _ in _C._op_schemas())
        return sorted({n[len(prefix) :] for n in names if n.startswith(prefix)})


class Ops:
    """What `taeda.ops` is."""

    @property
    def __name__(self) -> str:
        return f"{taeda.__name__}.ops"

    def __init__(self) -> None:
        self.loaded_libraries: set[str] = set()

    def __getattr__(self, name: str) -> OpNamespace:
        if name.startswith("__"):
            raise AttributeError(name)
        namespace = OpNamespace(name)
        setattr(self, name, namespace)
        return namespace

    def load_library(self, path: str) -> None:
        """Loads a shared library, whose static objects register its operators.

        In place of torchvision's, which needs PyTorch's libraries, its operators are
        declared as functions of this library.
        """
        import ctypes
        import os

        path = os.path.abspath(path)
        folder, name = os.path.split(path)
        if os.path.basename(folder) == "torchvision" and name.startswith("_C"):
            from taeda._compat import torchvision_operators

            self._torchvision = torchvision_operators.declare()
        else:
            ctypes.CDLL(path)
        self.loaded_libraries.add(path)


ops = Ops()


def overload_of(name: str, overload: str) -> OpOverload:
    """The object of an operator by its native name: `add` or `mylib::add`."""
    namespace, _, op = name.rpartition("::")
    packet = getattr(getattr(ops, namespace or "aten"), op)
    return getattr(packet, overload or "default")
