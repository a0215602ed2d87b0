"""Sizes that are symbols: numbers of Python, and fake tensors that have them."""

from __future__ import annotations

import pytest
import taeda
from taeda._dynamo import mark_dynamic, mark_static
from taeda._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
)
from taeda.fx.experimental.symbolic_shapes import (
    GuardOnDataDependentSymNode,
    ShapeEnv,
    free_symbols,
    free_unbacked_symbols,
    guard_or_false,
    guard_or_true,
    is_symbolic,
    statically_known_true,
)


@pytest.fixture
def env():
    return ShapeEnv()


@pytest.fixture
def mode(env):
    return FakeTensorMode(shape_env=env)


# Numbers --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "shown", "value"),
    [
        (lambda a, b: a + 1, "s0 + 1", 9),
        (lambda a, b: 2 * a - 1, "2*s0 - 1", 15),
        (lambda a, b: a * b, "s0*s1", 48),
        (lambda a, b: a // 3, "(s0//3)", 2),
        (lambda a, b: a % 3, "Mod(s0, 3)", 2),
        (lambda a, b: 20 // a, "(20//s0)", 2),
        (lambda a, b: -a, "-s0", -8),
        (lambda a, b: a - b + 3, "s0 - s1 + 3", 5),
        (lambda a, b: a / 2, "IntTrueDiv(s0, 2)", 4.0),
        (lambda a, b: taeda.sym_float(a), "ToFloat(s0)", 8.0),
        (lambda a, b: 1.5 * a, "1.5*ToFloat(s0)", 12.0),
        (lambda a, b: taeda.sym_max(a, b), "Max(s0, s1)", 8),
        (lambda a, b: taeda.sym_min(a, b), "Min(s0, s1)", 6),
        (lambda a, b: taeda.sym_sum([a, a, 1]), "2*s0 + 1", 17),
        (lambda a, b: taeda.sym_sqrt(a + 1), "OpaqueUnaryFn_sqrt(s0 + 1)", 3.0),
    ],
)
def test_arithmetic_makes_expressions(env, make, shown, value):
    found = make(env.create_size(8), env.create_size(6))
    assert isinstance(found, (taeda.SymInt, taeda.SymFloat))
    assert repr(found) == str(found) == shown
    assert env.guards == []
    assert (float if isinstance(value, float) else int)(found) == value


def test_expressions_that_are_no_question_are_numbers(env):
    a = env.create_size(8)
    assert a - a == 0
    assert type(a - a) is int
    assert (2 * a) // 2 is not a
    assert repr((2 * a) // 2) == "s0"
    assert env.guards == []


def test_a_decision_leaves_a_guard(env):
    a = env.create_size(8, "x.size()[0]")
    condition = a > 3
    assert isinstance(condition, taeda.SymBool)
    assert env.guards == []
    assert condition
    assert env.guards == ["s0 >= 4"]
    assert a > 3  # by now it is known
    assert env.guards == ["s0 >= 4"]
    assert env.fits({"x.size()[0]": 9})
    assert not env.fits({"x.size()[0]": 3})
    assert int(a) == 8
    assert env.format_guards() == " - s0 >= 4\n - Eq(s0, 8)"
    assert [5] * a == [5] * 8


def test_guards_know_the_line_that_asked(env):
    assert env.create_size(8) > 3
    assert "test_symbolic_sizes.py:" in env.format_guards(verbose=True)


def test_conditions(env):
    a = env.create_size(8)
    assert repr(taeda.sym_not(a > 3)) == "s0 <= 3"
    assert repr((a == 5) | (a == 6)) == "Eq(s0, 5) or Eq(s0, 6)"
    assert taeda.sym_ite(a > 3, 1, 2) == 1
    assert statically_known_true(a >= 2)
    assert not statically_known_true(a >= 30)
    assert taeda.sym_not(False) is True
    with pytest.raises(TypeError, match="unhashable type: non-nested SymInt"):
        hash(a)


def test_sizes_of_zero_and_one_are_numbers(env):
    assert env.create_size(1) == 1
    assert type(env.create_size(0)) is int
    assert isinstance(env.create_size(1, dynamic="marked"), taeda.SymInt)
    assert type(env.create_size(7, dynamic="static")) is int


def test_checks(env):
    a, u = env.create_size(8), env.create_unbacked_symint()
    taeda._check(a > 2)
    assert env.guards == ["s0 >= 3"]
    with pytest.raises(RuntimeError, match="too large"):
        taeda._check(a < 3, lambda: "too large")
    taeda._check(u <= 9)
    assert env.deferred_runtime_asserts == ["u0 <= 9"]
    assert u < 10
    with pytest.raises(RuntimeError, match="contradicts"):
        taeda._check(u > 20, lambda: "contradicts")


def test_sizes_from_data_have_no_hint(env):
    u = env.create_unbacked_symint()
    assert repr(u) == "u0"
    assert u >= 0
    with pytest.raises(
        GuardOnDataDependentSymNode,
        match=r"Could not guard on data-dependent expression u0 >= 6",
    ):
        bool(u > 5)
    with pytest.raises(
        GuardOnDataDependentSymNode,
        match="Could not extract specialized integer from data-dependent expression u0",
    ):
        int(u)
    assert guard_or_false(u > 5) is False
    assert guard_or_true(u > 5) is True
    assert free_unbacked_symbols(u + 1) == {"u0"}


# Tensors --------------------------------------------------------------------------


def test_a_fake_tensor_with_symbols(mode):
    x = mode.from_tensor(taeda.randn(8, 3, 4))
    assert repr(x.shape) == "taeda.Size([s0, s1, s2])"
    assert repr(x) == "FakeTensor(..., size=(s0, s1, s2))"
    assert repr(x.stride()) == "(s1*s2, s2, 1)"
    assert repr(x.numel()) == "s0*s1*s2"
    assert repr(x.size(-1)) == "s2"
    assert free_symbols(x) == {"s0", "s1", "s2"}
    assert is_symbolic(x.shape[0])
    assert len(x) == 8
    assert mode.shape_env.guards == ["Eq(s0, 8)"]


def test_equal_sizes_share_a_symbol_unless_marked(mode):
    real = taeda.randn(4, 4, 4, 1)
    mark_dynamic(real, 1)
    mark_static(real, 2)
    assert repr(mode.from_tensor(real).shape) == "taeda.Size([s0, s1, 4, 1])"
    assert mode.from_tensor(taeda.ones(4), static_shapes=True).shape == (4,)


def program(x, w):
    y = (x @ w).relu()
    z = y.reshape(-1, 2).sum(1, keepdim=True)
    parts = y.transpose(0, 1)[1:, :-1].split(2)
    return y, z, *parts, y.mean(0), taeda.cat([x, x]), x[:, 0], x.expand(3, *x.shape)


def test_operators_keep_symbols(mode):
    x, w = taeda.randn(8, 6), taeda.randn(6, 4)
    wanted = program(x, w)
    fake_x = mode.from_tensor(x, source="x")
    found = program(fake_x, mode.from_tensor(w, static_shapes=True))
    assert [repr(tuple(t.shape)) for t in found] == [
        "(s0, 4)",
        "(2*s0, 1)",
        "(2, s0 - 1)",
        "(1, s0 - 1)",
        "(4,)",
        "(2*s0, 6)",
        "(s0,)",
        "(3, s0, 6)",
    ]
    assert mode.shape_env.fits({"x.size()[0]": 11, "x.size()[1]": 6})
    for t, real in zip(found, wanted, strict=True):
        assert t.shape == real.shape
        assert t.stride() == real.stride()


def test_sizes_as_arguments(mode):
    x = mode.from_tensor(taeda.randn(8, 6))
    n, m = x.shape
    with mode:
        made = [
            taeda.zeros(n, m + 1),
            taeda.empty((n // 2, 3)),
            x.view(m, n),
            x.new_ones([n, 2]),
            taeda.arange(4).expand(n, 4),
            x.narrow(0, 1, n - 2),
            taeda.full((n,), 2.0, requires_grad=True),
        ]
    shown = "(s0, s1 + 1) ((s0//2), 3) (s1, s0) (s0, 2) (s0, 4) (s0 - 2, s1) (s0,)"
    assert " ".join(repr(tuple(t.shape)) for t in made) == shown
    assert made[-1].requires_grad


def test_sizes_that_contradict(mode):
    x, y = mode.from_tensor(taeda.ones(8, 3)), mode.from_tensor(taeda.ones(5, 4))
    with pytest.raises(RuntimeError, match=r"add.*\(s1\) must match the size.*\(s3\)"):
        x + y
    with pytest.raises(RuntimeError, match=r"shape '\[7, s0\]' is invalid"):
        x.view(7, x.shape[0])


def test_data_decides(mode):
    x = mode.from_tensor(taeda.ones(8, 3))
    found = x.nonzero()
    assert repr(found.shape) == "taeda.Size([u0, 2])"
    assert repr(taeda.masked_select(x, x > 0).shape) == "taeda.Size([u1])"
    with pytest.raises(GuardOnDataDependentSymNode, match=r"aten::view: .*u0"):
        found.view(3, -1)


@pytest.mark.parametrize(
    ("dtype", "shown"),
    [(taeda.int64, "u0"), (taeda.float32, "zuf0"), (taeda.bool, "Eq(u0, 1)")],
)
def test_a_value_is_a_symbol_without_a_hint(mode, dtype, shown):
    x = mode.from_tensor(taeda.ones(8, 3)).sum().to(dtype)
    value = x.item()
    assert repr(value) == shown
    assert x.item() is value
    with pytest.raises(GuardOnDataDependentSymNode, match="data-dependent"):
        bool(x)
    x.fill_(1)
    assert x.item() is not value


def test_values_may_be_refused():
    mode = FakeTensorMode(shape_env=ShapeEnv(allow_scalar_outputs=False))
    x = mode.from_tensor(taeda.ones(8, 3))
    with pytest.raises(DataDependentOutputException, match="_local_scalar_dense"):
        x.sum().item()
    mode = FakeTensorMode(shape_env=ShapeEnv(allow_dynamic_output_shape_ops=False))
    with pytest.raises(DynamicOutputShapeException, match="nonzero"):
        mode.from_tensor(taeda.ones(8, 3)).nonzero()


# PyTorch's expressions, as torch 2.13 prints them with s0 for its symbol.
SHAPES = [
    (lambda x: x / x.shape[0], "(s0, 3)"),
    (lambda x: x * x.shape[0] + x.shape[0], "(s0, 3)"),
    (lambda x: taeda.arange(x.shape[0]), "(s0,)"),
    (lambda x: taeda.arange(0, x.shape[0], 2), "(((s0 + 1)//2),)"),
    (lambda x: taeda.arange(1, 2 * x.shape[0], 3), "(((2*s0 + 1)//3),)"),
    (lambda x: taeda.zeros(x.shape[0] * 2, 3).view(-1), "(6*s0,)"),
    (lambda x: taeda.full((2,), x.shape[0]), "(2,)"),
    (lambda x: x.repeat(2, 1), "(2*s0, 3)"),
    (lambda x: taeda.cat([x, x[1:]]), "(2*s0 - 1, 3)"),
    (lambda x: x[::2], "(((s0 + 1)//2), 3)"),
    (lambda x: x[1:-1], "(s0 - 2, 3)"),
    (lambda x: x.reshape(-1), "(3*s0,)"),
    (lambda x: x.repeat_interleave(2, 0), "(2*s0, 3)"),
    (
        lambda x: x.repeat_interleave(
            taeda.full((x.shape[0],), 2),
            output_size=x.shape[0] * 2,
            dim=0,
        ),
        "(2*s0, 3)",
    ),
    (lambda x: x.split(4)[1], "(s0 - 4, 3)"),
    (lambda x: x.chunk(2)[0], "(((s0 + 1)//2), 3)"),
    (lambda x: x.chunk(2)[1], "(s0 - ((s0 + 1)//2), 3)"),
    (lambda x: taeda.nn.functional.pad(x, (0, 0, 1, 2)), "(s0 + 3, 3)"),
    (lambda x: x.var(0), "(3,)"),
    (lambda x: x[x.shape[0] // 2 :], "(s0 - (s0//2), 3)"),
    (lambda x: x.unflatten(0, (-1, 1)), "(s0, 1, 3)"),
    (lambda x: x.new_zeros(x.shape[0], x.shape[0] + 1), "(s0, s0 + 1)"),
]


@pytest.mark.parametrize(("program", "shown"), SHAPES)
@pytest.mark.parametrize("requires_grad", [False, True])
def test_programs_compute_with_sizes(mode, program, shown, requires_grad):
    real = taeda.randn(8, 3)
    mark_static(real, 1)
    x = mode.from_tensor(real, source="x").requires_grad_(requires_grad)
    with mode:
        found = program(x)
        if found.requires_grad:
            found.sum().backward()
            assert repr(tuple(x.grad.shape)) == "(s0, 3)"
    assert repr(tuple(found.shape)) == shown
    env = mode.shape_env
    assert all("Eq" not in g or "//" in g for g in env.guards), env.guards
    sizes = {"x.size()[0]": 7}
    if env.fits(sizes):
        wanted = tuple(program(taeda.randn(7, 3)).shape)
        assert env.evaluate(found.shape, sizes) == wanted


def test_guards_are_expressions_over_sizes(env):
    a = env.create_size(8, "x.size()[0]")
    b = env.create_size(8, "y.size()[1]")
    c = env.create_size(6, "z.size()[0]", dynamic="marked")
    assert a > 3
    assert a + b > c
    assert c * 2 == 12
    assert int(b) == 8
    assert not a == 9
    texts = [guard.text for guard in env.guards_on_sources()]
    assert texts == [
        "x.size()[0] >= 4",
        "2*x.size()[0] >= z.size()[0] + 1",
        "Eq(z.size()[0], 6)",
        "Eq(x.size()[0], 8)",
        "Eq(x.size()[0], y.size()[1])",
        "x.size()[0] >= 2",
        "z.size()[0] >= 2",
    ]
    first = env.guards_on_sources()[0]
    assert "test_symbolic_sizes.py:" in first.where
    sizes = {"x.size()[0]": 3, "y.size()[1]": 3, "z.size()[0]": 5}
    found = [env.evaluate(g.expression, sizes) for g in env.guards_on_sources()]
    assert found == [False, True, False, False, True, True, True]
    assert not env.fits(sizes)
    assert env.fits({"x.size()[0]": 8, "y.size()[1]": 8, "z.size()[0]": 6})
    with pytest.raises(RuntimeError, match="sizes of one symbol differ"):
        env.evaluate(first.expression, sizes | {"y.size()[1]": 4})
    with pytest.raises(RuntimeError, match="no value for s0"):
        env.evaluate(first.expression, {})


def test_evaluating_numbers(env):
    a = env.create_size(8, "a")
    numbers = (
        3 * a + 1,
        a / 4,
        taeda.sym_float(a) * 0.5,
        a > 8,
        5,
        taeda.sym_max(a, 9),
    )
    assert env.evaluate(numbers, {"a": 10}) == (31, 2.5, 5.0, True, 5, 10)
    u = env.create_unbacked_symint()
    assert env.evaluate(u * a, {"a": 10, "u0": 3}) == 30
    assert env.guards == []


def test_a_question_is_asked_once(env):
    a = env.create_size(8)
    for _ in range(3):
        assert a % 2 == 0
        assert a != 5
    assert env.guards == ["Eq(Mod(s0, 2), 0)", "Ne(s0, 5)"]


def test_gradients(mode):
    x = mode.from_tensor(taeda.randn(8, 6, requires_grad=True))
    w = mode.from_tensor(taeda.randn(6, 4, requires_grad=True), static_shapes=True)
    loss = taeda.nn.functional.softmax(x @ w, -1).view(-1).sum()
    assert is_symbolic(x.shape[0])
    assert "Backward0" in loss.grad_fn.name()
    loss.backward()
    assert x.grad.shape == (8, 6)
    assert w.grad.shape == (6, 4)


def test_nothing_is_allocated(mode):
    real = taeda.empty(1 << 20, 1 << 20, device="meta")
    x = mode.from_tensor(real)
    y = (x @ x + 1).relu().sum(0)
    assert repr(y.shape) == "taeda.Size([s0])"
    assert y.data_ptr() == 0
