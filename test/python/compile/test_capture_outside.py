"""What one graph holds of modules, keys of dicts, caches and old names."""

from __future__ import annotations

import collections
import enum
import functools
import gc
import sys
import threading
import types
import typing
import weakref

import pytest
import taeda
from taeda._dynamo.testing import CompileCounter


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Version(str):
    """Text of a class of its own."""


version = Version("2.1")
elsewhere = types.ModuleType("elsewhere")
exec(
    "count = 1\ndef more(x):\n    global count\n    count += 1\n    return x * count",
    vars(elsewhere),
)
here = 1
parameter = taeda.nn.Parameter(taeda.ones(2))
layer = taeda.nn.Linear(2, 2)
weights = {layer: 2.0, parameter: 3.0}
collected = {layer}


def counted(function, *args, graphs=1, calls=2, **options):
    """Results of compiled calls in one graph; each has to be the plain call's."""
    taeda._dynamo.reset()
    counter = CompileCounter()
    compiled = taeda.compile(function, backend=counter, fullgraph=True, **options)
    results = [compiled(*args) for _ in range(calls)]
    assert counter.frame_count == graphs
    return results


@pytest.fixture(autouse=True)
def begun() -> None:
    global here
    here = elsewhere.count = 1
    vars(elsewhere).pop("made", None)


def functions_of_others(x):
    return elsewhere.more(x) + elsewhere.count


def own_through_sys(x):
    global here
    here += 1
    return x * sys.modules[__name__].here


def attributes_of_modules(x):
    elsewhere.count = elsewhere.count + 1
    elsewhere.made = 5
    return x * elsewhere.count + elsewhere.made


@pytest.mark.parametrize(
    ("function", "want"),
    [(functions_of_others, 4.0), (own_through_sys, 2.0), (attributes_of_modules, 7.0)],
)
def test_globals_and_attributes_of_modules_are_one(function, want) -> None:
    (found,) = counted(function, taeda.ones(2), calls=1)
    assert found.tolist() == [want] * 2
    assert here + elsewhere.count == 3
    assert getattr(elsewhere, "made", 5) == 5


def parameters(x):
    return x * weights[parameter]


def modules(x):
    return x * weights[layer] if layer in collected else x


def sizes(x):
    return x * {taeda.Size([2]): 4.0}[x.shape]


@pytest.mark.parametrize(
    ("function", "factor"), [(parameters, 3), (modules, 2), (sizes, 4)]
)
def test_tensors_modules_and_sizes_are_keys(function, factor) -> None:
    for found in counted(function, taeda.ones(2)):
        assert found.tolist() == [factor] * 2


def test_keys_from_outside_are_given_back() -> None:
    def moved(x, table):
        table[parameter] = table.pop(layer) + 1
        table[(1, "a")] = x
        return x + len(table)

    table = {layer: 1, taeda.Size([3]): 2}
    (found,) = counted(moved, taeda.ones(2), table, calls=1)
    assert found.tolist() == [4.0] * 2
    assert list(table) == [taeda.Size([3]), parameter, (1, "a")]
    assert table[parameter] == 2


def test_another_key_is_another_graph() -> None:
    def read(x, table):
        return x * next(iter(table.values()))

    taeda._dynamo.reset()
    counter = CompileCounter()
    compiled = taeda.compile(read, backend=counter)
    x, other = taeda.ones(2), taeda.nn.Linear(2, 2)
    assert compiled(x, {layer: 2}).tolist() == [2.0] * 2
    assert compiled(x, {layer: 2}).tolist() == [2.0] * 2
    assert counter.frame_count == 1
    assert compiled(x, {other: 3}).tolist() == [3.0] * 2


@functools.lru_cache
def cached(x, y=1):
    return x + y


def test_a_cached_function_of_tensors_is_worked_out() -> None:
    for found in counted(lambda x: cached(x) + cached(x, y=2), taeda.ones(2)):
        assert found.tolist() == [5.0] * 2


def test_deques_are_results() -> None:
    for found in counted(
        lambda x: collections.deque([x, x + 1, 3], maxlen=2), taeda.ones(1)
    ):
        assert found.maxlen == 2 and found[0].tolist() == [2.0] and found[1] == 3


def factors(x, v):
    return x.addcmul(x, x, value=v), taeda.add(x, x, alpha=v)


def old_types(x):
    return x.type("torch.IntTensor"), x.double().type(taeda.FloatTensor), x.type()


def namespaces(x):
    aten = taeda.ops.aten
    return aten.abs(x), aten.split_with_sizes(x, [1, 1]), taeda.get_default_dtype()


def test_numbers_types_and_operators_are_in_the_graph() -> None:
    x = taeda.ones(2)
    for first, second in counted(factors, x, taeda.tensor(3.0)):
        assert first.tolist() == second.tolist() == [4.0] * 2
    for whole, single, name in counted(old_types, x):
        assert whole.dtype == taeda.int32 and single.dtype == taeda.float32
        assert name.endswith("FloatTensor")
    for absolute, parts, dtype in counted(namespaces, x):
        assert absolute.tolist() == [1.0] * 2 and len(parts) == 2
        assert dtype == taeda.float32


def test_symbols_have_bits_and_signs() -> None:
    def bits(x, n):
        return x * (n | 1) + (n & 4) + (n ^ 2) + (n << 2) + (n >> 1) + ~n

    for found in counted(bits, taeda.ones(1), 5, dynamic=True):
        assert found.tolist() == [5.0 + 4 + 7 + 20 + 2 - 6]
    (found,) = counted(lambda x, f: x * +f, taeda.ones(1), 1.5, calls=1, dynamic=True)
    assert found.tolist() == [1.5]


def test_compiled_modules_are_compiled_again_and_held() -> None:
    taeda._dynamo.reset()
    counter = CompileCounter()
    inner = taeda.compile(layer, backend=counter)
    again = taeda.compile(taeda.compile(inner, backend=counter), backend=counter)
    x = taeda.ones(2)
    assert taeda.equal(again(x), layer(x)) and counter.frame_count == 1
    holder = taeda.nn.Sequential(inner)
    assert taeda.equal(taeda.compile(holder, backend=counter)(x), layer(x))
    assert "weight" in dir(inner) and set(dir(layer)) <= set(dir(inner))
    inner.eval()
    assert not inner.training and not layer.training
    inner.train()


def test_members_of_enums_stay_themselves() -> None:
    def apart(x):
        table = {Colour.RED: x + 1, "blue": Colour.BLUE}
        taeda._dynamo.graph_break()
        return table[Colour.RED] * 2, table["blue"], Colour.RED

    compiled = taeda.compile(apart, backend="eager")
    for _ in range(2):
        found, blue, red = compiled(taeda.ones(1))
        assert found.tolist() == [4.0]
        assert blue is Colour.BLUE and red is Colour.RED


def test_text_of_classes_is_text() -> None:
    def newer(x):
        return x + 1 if version >= "2.0" and version.startswith("2") else x

    for found in counted(newer, taeda.ones(1)):
        assert found.tolist() == [2.0]


def test_graphs_for_backends_keep_no_inputs() -> None:
    graphs = []

    def backend(gm, inputs):
        graphs.append(gm)
        return gm.forward

    x = taeda.ones(2)
    known = weakref.ref(x)
    taeda._dynamo.reset()
    assert taeda.compile(lambda x: x + x, backend=backend)(x).tolist() == [2.0] * 2
    example = next(iter(graphs[0].graph.nodes)).meta["example_value"]
    assert example.shape == x.shape and example.device == x.device
    del x
    gc.collect()
    assert known() is None


def asks_for_a_transform(x):
    active = taeda._C._are_functorch_transforms_active()
    return x * (3 if active else 2)


def reads_what_is_found_late(x):
    return x * late.factor


def _find_late(name: str):
    if name != "factor":
        raise AttributeError(name)
    sys.modules.setdefault("late_of_the_test", types.ModuleType("late"))
    late.factor = 5  # as packages note what they imported
    return late.factor


late = types.ModuleType("late")
late.__getattr__ = _find_late


@pytest.mark.parametrize(
    "function, factor", [(asks_for_a_transform, 2), (reads_what_is_found_late, 5)]
)
def test_modules_find_attributes_late_within_a_graph(function, factor) -> None:
    vars(taeda._C).pop("_are_functorch_transforms_active", None)
    vars(late).pop("factor", None)
    for result in counted(function, taeda.ones(2)):
        assert result.tolist() == [factor, factor]


class Config:
    """Names that stand for others, as configurations of transformers have them."""

    attribute_map: typing.ClassVar[dict] = {}

    def __init__(self):
        self.attribute_map = {"width": "size"}
        self.sizes = [2, 3]

    def __setattr__(self, key, value):
        names = super().__getattribute__("attribute_map")
        super().__setattr__(names.get(key, key), value)

    def __getattribute__(self, key):
        if key == "sentinel":
            raise AttributeError(key)
        if key != "attribute_map":
            key = super().__getattribute__("attribute_map").get(key, key)
        return super().__getattribute__(key)

    def __getattr__(self, key):
        if key == "sentinel":
            return 5
        raise AttributeError(key)


def test_classes_that_look_attributes_up_themselves():
    def reads(x, config):
        config.seen = x + config.sentinel
        config.width = config.width + 1
        return x * config.size * config.sizes[1], hasattr(config, "more")

    def made(size):
        config = Config()
        config.width = size
        return config

    x = taeda.ones(1)
    compiled = taeda.compile(reads, backend="eager", fullgraph=True)
    for size in (2, 2, 7):
        mine, theirs = made(size), made(size)
        assert compiled(x, mine) == reads(x, theirs)
        assert (mine.size, mine.seen) == (theirs.size, theirs.seen)


def test_attributes_of_a_thread():
    local = threading.local()

    def program(x):
        local.seen = x + local.scale
        if hasattr(local, "late"):
            del local.late
        return x * local.scale

    compiled = taeda.compile(program, backend="eager", fullgraph=True)
    x, found = taeda.ones(1), []

    def run(scale):
        local.scale, local.late = scale, True
        found.append((compiled(x).item(), local.seen.item(), hasattr(local, "late")))

    run(2)
    other = threading.Thread(target=run, args=(5,))
    other.start()
    other.join()
    assert (local.scale, local.seen.item()) == (2, 3)
    run(3)
    assert found == [(2, 3, False), (5, 6, False), (3, 4, False)]


def test_dicts_with_weak_keys():
    table, one, other = weakref.WeakKeyDictionary(), Config(), Config()
    table[one] = 3

    def read(x, key):
        return x + table.get(key, 0)

    def write(x, key):
        table[key] = x + 1
        return x

    x = taeda.zeros(1)
    reading = taeda.compile(read, backend="eager", fullgraph=True)
    assert [reading(x, key).item() for key in (one, other)] == [3, 0]
    table[other] = 7
    assert [reading(x, key).item() for key in (one, other)] == [3, 7]
    taeda.compile(write, backend="eager", fullgraph=True)(x, one)
    assert table[one].item() == 1
    taeda._dynamo.reset()
    del one, other
    gc.collect()
    assert len(table) == 0


def test_weak_references_keep_what_they_call():
    gone = []

    def program(x, thing):
        return weakref.ref(thing, lambda reference: gone.append(reference))

    thing = Config()
    reference = taeda.compile(program, backend="eager")(taeda.ones(1), thing)
    assert reference() is thing
    taeda._dynamo.reset()
    del thing
    gc.collect()
    assert gone == [reference]
