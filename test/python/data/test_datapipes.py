"""Pipes: what they give, their errors and their orders, against PyTorch's."""

from __future__ import annotations

import io
import operator
import pickle
import warnings
from functools import partial

import pytest
import taeda
import torch
from taeda.utils.data import IterDataPipe, MapDataPipe

pytestmark = pytest.mark.filterwarnings("ignore:.* function is not supported by pickle")


def of(library):
    """(a pipe of values, a pipe by index) of a library."""
    pipes = library.utils.data.datapipes
    return pipes.iter.IterableWrapper, pipes.map.SequenceWrapper


def plain(value):
    """Tensors as lists, so that results of two libraries compare."""
    if isinstance(value, (taeda.Tensor, torch.Tensor)):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return type(value)([plain(v) for v in value])
    return value


def parity(x):
    return x % 2


def above_two(x):
    return x > 2


PIPELINES = {
    "map": lambda it, sq: it(range(5)).map(operator.neg),
    "map_column": lambda it, sq: it([(1, 2), (3, 4)]).map(operator.neg, input_col=1),
    "map_columns": lambda it, sq: it([(1, 2, 5)]).map(operator.add, input_col=[0, 2]),
    "map_key": lambda it, sq: it([{"a": 1}]).map(str, input_col="a", output_col="b"),
    "map_append": lambda it, sq: it([(1, 2)]).map(abs, input_col=0, output_col=-1),
    "filter": lambda it, sq: it(range(6)).filter(above_two),
    "filter_column": lambda it, sq: it([(1, 3), (3, 1)]).filter(above_two, input_col=1),
    "batch": lambda it, sq: it(range(5)).batch(2),
    "batch_drop": lambda it, sq: it(range(5)).batch(2, drop_last=True),
    "batch_of_batches": lambda it, sq: it(range(7)).batch(2).batch(2),
    "unbatch": lambda it, sq: it([[0, [1]], [[2]]]).unbatch(),
    "unbatch_all": lambda it, sq: it([[0, [1]], [[2]]]).unbatch(-1),
    "unbatch_two": lambda it, sq: it([[[0, 1]], [[2]]]).unbatch(2),
    "group": lambda it, sq: it(range(7)).groupby(parity),
    "group_key": lambda it, sq: it(range(7)).groupby(parity, keep_key=True),
    "group_size": lambda it, sq: it(range(7)).groupby(parity, group_size=2),
    "group_small_buffer": lambda it, sq: it([0, 0, 1, 0, 1, 1, 1, 2]).groupby(
        parity, buffer_size=3, group_size=3, guaranteed_group_size=2
    ),
    "group_drop": lambda it, sq: it(range(9)).groupby(
        lambda x: x % 5,
        buffer_size=3,
        group_size=3,
        guaranteed_group_size=2,
        drop_remaining=True,
    ),
    "concat": lambda it, sq: it(range(2)).concat(it("ab"), it([])),
    "zip": lambda it, sq: it(range(3)).zip(it("ab")),
    "mux": lambda it, sq: it(range(3)).mux(it("ab"), it([7, 8, 9])),
    "collate": lambda it, sq: it(range(4)).batch(2).collate(),
    "collate_fn": lambda it, sq: it(range(4)).batch(2).collate(collate_fn=sum),
    "shuffle": lambda it, sq: it(range(20)).shuffle(),
    "shuffle_small": lambda it, sq: it(range(20)).shuffle(buffer_size=4),
    "shuffle_seed": lambda it, sq: it(range(20)).shuffle().set_seed(5),
    "shuffle_off": lambda it, sq: it(range(5)).shuffle().set_shuffle(False),
    "shuffle_unbatch": lambda it, sq: it([[1, 2], [3]]).shuffle(unbatch_level=1),
    "stream": lambda it, sq: it([("x", io.BytesIO(b"abcde"))]).read_from_stream(2),
    "by_index": lambda it, sq: sq([3, 1, 2]),
    "by_index_map": lambda it, sq: sq([3, 1, 2]).map(str),
    "by_index_batch": lambda it, sq: sq(range(5)).batch(2),
    "by_index_concat": lambda it, sq: sq([3, 1]).concat(sq("ab")),
    "by_index_zip": lambda it, sq: sq([3, 1]).zip(sq("abc")),
    "by_index_shuffle": lambda it, sq: sq(range(9)).shuffle(),
    "by_key_shuffle": lambda it, sq: sq({"a": 1, "b": 2}).shuffle(indices=["a", "b"]),
}


def outcome(library, make):
    """(samples of two passes, length or the type of its error, repr)."""
    library.manual_seed(7)
    pipe = make(*of(library))
    passes = [plain(list(pipe)) for _ in range(2)]
    try:
        length = len(pipe)
    except TypeError:
        length = None
    return passes, length, repr(pipe)


@pytest.mark.parametrize("name", PIPELINES)
def test_pipelines_give_what_pytorch_gives(name) -> None:
    assert outcome(taeda, PIPELINES[name]) == outcome(torch, PIPELINES[name])


ERRORS = {
    "columns": lambda it, sq: it([]).map(abs, output_col=1),
    "columns_out": lambda it, sq: it([]).map(abs, input_col=0, output_col=[0, 1]),
    "arguments": lambda it, sq: it([]).map(parity, input_col=[0, 1]),
    "no_function": lambda it, sq: it([]).map(3),
    "answer": lambda it, sq: list(it([1]).filter(parity)),
    "batch": lambda it, sq: it([]).batch(0),
    "depth": lambda it, sq: list(it([1]).unbatch()),
    "level": lambda it, sq: list(it([[1]]).unbatch(-2)),
    "group": lambda it, sq: it([]).groupby(parity, buffer_size=2, group_size=3),
    "group_full": lambda it, sq: list(
        it(range(9)).groupby(
            lambda x: x, buffer_size=3, group_size=3, guaranteed_group_size=2
        )
    ),
    "concat_none": lambda it, sq: type(it([]).concat())(),
    "concat_list": lambda it, sq: it([]).concat([1]),
    "zip_list": lambda it, sq: it([]).zip([1]),
    "fork": lambda it, sq: it([]).fork(0),
    "fork_copy": lambda it, sq: it([]).fork(2, copy="all"),
    "fork_full": lambda it, sq: list(it(range(9)).fork(2, buffer_size=3)[0]),
    "demux": lambda it, sq: list(it(range(9)).demux(2, lambda x: x)[0]),
    "demux_none": lambda it, sq: list(it(range(9)).demux(2, lambda x: None)[0]),
    "demux_full": lambda it, sq: list(it([1] * 9).demux(2, parity, buffer_size=3)[0]),
    "demux_length": lambda it, sq: len(it([1] * 9).demux(2, parity)[0]),
    "shuffle": lambda it, sq: it([]).shuffle(buffer_size=0),
    "no_length": lambda it, sq: len(it(iter([]))),
    "shard": lambda it, sq: it([]).sharding_filter().apply_sharding(2, 2),
    "index": lambda it, sq: sq([1]).batch(2)[1],
    "zip_index": lambda it, sq: sq([1]).zip(sq("ab"))[1],
    "concat_index": lambda it, sq: sq([1]).concat(sq("ab"))[3],
    "unknown": lambda it, sq: it([]).no_such_pipe(),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_of_pytorchs_types(name) -> None:
    with pytest.raises(Exception) as theirs:
        ERRORS[name](*of(torch))
    with pytest.raises(theirs.type) as ours:
        ERRORS[name](*of(taeda))
    assert type(ours.value) is theirs.type
    assert str(ours.value)


def splits(library):
    """Reading forks and classes in several orders."""
    wrap, _ = of(library)
    left, right = wrap(range(5)).fork(2)
    yield [list(left), list(right), len(left)]
    yield [list(zip(left, right, strict=True)), list(left)]
    shared, other = wrap([[1], [2]]).fork(2)
    yield [a is b for a, b in zip(shared, other, strict=True)]
    shared, other = wrap([[1], [2]]).fork(2, copy="deep")
    yield [a is b for a, b in zip(shared, other, strict=True)]
    even, odd = wrap(range(7)).demux(2, parity, buffer_size=-1)
    yield [list(odd), list(even)]
    few, rest = wrap(range(7)).demux(2, lambda x: [0, None, 1][x % 3], drop_none=True)
    yield [list(few), list(rest)]
    yield [type(wrap([1]).fork(1)).__name__]


@pytest.mark.filterwarnings("ignore:Unlimited buffer|Some child")
def test_splits_give_what_pytorch_gives() -> None:
    assert list(splits(taeda)) == list(splits(torch))


def invalidation(library):
    """Which of several iterators over one pipe go on."""
    wrap, _ = of(library)
    pipe = wrap(range(9)).map(abs)
    first, second = iter(pipe), iter(pipe)
    yield next(first), next(second)
    yield attempt(first), attempt(second)
    one, two = wrap(range(9)).fork(2)
    first, second = iter(one), iter(two)
    yield next(first), next(second)
    third = iter(one)
    yield attempt(first), attempt(second), attempt(third), attempt(iter(two))


def attempt(iterator):
    try:
        return next(iterator)
    except RuntimeError as error:
        return "This iterator has been invalidated" in str(error)


@pytest.mark.filterwarnings("ignore:Some child")
def test_only_the_newest_iterator_of_a_pipe_goes_on() -> None:
    assert list(invalidation(taeda)) == list(invalidation(torch))


def test_errors_of_users_functions_say_which_pipe_ran_them() -> None:
    pipe = of(taeda)[0]([1, 0]).map(partial(divmod, 1))
    with pytest.raises(ZeroDivisionError, match="thrown by __iter__ of Mapper.*divmod"):
        list(pipe)


class Doubled(IterDataPipe):
    def __init__(self, source):
        self.source = source

    def __iter__(self):
        yield from (2 * x for x in self.source)


class Counter(IterDataPipe):
    """Its own iterator."""

    def __init__(self, end):
        self.end, self.at = end, 0

    def __next__(self):
        if self.at == self.end:
            raise StopIteration
        self.at += 1
        return self.at

    def reset(self):
        self.at = 0


def test_pipes_of_users() -> None:
    decorate = taeda.utils.data.functional_datapipe("doubled_in_tests")
    assert decorate(Doubled) is Doubled
    try:
        pipe = of(taeda)[0](range(3)).doubled_in_tests().doubled_in_tests()
        assert list(pipe) == [0, 4, 8]
        assert "doubled_in_tests" in dir(pipe)
        with pytest.raises(Exception, match="already taken"):
            decorate(Doubled)
        with pytest.raises(TypeError, match="can only decorate IterDataPipe"):
            decorate(int)
    finally:
        IterDataPipe.functions.pop("doubled_in_tests")
    counter = Counter(2)
    assert list(counter) == [1, 2] and list(counter.map(abs)) == [1, 2]


def test_pipes_go_through_pickle_and_keep_their_settings() -> None:
    wrap, by_index = of(taeda)
    pipe = wrap(range(6)).map(operator.neg).batch(4)
    iterator = iter(pipe)
    next(iterator)
    assert list(pickle.loads(pickle.dumps(pipe))) == [[0, -1, -2, -3], [-4, -5]]
    left, right = pickle.loads(pickle.dumps(wrap(range(3)).fork(2)))
    assert (list(left), list(right)) == ([0, 1, 2], [0, 1, 2])
    assert pickle.loads(pickle.dumps(by_index([1, 2]).zip(by_index("ab"))))[1][1] == "b"


def test_hooks_of_pickling_and_texts() -> None:
    pipe = of(taeda)[0]([1])
    IterDataPipe.set_getstate_hook(lambda state: {"seen": sorted(state)})
    try:
        assert pipe.__getstate__() == {"seen": ["deepcopy", "iterable"]}
        with pytest.raises(RuntimeError, match="existing getstate_hook"):
            IterDataPipe.set_getstate_hook(dict)
    finally:
        IterDataPipe.set_getstate_hook(None)
    MapDataPipe.set_reduce_ex_hook(lambda pipe: (str, ("hooked",)))
    try:
        assert pickle.loads(pickle.dumps(of(taeda)[1]([1]))) == "hooked"
    finally:
        MapDataPipe.set_reduce_ex_hook(None)
    assert str(pipe) == repr(pipe) == "IterableWrapperIterDataPipe"


def test_chunks() -> None:
    for library in (taeda, torch):
        chunk = library.utils.data.DataChunk(x for x in (1, "a"))
        assert chunk == [1, "a"] and chunk.as_str("  ") == "  [1, a]"
        assert list(chunk.raw_iterator()) == [1, "a"] and len(chunk) == 2


def graph_of(library):
    """Names of the pipes behind one, by depth, with attributes of other kinds."""
    wrap, _ = of(library)
    source = wrap(range(4), deepcopy=False)
    left, right = source.map(operator.neg).fork(2)
    last = left.zip(right.batch(2)).shuffle()
    last.log = open(__file__)
    try:
        graph = library.utils.data.graph.traverse_dps(last)
        everything = library.utils.data.graph.traverse(source, only_datapipe=False)
    finally:
        last.log.close()

    def names(graph):
        shown = "ChildDataPipe Zipper Batcher Shuffler Mapper IterableWrapper".split()
        found = []
        for pipe, inner in graph.values():
            name = type(pipe).__name__
            label = next((s for s in shown if s in name), "splitter")
            found.append((label, names(inner)))
        return found

    pipes = library.utils.data.graph_settings.get_all_graph_pipes(graph)
    return names(graph), len(pipes), names(everything)


def test_graphs_of_pipes_are_pytorchs() -> None:
    assert graph_of(taeda) == graph_of(torch)
    with pytest.raises(RuntimeError, match="Expected `IterDataPipe` or `MapDataPipe`"):
        taeda.utils.data.graph.traverse_dps([1])
    with pytest.warns(FutureWarning, match="only_datapipe"):
        taeda.utils.data.graph.traverse(of(taeda)[0]([]))


def test_sharding_by_groups() -> None:
    found = []
    for library in (taeda, torch):
        wrap, _ = of(library)
        sharding = library.utils.data.datapipes.iter.sharding
        groups = sharding.SHARDING_PRIORITIES
        pipe = wrap(range(24)).map(abs).sharding_filter()
        settle = library.utils.data.graph_settings.apply_sharding
        settle(pipe, 3, 1, groups.DISTRIBUTED)
        settle(pipe, 2, 1, groups.MULTIPROCESSING)
        found.append((list(pipe), len(pipe)))
        with pytest.raises(RuntimeError, match="cannot mix DEFAULT"):
            settle(pipe, 2, 1)
        with pytest.raises(RuntimeError, match="Sharding twice"):
            settle(wrap([]).sharding_filter().map(abs).sharding_filter(), 2, 0)
    assert found[0] == found[1]


def batches(library, workers: int, persistent: bool):
    wrap, by_index = of(library)
    library.manual_seed(11)
    shuffled = wrap(range(17)).shuffle(buffer_size=5).map(operator.neg)
    pipes = [
        shuffled.sharding_filter(),
        wrap(range(5)).shuffle().set_shuffle(False).sharding_filter(),
        by_index(range(6)).map(operator.neg),
    ]
    for pipe in pipes:
        for shuffle in (None, True, False):
            loader = library.utils.data.DataLoader(
                pipe,
                batch_size=3,
                shuffle=shuffle,
                num_workers=workers,
                persistent_workers=persistent,
            )
            for _ in range(2):
                yield [batch.tolist() for batch in loader]


@pytest.mark.parametrize("workers, persistent", [(0, False), (2, False), (2, True)])
def test_loaders_of_pipes_give_pytorchs_batches(workers, persistent) -> None:
    ours = list(batches(taeda, workers, persistent))
    assert ours == list(batches(torch, workers, persistent))
    assert len(ours) == 18 and sorted(sum(ours[-1], [])) == [-5, -4, -3, -2, -1, 0]


def test_a_loader_says_where_no_shuffler_was_and_adds_one() -> None:
    """PyTorch says so too, but goes on to load from the pipe without it."""
    with pytest.warns(UserWarning, match="does not contain a `Shuffler`"):
        loader = taeda.utils.data.DataLoader(of(taeda)[0](range(30)), shuffle=True)
    samples = [int(batch) for batch in loader]
    assert samples != sorted(samples) == list(range(30))


def test_files_are_listed_opened_and_read(tmp_path) -> None:
    (tmp_path / "inner").mkdir()
    for name in ("b.txt", "a.txt", "c.dat", "inner/d.txt"):
        (tmp_path / name).write_text(name)
    found = []
    for library in (taeda, torch):
        pipes = library.utils.data.datapipes.iter
        every = pipes.FileLister(str(tmp_path), "*.txt", recursive=True, length=3)
        assert len(every) == 3
        single = pipes.FileLister([str(tmp_path / "c.dat")])
        content = every.open_files("b").read_from_stream()
        found.append([list(every), list(single), list(content)])
        with pytest.raises(TypeError, match="valid length"):
            len(single)
        with pytest.raises(ValueError, match="Invalid mode"):
            every.open_files("w")
        with pytest.raises(ValueError, match="binary mode doesn't take an encoding"):
            every.open_files("b", encoding="utf8")
    assert found[0] == found[1] and len(found[0][2]) == 3


def test_streams_close_with_their_last_child() -> None:
    from taeda.utils.data.datapipes.utils.common import StreamWrapper

    parent = StreamWrapper(io.StringIO("ab\ncd"), name="archive")
    children = [StreamWrapper(io.StringIO("x"), parent) for _ in range(2)]
    assert list(parent) == ["ab\n", "cd"] and "archive" in repr(parent)
    parent.autoclose()
    StreamWrapper.close_streams({"first": [children[0]]})
    assert children[0].closed and not parent.closed
    children[1].close()
    assert parent.closed and parent.file_obj.closed
    with pytest.raises(RuntimeError, match="Parent stream should be StreamWrapper"):
        StreamWrapper(io.StringIO("x"), io.StringIO("y"))


class Unsettled(IterDataPipe):
    def __init__(self, varies: bool = True):
        self.varies = varies

    def __iter__(self):
        return iter([self.varies])


def test_determinism_can_be_asked_for() -> None:
    data = taeda.utils.data
    always = data.non_deterministic(Unsettled)
    sometimes = data.non_deterministic(lambda varies: varies)(Unsettled)
    with data.guaranteed_datapipes_determinism():
        assert list(sometimes(False)) == [False]
        for make in (always, partial(sometimes, True)):
            with pytest.raises(TypeError, match="Unsettled is non-deterministic"):
                make()
    assert list(always()) == list(sometimes(True)) == [True]
    with pytest.raises(TypeError, match="required to return a boolean"):
        data.non_deterministic(lambda varies: 1)(Unsettled)(True)
    with pytest.raises(TypeError, match="Only `IterDataPipe` can be decorated"):
        data.non_deterministic(int)


def test_validation_of_arguments_and_samples() -> None:
    from collections.abc import Iterator

    data = taeda.utils.data

    @data.argument_validation
    def read(source: IterDataPipe, count: int = 2):
        return list(source)[:count]

    # The hints of a local function are texts, which resolve to these objects.
    assert read(of(taeda)[0](range(5))) == [0, 1]
    with pytest.raises(TypeError, match="Expected argument 'source' as a IterDataPipe"):
        read([1, 2])

    class Texts(IterDataPipe):
        def __init__(self, values):
            self.values = values

        def __iter__(self):
            yield from self.values

        __iter__.__annotations__["return"] = Iterator[str]
        __iter__ = data.runtime_validation(__iter__)

    assert list(Texts(["a"])) == ["a"]
    with pytest.raises(RuntimeError, match="Expected an instance as subtype of"):
        list(Texts(["a", 1]))
    with data.runtime_validation_disabled():
        assert list(Texts(["a", 1])) == ["a", 1]
    with pytest.raises(TypeError, match="Can not decorate function read"):
        data.runtime_validation(read)


def test_functions_that_cannot_travel_are_warned_of() -> None:
    wrap, _ = of(taeda)
    with pytest.warns(UserWarning, match="function is not supported by pickle"):
        wrap([1]).map(lambda x: x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wrap([1]).map(partial(divmod, 1)).filter(above_two)


@pytest.mark.parametrize(
    ("made", "name"),
    [
        (lambda pipe, known: pipe.map(str), "MapperIterDataPipe"),
        (lambda pipe, known: pipe.collate(), "CollatorIterDataPipe"),
        (lambda pipe, known: pipe.shuffle(), "ShufflerIterDataPipe"),
        (lambda pipe, known: pipe.batch(2), "BatcherIterDataPipe"),
        (lambda pipe, known: pipe.sharding_filter(), "ShardingFilterIterDataPipe"),
        (lambda pipe, known: known.concat(pipe), "ConcaterIterDataPipe"),
        (lambda pipe, known: known.zip(pipe), "ZipperIterDataPipe"),
        (lambda pipe, known: known.mux(pipe), "MultiplexerIterDataPipe"),
    ],
)
def test_a_length_that_nobody_knows_is_the_pipes_error(made, name) -> None:
    texts = []
    for library in (taeda, torch):

        class Unsized(library.utils.data.IterDataPipe):
            def __iter__(self):
                yield from range(3)

        known = library.utils.data.datapipes.iter.IterableWrapper(range(2))
        with pytest.raises(TypeError) as caught:
            len(made(Unsized(), known))
        texts.append(str(caught.value))
    assert texts == [f"{name} instance doesn't have valid length"] * 2
