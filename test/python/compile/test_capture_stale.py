"""What a program replaces after it was captured: methods that C code finds, what hangs
on functions and classes, the library's functions, and states of the thread."""

from __future__ import annotations

import builtins
import enum
import functools

import pytest
import taeda

CASES: dict = {}


def case(make):
    """Adds what gives a function of x, and changes."""
    CASES[make.__name__] = make
    return make


def puts(owner, name, value):
    """A change: an attribute."""
    return lambda: setattr(owner, name, value)


SPECIAL = {
    "__mul__": lambda s, o: o * 3,
    "__bool__": lambda s: False,
    "__len__": lambda s: 9,
    "__eq__": lambda s, o: False,
    "__getitem__": lambda s, i: 8,
    "__contains__": lambda s, i: False,
    "__neg__": lambda s: 7,
    "__lt__": lambda s, o: False,
    "__iter__": lambda s: iter([4]),
    "__enter__": lambda s: 11,
    "__index__": lambda s: 2,
    "__hash__": lambda s: 8,
    "__getattr__": lambda s, name: 16,
    "__call__": lambda s, x: x * 17,
}


class Numbers:
    def __mul__(self, other):
        return other * 2

    def __bool__(self):
        return True

    def __len__(self):
        return 3

    def __eq__(self, other):
        return True

    def __getitem__(self, i):
        return i

    def __contains__(self, i):
        return True

    def __neg__(self):
        return 4

    def __lt__(self, other):
        return True

    def __iter__(self):
        return iter([1])

    def __enter__(self):
        return 1

    def __exit__(self, *raised):
        pass

    def __index__(self):
        return 1

    def __hash__(self):
        return 5

    def __getattr__(self, name):
        return 6

    def __call__(self, x):
        return x


@pytest.mark.parametrize("name", SPECIAL)
def test_special_methods_that_are_replaced(name) -> None:
    kind = type("Own", (Numbers,), {})
    a = kind()

    def function(x):
        out = a * x + len(a) + a[2] + (-a) + sum(a) + [5, 6, 7][a] + hash(a) + a.other
        for i, told in enumerate((bool(a), a == 3, 3 in a, a < 3)):
            out = out + 10**i * told
        with a as entered:
            return a(out + entered)

    compiled, x = taeda.compile(function), taeda.ones(2)
    assert compiled(x).equal(function(x))
    setattr(kind, name, SPECIAL[name])
    assert compiled(x).equal(function(x))


@case
def constructors():
    class Made:
        def __new__(cls, *args):
            made = object.__new__(cls)
            made.k = 2
            return made

        def __init__(self, k=1, *, j=3):
            self.k = self.k + k + j

    first = Made.__init__
    return lambda x: x * Made().k, (
        puts(first, "__defaults__", (5,)),
        lambda: first.__kwdefaults__.update(j=8),
        puts(Made, "__init__", lambda self: None),
        puts(Made, "__new__", lambda cls: object.__new__(Numbers)),
    )


@case
def defaults_by_name():
    def inner(x, *, k=2):
        return x * k

    return lambda x: inner(x), (
        lambda: inner.__kwdefaults__.update(k=5),
        puts(inner, "__kwdefaults__", {"k": 7}),
    )


@case
def metaclasses():
    class Meta(type):
        v = 2

        @property
        def k(cls):
            return cls.v

        def __call__(cls):
            return 3

        def __getitem__(cls, i):
            return i

    class Kind(metaclass=Meta):
        pass

    return lambda x: x * Kind.k + Kind() + Kind[4] * Kind.v, (
        puts(Meta, "v", 5),
        puts(Kind, "v", 6),
        puts(Meta, "k", property(lambda cls: 9)),
        puts(Meta, "__call__", lambda cls: 8),
        puts(Meta, "__getitem__", lambda cls, i: i + 1),
    )


@case
def descriptors():
    class Field:
        v = 2

        def __get__(self, owner, kind=None):
            return self.v

    class Kind:
        k = Field()

    a = Kind()
    return lambda x: x * a.k + Kind.k, (
        puts(vars(Kind)["k"], "v", 3),
        puts(Field, "__get__", lambda self, owner, kind=None: 9),
        puts(Kind, "k", 10),
    )


@case
def methods_of_classes():
    class Kind:
        @staticmethod
        def one(x):
            return x * 2

        @classmethod
        def other(cls, x):
            return x * 3

    return lambda x: Kind.one(x) + Kind().one(x) + Kind.other(x) + Kind().other(x), (
        puts(Kind, "one", staticmethod(lambda x: x * 5)),
        puts(Kind, "other", classmethod(lambda cls, x: x * 7)),
    )


@case
def functions_with_attributes():
    def told(inner):
        @functools.wraps(inner)
        def outer(x):
            return inner(x) * outer.k + len(outer.__name__)

        outer.k = 2
        return outer

    @told
    def inner(x):
        return x + 1

    return lambda x: inner(x), (puts(inner, "k", 5), puts(inner, "__name__", "abc"))


@case
def functions_of_the_library(monkeypatch):
    F, put = taeda.nn.functional, monkeypatch.setattr
    layer = taeda.nn.Identity()
    return lambda x: layer(F.silu(x) + taeda.relu(x).neg() * abs(-2)), (
        lambda: put(taeda, "relu", lambda x: x * 5),
        lambda: put(F, "silu", lambda x: x * 6),
        lambda: put(taeda.Tensor, "neg", lambda x: x * 7),
        lambda: put(taeda.nn.Identity, "forward", lambda self, x: x * 8),
        lambda: put(builtins, "abs", lambda x: 9),
    )


@case
def states(monkeypatch):
    before, cudnn = taeda.get_num_threads(), taeda.backends.cudnn
    monkeypatch.setattr(cudnn, "benchmark", False)
    return (
        lambda x: x * taeda.get_num_threads() + taeda.backends.cudnn.benchmark,
        (
            lambda: taeda.set_num_threads(before + 1),
            puts(cudnn, "benchmark", True),
            lambda: taeda.set_num_threads(before),
        ),
    )


@case
def members_of_enums():
    class Kind(enum.Enum):
        ONE = 1

    Kind.ONE.factor = 3
    return (
        lambda x: x * Kind.ONE.factor + Kind.ONE.value,
        (puts(Kind.ONE, "factor", 4), puts(Kind.ONE, "_value_", 7)),
    )


@case
def classes_behind_a_class():
    class Base:
        pass

    kinds = [type("First", (Base,), {"by": 2})]
    return (
        lambda x: x * sum(kind.by for kind in Base.__subclasses__()),
        (
            lambda: kinds.append(type("Second", (Base,), {"by": 5})),
            lambda: kinds.append(type("Third", (kinds[0],), {"by": 7})),
        ),
    )


@case
def anomaly_mode(monkeypatch):
    switch = taeda.autograd.set_detect_anomaly
    return (
        lambda x: x * (2 if taeda.is_anomaly_enabled() else 3),
        (lambda: switch(True), lambda: switch(False)),
    )


@pytest.mark.parametrize("name", CASES)
def test_what_is_replaced_is_heeded(name, monkeypatch) -> None:
    make = CASES[name]
    given = (monkeypatch,) if make.__code__.co_argcount else ()
    function, changes = make(*given)
    compiled, x = taeda.compile(function), taeda.tensor([-1.0, 2.0])
    assert compiled(x).equal(function(x))
    for change in changes:
        change()
        assert compiled(x).equal(function(x))


def test_counters_on_classes_are_no_other_graph() -> None:
    class Kind:
        made = 0

        def __mul__(self, other):
            return other * 2

    counts, a = [], Kind()

    def backend(module, inputs):
        counts.append(1)
        return module.forward

    compiled = taeda.compile(lambda x: a * x, backend=backend)
    for _ in range(4):
        Kind.made += 1
        assert compiled(taeda.ones(2)).equal(taeda.full((2,), 2.0))
    assert len(counts) == 1


class Doubling(taeda.overrides.TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        return out * 2 if func is taeda.add else out


@pytest.mark.parametrize("first", (False, True))
@pytest.mark.parametrize("backend", ("inductor", "eager"))
def test_modes_around_a_call(first, backend) -> None:
    compiled = taeda.compile(lambda x: taeda.add(x, 1), backend=backend)
    x = taeda.ones(2)
    for inside in (first, not first, first):
        if inside:
            with Doubling():
                assert compiled(x).tolist() == [4, 4]
        else:
            assert compiled(x).tolist() == [2, 2]


@pytest.mark.parametrize("backend", ("inductor", "eager"))
def test_default_devices_around_a_call(backend) -> None:
    def function(x):
        made = taeda.ones(2)
        other = made.to("cpu" if x.is_meta else "meta")
        told = [v.device.type for v in (made, made + 1, x + 1, other, x.to("meta") * 2)]
        return [made, other], told, other.is_meta, taeda.zeros(3).is_cpu

    compiled, x = taeda.compile(function, backend=backend), taeda.ones(2)
    for device in ("cpu", "meta", "cpu"):
        with taeda.device(device):
            (have, *told), (want, *expected) = compiled(x), function(x)
        assert told == expected
        assert [v.device for v in have] == [v.device for v in want]
