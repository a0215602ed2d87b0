"""vmap: dims, containers, chunks, random numbers, and what it refuses."""

from __future__ import annotations

import numpy
import pytest
import taeda
import torch
from taeda import vmap

LIBRARIES = (taeda, torch)


def both(program) -> list:
    """What a program of a library gives with each, or the error."""
    found = []
    for library in LIBRARIES:
        try:
            found.append(program(library))
        except Exception as error:
            found.append(error)
    return found


DIMS = {
    "negative": lambda t, x: t.vmap(t.sin, in_dims=-1, out_dims=-1)(x),
    "none": lambda t, x: t.vmap(t.mul, in_dims=(0, None))(x, x[0]),
    "tuple of one": lambda t, x: t.vmap(t.sin, out_dims=(1,))(x),
    "nested": lambda t, x: t.vmap(lambda d: d["a"] * d["b"][0], ({"a": 0, "b": [1]},))(
        {"a": x, "b": [x.mT]}
    ),
    "containers": lambda t, x: t.vmap(
        lambda v: {"s": v.sum(), "r": [v, 3]}, out_dims={"s": 0, "r": [1, None]}
    )(x)["r"][0],
    "one for all": lambda t, x: t.vmap(lambda v: (v, [v * 2]), out_dims=1)(x)[1][0],
    "same for all": lambda t, x: t.vmap(lambda v: t.ones(2), out_dims=None)(x),
    "named": lambda t, x: t.vmap(lambda v, w=None: v + w)(x, w=x),
    "number": lambda t, x: t.vmap(lambda v, k: v * k, (0, None))(x, 3),
    "chunks": lambda t, x: t.vmap(t.cumsum, (0, None), chunk_size=2)(x, 0),
    "chunk of all": lambda t, x: t.vmap(t.sin, chunk_size=9, out_dims=1)(x),
    "twice": lambda t, x: t.vmap(t.vmap(t.mul, (None, 0)), (0, None))(x[0], x[1]),
    "thrice": lambda t, x: t.vmap(t.vmap(t.vmap(t.sin), 1, 1), 2, 0)(
        x.reshape(3, 2, 2, 1)
    ),
    "index": lambda t, x: t.vmap(lambda v, i: v[i])(x, t.tensor([0, 3, 1])),
    "own copy": lambda t, x: t.vmap(lambda v: v.clone().mul_(v))(x),
    "set item": lambda t, x: t.vmap(lambda v: put(v.clone(), v.sum()))(x),
    "empty": lambda t, x: t.vmap(t.sin)(x[:0]),
}


def test_chunks_draw_the_same_numbers() -> None:
    from taeda._functorch.vmap import chunk_vmap

    def noisy(v):
        return v + taeda.rand(1)

    x = taeda.zeros(5)
    for mapped in (
        taeda.vmap(noisy, randomness="same", chunk_size=2),
        chunk_vmap(noisy, randomness="same", chunks=3),
    ):
        assert len(set(mapped(x).flatten().tolist())) == 1
    with pytest.raises(ValueError, match="got 0"):
        chunk_vmap(noisy, chunks=0)


def put(v, value):
    v[1] = value
    return v


@pytest.mark.parametrize("name", DIMS)
def test_dims(name) -> None:
    data = numpy.random.default_rng(0).normal(size=(3, 4))
    got, want = both(lambda t: DIMS[name](t, t.from_numpy(data)))
    numpy.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-12)


REFUSED = {
    "dim outside": (
        lambda t, x: t.vmap(t.sin, -3)(x),
        "Got in_dim=-3 .*dimensionality 2",
    ),
    "float": (lambda t, x: t.vmap(t.sin, 1.5)(x), "expected `in_dims` to be int or"),
    "list": (lambda t, x: t.vmap(t.add, [0, 0])(x, x), "expected `in_dims` to be int"),
    "text": (lambda t, x: t.vmap(t.sin, ("a",))(x), "in_dim must be either an integer"),
    "structure": (
        lambda t, x: t.vmap(t.add, (0,))(x, x),
        "in_dims is not compatible with the structure",
    ),
    "no inputs": (lambda t, x: t.vmap(lambda: x)(), "got no inputs"),
    "only named": (lambda t, x: t.vmap(lambda a: a)(a=x), "got no inputs"),
    "nothing mapped": (
        lambda t, x: t.vmap(t.sin, (None,))(x),
        "Expected at least one Tensor to vmap over",
    ),
    "number mapped": (lambda t, x: t.vmap(t.add)(x, 3), "is of type <class 'int'>"),
    "sizes": (lambda t, x: t.vmap(t.add)(x, x.mT), r"got sizes \[2, 3\]"),
    "nothing returned": (lambda t, x: t.vmap(lambda v: None)(x), "NoneType"),
    "number returned": (
        lambda t, x: t.vmap(lambda v: 3)(x),
        "must only return Tensors",
    ),
    "batch as one": (
        lambda t, x: t.vmap(lambda v: v, out_dims=None)(x),
        "can not return a BatchedTensor when out_dim is None",
    ),
    "out structure": (
        lambda t, x: t.vmap(lambda v: (v, v), out_dims=(0, 0, 0))(x),
        "out_dims is not compatible with the structure",
    ),
    "out text": (
        lambda t, x: t.vmap(lambda v: v, out_dims="a")(x),
        "`out_dims` must be an int, None or a python collection",
    ),
    "out outside": (lambda t, x: t.vmap(lambda v: v, out_dims=3)(x), "out of range"),
    "randomness": (lambda t, x: t.vmap(t.sin, randomness="x")(x), "Got x"),
    "chunk": (lambda t, x: t.vmap(t.sin, chunk_size=0)(x), r"got 0"),
    "item": (lambda t, x: t.vmap(lambda v: v[0].item())(x), r"calling .item\(\)"),
    "float of it": (
        lambda t, x: t.vmap(lambda v: float(v[0]))(x),
        r"calling .item\(\)",
    ),
    "branch": (
        lambda t, x: t.vmap(lambda v: v if v[0] > 0 else -v)(x),
        "data-dependent control flow",
    ),
    "nonzero": (lambda t, x: t.vmap(lambda v: v.nonzero())(x), "dynamic shape"),
    "unique": (lambda t, x: t.vmap(t.unique)(x), "dynamic shape"),
    "mask": (
        lambda t, x: t.vmap(lambda v: v[v > 0])(x),
        "indexing with a boolean mask",
    ),
    "equal": (
        lambda t, x: t.vmap(lambda v: t.equal(v, v))(x),
        "Batching rule not implemented",
    ),
    "numpy": (
        lambda t, x: t.vmap(lambda v: v.numpy())(x),
        "Cannot access data pointer of Tensor that doesn't have storage",
    ),
    "data_ptr": (
        lambda t, x: t.vmap(lambda v: v.data_ptr())(x),
        "Cannot access data pointer of Tensor that doesn't have storage",
    ),
    "storage": (
        lambda t, x: t.vmap(lambda v: v.untyped_storage())(x),
        "Cannot access storage",
    ),
    "out": (
        lambda t, x: t.vmap(lambda v: t.add(v, v, out=t.zeros(3)))(x),
        "Batching rule not implemented for aten::add.out",
    ),
    "into one": (
        lambda t, x: t.vmap(lambda v: t.zeros(3).mul_(v))(x),
        "`self` not being vmapped over",
    ),
    "copied into one": (
        lambda t, x: t.vmap(lambda v: t.zeros(3).copy_(v))(x),
        "",
    ),
    "backward": (
        lambda t, x: t.vmap(lambda v: v.sum().backward())(x),
        r"backward\(\) called inside a functorch transform",
    ),
    "requires_grad_": (
        lambda t, x: t.vmap(lambda v: v.requires_grad_())(x),
        r"attempting to call Tensor.requires_grad_\(\)",
    ),
    "random": (
        lambda t, x: t.vmap(lambda v: v + t.randn(3))(x),
        "random operation while in randomness error mode",
    ),
    "dropout": (
        lambda t, x: t.vmap(t.nn.functional.dropout)(x),
        "random operation while in randomness error mode",
    ),
    "own numbers for one": (
        lambda t, x: t.vmap(lambda v: t.zeros(3).uniform_(), randomness="different")(x),
        "Cannot ask for different inplace randomness on an unbatched tensor",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name) -> None:
    program, text = REFUSED[name]
    got, want = both(lambda t: program(t, t.ones(2, 3)))
    assert type(got) is type(want) and isinstance(got, Exception), (got, want)
    pytest.raises(type(got), lambda: program(taeda, taeda.ones(2, 3))).match(text)
    # Nothing is left behind.
    assert vmap(taeda.sin)(taeda.zeros(2)).tolist() == [0, 0]
    assert taeda._C._functorch.depth() == 0


def test_an_escaped_value_says_so() -> None:
    kept = []
    vmap(lambda v: (kept.append(v), v)[1])(taeda.ones(2, 3))
    (dead,) = kept
    assert dead.shape == (3,)
    for use in (
        lambda: dead + 1,
        lambda: dead.sum(),
        lambda: dead[0],
        lambda: dead.item() if dead.numel() == 1 else dead.view(3, 1),
        lambda: dead.clone(),
        lambda: dead.tolist(),
        lambda: taeda.cat([dead, dead]),
        lambda: vmap(lambda v: v + dead)(taeda.ones(2, 3)),
        lambda: taeda.func.grad(lambda v: (v * dead).sum())(taeda.ones(3)),
    ):
        with pytest.raises(RuntimeError, match="escaped from inside a function"):
            use()
    with pytest.raises(NotImplementedError, match="storage"):
        __import__("copy").deepcopy(dead)
    assert repr(dead).startswith("BatchedTensor(dead, bdim=0, value=")


def test_an_unbatched_tensor_may_be_changed_in_place() -> None:
    y = taeda.zeros(3)
    assert vmap(lambda v: y.add_(1) + v)(taeda.ones(2, 3)).tolist() == [[2] * 3] * 2
    assert y.tolist() == [1, 1, 1]


def test_text() -> None:
    seen = []

    def look(library):
        def f(v):
            seen.append(repr(v))
            return v.sum()

        return library.vmap(library.func.grad(f))(library.ones(2, 3))

    look(taeda), look(torch)
    assert seen[0] == seen[1]
    assert seen[0].startswith("GradTrackingTensor(lvl=2, value=\n    BatchedTensor(")


# Random numbers ----------------------------------------------------------------------

# name -> a program of (library, one element) that draws numbers
DRAWS = {
    "rand": lambda t, v: t.rand(5),
    "randn": lambda t, v: t.randn(5),
    "randint": lambda t, v: t.randint(0, 1000, (5,)),
    "randperm": lambda t, v: t.randperm(20),
    "rand_like": lambda t, v: t.rand_like(v),
    "randn_like": lambda t, v: t.randn_like(v),
    "randint_like": lambda t, v: t.randint_like(v, 1000),
    "bernoulli": lambda t, v: t.bernoulli(t.full((30,), 0.5)),
    "normal": lambda t, v: t.normal(0.0, 1.0, (5,)),
    "normal of tensors": lambda t, v: t.normal(t.zeros(5), t.ones(5)),
    "multinomial": lambda t, v: t.multinomial(t.ones(50), 5),
    "poisson": lambda t, v: t.poisson(t.full((9,), 50.0)),
    "uniform_": lambda t, v: t.empty_like(v).uniform_(),
    "normal_": lambda t, v: t.empty_like(v).normal_(),
    "exponential_": lambda t, v: t.empty_like(v).exponential_(),
    "bernoulli_": lambda t, v: t.zeros_like(v).bernoulli_(0.5),
    "random_": lambda t, v: t.zeros_like(v).random_(0, 1000),
    "cauchy_": lambda t, v: t.empty_like(v).cauchy_(),
    "dropout": lambda t, v: t.nn.functional.dropout(v),
    "dropout of one": lambda t, v: t.nn.functional.dropout(t.ones(30)),
    "alpha_dropout": lambda t, v: t.nn.functional.alpha_dropout(v, training=True),
    "dropout1d": lambda t, v: t.nn.functional.dropout1d(v[:, None]),
    "gamma": lambda t, v: t._standard_gamma(t.full((9,), 3.0)),
    "gumbel_softmax": lambda t, v: t.nn.functional.gumbel_softmax(v),
    "attention": lambda t, v: t.nn.functional.scaled_dot_product_attention(
        *(w.view(10, 3) / 100 for w in (v, v, v.cumsum(0))), dropout_p=0.5
    ).flatten(),
    "own generator": lambda t, v: t.rand(5, generator=t.Generator()),
}


def drawn(name: str, randomness: str):
    v = taeda.arange(1.0, 121.0).view(4, 30)
    return vmap(lambda v: DRAWS[name](taeda, v), randomness=randomness)(v)


@pytest.mark.parametrize("name", DRAWS)
def test_each_draw(name) -> None:
    with pytest.raises(RuntimeError, match="randomness error mode"):
        drawn(name, "error")
    taeda.manual_seed(3)
    one = DRAWS[name](taeda, taeda.arange(1.0, 31.0))
    taeda.manual_seed(3)
    same = drawn(name, "same")
    assert same.shape == (4, *one.shape)
    assert taeda.equal(same[0], one), "the numbers are those of a call without vmap"
    for row in same[1:]:
        # Dropped are the same elements; the others are the rows' own.
        match = (row != 0, same[0] != 0) if name in SCALED else (row, same[0])
        assert taeda.equal(*match)
    if name != "own generator":  # made anew for each call
        different = drawn(name, "different")
        assert different.shape == same.shape
        assert len({str(row.tolist()) for row in different}) == 4


# Their results depend on the element also where the numbers are the same.
SCALED = {"dropout", "alpha_dropout", "dropout1d", "gumbel_softmax", "attention"}


@pytest.mark.parametrize("name", ["rand", "randn", "rand_like", "randint", "bernoulli"])
def test_different_numbers_are_pytorchs(name) -> None:
    def program(t):
        t.manual_seed(5)
        v = t.zeros(4, 30)
        return t.vmap(lambda v: DRAWS[name](t, v), randomness="different")(v)

    got, want = both(program)
    numpy.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-5)


def test_random_records_are_tagged() -> None:
    """Every operator that takes a generator has the tag by which vmap knows it."""
    names = set()
    known = [*dir(taeda._C._VariableFunctions), *dir(taeda.Tensor)]
    for name in {name for name in known if not name.startswith("__")}:
        packet = getattr(taeda.ops.aten, name, None)
        for overload in packet.overloads() if hasattr(packet, "overloads") else ():
            entry = getattr(packet, overload)
            text = str(entry._schema)
            if "Generator?" not in text or name.startswith("rrelu"):
                continue  # rrelu is made of others
            assert taeda.Tag.nondeterministic_seeded in entry.tags, text
            names.add(name)
    assert len(names) >= 14, names
