"""Numbers that are read off tensors, in one graph: sizes, bounds, factors. Graphs and
results are held to PyTorch's and to programs that run as they are written."""

from __future__ import annotations

import json
import random

import number_programs as programs
import pytest
import taeda
from both_libraries import told_by
from taeda._dynamo.exc import Unsupported
from taeda._dynamo.utils import counters


@pytest.fixture(scope="module")
def reference() -> dict:
    """What the programs do in PyTorch."""
    return told_by(programs)


@pytest.mark.parametrize("name", programs.PROGRAMS)
def test_graphs_and_results_are_pytorchs(reference, name) -> None:
    assert json.loads(json.dumps(programs.run(taeda, name))) == reference[name]


def _stretch(x, n):
    return x[:n] * 2, x[n : n + 2], x[n::2].sum(), x.view(2, 3)[:, n:]


def _position(x, n):
    return x[n.item()] * 2


def _sizes(x, n):
    return taeda.ones(n) + taeda.zeros(n), taeda.arange(1, n.item() + 1), n.item()


def _expanded(x, n):
    return taeda.ones(1).expand(n.item()) * 2


def _padded(x, n):
    return taeda.nn.functional.pad(x, (0, n.item())), x.roll(n.item())


def _narrowed(x, n):
    return x.narrow(0, 0, n), x.split([n.item(), 6 - n.item()])


def _written(x, n):
    y = x.clone()
    y[:n] = x[:n] * 2
    y[n:] = 3
    return y


def _changed(x, n):
    first = taeda.ones(n.abs())
    m = n.clone().add_(1)
    return first, taeda.zeros(m.abs()), m.add_(1).item()


def _outcome(function, *args):
    try:
        return function(*args)
    except Exception as error:
        return type(error), str(error)


def _equal(a, b) -> bool:
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(_equal, a, b))
    return taeda.equal(a, b) if isinstance(a, taeda.Tensor) else a == b


@pytest.mark.parametrize(
    "function",
    [
        _stretch,
        _position,
        _sizes,
        _expanded,
        _padded,
        _narrowed,
        _written,
        _changed,
    ],
)
def test_any_number_does_what_it_does_eagerly(function) -> None:
    """Negative ones and those beyond the end too: by the graph of the first call."""
    counters.clear()
    compiled = taeda.compile(function, fullgraph=True)
    for number in (2, 0, -2, 1, 9, -9, 5):
        given = taeda.arange(6.0), taeda.tensor(number)
        assert _equal(_outcome(function, *given), _outcome(compiled, *given))
    assert counters["stats"]["unique_graphs"] == 1


def test_a_number_is_read_again_after_a_write() -> None:
    def function(x):
        kept = x.clone()
        first, view = kept.item(), kept.view(1)
        view.add_(1)
        return first, kept.item(), int(kept)

    for dtype in (taeda.int64, taeda.float32):
        compiled = taeda.compile(function, fullgraph=True)
        for number in (2, 5):
            assert compiled(taeda.tensor(number, dtype=dtype)) == (
                number,
                number + 1,
                number + 1,
            )


def test_branches_read_numbers_of_their_own() -> None:
    def function(x, t):
        chosen = taeda.cond(
            x.sum() > 0, lambda x: x * t.item(), lambda x: x - t.item(), (x,)
        )
        return chosen + t.item()

    compiled = taeda.compile(function, fullgraph=True)
    for sign in (1.0, -1.0):
        given = taeda.full((3,), sign), taeda.tensor(2.5 * sign)
        assert taeda.equal(compiled(*given), function(*given))


def test_gradients_of_stretches() -> None:
    def loss(x, n):
        out = taeda.zeros(6)
        out[:n] = x[:n] ** 2
        return out.sum() + x[n:].sum()

    compiled = taeda.compile(loss, fullgraph=True)
    for number in (2, 0, -2, 9):
        x = taeda.arange(6.0).requires_grad_()
        n = taeda.tensor(number)
        (found,) = taeda.autograd.grad(compiled(x, n), x)
        assert taeda.equal(found, taeda.autograd.grad(loss(x, n), x)[0])


def test_what_is_asserted_is_checked_when_the_graph_runs() -> None:
    def function(n):
        k = n.item()
        taeda._check(k >= 3)
        return taeda.ones(k)

    for backend in ("inductor", "eager", lambda module, inputs: module):
        compiled = taeda.compile(function, fullgraph=True, backend=backend)
        assert compiled(taeda.tensor(4)).shape == (4,)
        with pytest.raises(RuntimeError):
            compiled(taeda.tensor(2))


def test_a_presumption_that_fails_is_an_error_of_a_backends_graph() -> None:
    def function(n):
        return taeda.ones(1).expand(n.item())

    compiled = taeda.compile(function, fullgraph=True, backend=lambda m, _: m)
    assert compiled(taeda.tensor(2)).shape == (2,)
    with pytest.raises(RuntimeError, match="which does not hold"):
        compiled(taeda.tensor(-1))
    # A graph that capture runs itself is run again as it is written.
    assert taeda.compile(function, fullgraph=True)(taeda.tensor(-1)).shape == (1,)


def test_without_settings_the_graph_ends_there() -> None:
    def function(x, n):
        return (x + 1)[:n] * 2, taeda.ones(n) + 1

    counters.clear()
    compiled = taeda.compile(function)
    for number in (2, 3):
        given = taeda.arange(6.0), taeda.tensor(number)
        assert _equal(compiled(*given), function(*given))
    assert counters["stats"]["unique_graphs"] > 1


def test_where_an_input_begins_is_no_constant() -> None:
    x = taeda.arange(6)
    compiled = taeda.compile(lambda view: view[1:].storage_offset())
    assert [compiled(x[k : k + 3]) for k in (3, 1, 0)] == [4, 2, 1]
    made = taeda.compile(lambda x: (x + 1)[2:].storage_offset(), fullgraph=True)
    assert made(x) == 2


_GENERATOR = random.Random(9)


def _draws(x):
    return x * random.random(), x + random.randint(1, 6), random.uniform(1, 2)


def _draws_of_a_global(x):
    return x * _GENERATOR.gauss(0, 1) + _GENERATOR.randrange(10), _GENERATOR.random()


def _drawn_size(x):
    return taeda.ones(random.randint(0, 5)), x + random.randrange(-5, 5)


def _chosen(x):
    numbers = [1, 2, 3]
    random.shuffle(numbers)
    return x * random.choice([0.5, 1.5]) + numbers[0] + random.getrandbits(40)


def _branches(x):
    return x * random.random() if random.random() < 0.5 else x - 1


@pytest.mark.parametrize("fullgraph", [True, False])
@pytest.mark.parametrize(
    "function", [_draws, _draws_of_a_global, _drawn_size, _chosen, _branches]
)
def test_random_numbers_are_drawn_at_every_call(function, fullgraph) -> None:
    """With the state of the generators as it is eagerly after each."""
    if fullgraph and function in (_chosen, _branches):
        with pytest.raises(Unsupported):
            taeda.compile(function, fullgraph=True)(taeda.ones(2))
        return
    seen = []
    counters.clear()
    for called in (function, taeda.compile(function, fullgraph=fullgraph)):
        random.seed(2)
        _GENERATOR.seed(2)
        results = [called(taeda.ones(2)) for _ in range(5)]
        seen.append((*results, random.random(), _GENERATOR.random()))
    assert _equal(*seen)
    assert not fullgraph or counters["stats"]["unique_graphs"] == 1


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_ctc_loss_is_in_the_graph(reduction: str) -> None:
    def loss(x, targets, lengths):
        scores, given = x.log_softmax(-1), taeda.tensor([7, 6])
        return taeda.nn.functional.ctc_loss(
            scores, targets, given, lengths, reduction=reduction
        ).sum()

    counters.clear()
    compiled = taeda.compile(loss, fullgraph=True)
    targets = taeda.tensor([[1, 2, 3], [3, 4, 2]])
    for lengths in ([3, 2], [1, 1], [2, 3]):
        x = taeda.randn(7, 2, 5).requires_grad_()
        given = x, targets, taeda.tensor(lengths)
        found, wanted = compiled(*given), loss(*given)
        assert taeda.equal(found, wanted)
        (mine,), (eager,) = (taeda.autograd.grad(y, x) for y in (found, wanted))
        assert taeda.equal(mine, eager)
    assert counters["stats"]["unique_graphs"] == 1


def test_floats_are_no_list_of_numbers() -> None:
    with pytest.raises(Unsupported, match="tolist"):
        taeda.compile(lambda x: x.tolist(), fullgraph=True)(taeda.ones(2))


@pytest.mark.parametrize(
    "asks",
    [
        lambda x, d: x.size(dim=d),
        lambda x, d: x.size(d),
        lambda x, d: x.stride(d),
        lambda x, d: x.sum(d).shape,
        lambda x, d: x.amax(dim=(d, 0)).shape,
    ],
)
def test_a_dim_may_be_another_number_in_each_call(asks):
    x = taeda.empty(4, 9, 8)
    compiled = taeda.compile(asks, backend="eager", fullgraph=True)
    for dim in (1, -1, 2):
        assert compiled(x, dim) == asks(x, dim)


def test_the_memory_of_a_stand_in_is_not_shown():
    def asks(x):
        y = x + 1
        return x.untyped_storage().data_ptr(), y.untyped_storage().nbytes()

    x = taeda.ones(4)
    assert taeda.compile(asks, backend="eager")(x) == (x.data_ptr(), 16)


def test_numbers_of_keys_that_look_alike():
    first, second = taeda.nn.Linear(1, 1), taeda.nn.Linear(1, 1)
    weights = {first: 20, second: 30}

    def weighed(x):
        for module in (first, second):
            x = x * weights[module]
        taeda._dynamo.graph_break()
        return x + weights[first] - weights[second]

    compiled = taeda.compile(weighed, backend=lambda module, inputs: module.forward)
    for weights[second] in (30, 31, 32):
        assert compiled(taeda.ones(1)).item() == weighed(taeda.ones(1)).item()


_ON_SYMBOLS = """
f'{n}{q}' | f'{n!r:>4}{[n]}' | str([n, q]) | repr((n, {'a': q})) | '%d-%s' % (n, q)
ascii(n) | ' '.join(map(str, (n, q))) | f'{q:.2f}{n + q}' | f'{x.shape}' | str(n > 5)
n ** (n - 2) | 2 ** n | n ** -1 | round(n, -1) | round(n, 1) | n.__class__ | q.__class__
n.bit_count() | n.to_bytes(2, 'big') | q.real | kind_of(n) | kind_of(q) | x.chunk(2)
""".replace("\n", " | ").strip(" |")


def _kind_of(v):
    match v:
        case int(number):
            return "int", number
        case float():
            return "float"
    return None


@pytest.mark.parametrize("text", _ON_SYMBOLS.split(" | "))
def test_symbols_are_numbers_to_a_program(text) -> None:
    space = {"kind_of": _kind_of}
    exec(f"def function(x, n, q):\n    return {text}, x + 1", space)
    compiled = taeda.compile(space["function"], dynamic=True)
    for n in (4, 7, 16):
        given = taeda.arange(1.0 + n), n, n + 0.5
        (want, _), (have, _) = space["function"](*given), compiled(*given)
        assert type(have) is type(want)
        assert _equal(have, want)
