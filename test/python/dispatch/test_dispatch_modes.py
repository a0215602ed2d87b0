"""TorchDispatchMode: what it is called with, and what is left when it ends."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import taeda
from taeda.utils import _python_dispatch as dispatch
from taeda.utils._mode_utils import no_dispatch


class Log(dispatch.TorchDispatchMode):
    """Notes (operator, args, kwargs) and computes."""

    def __init__(self, name: str = "", into: list | None = None) -> None:
        super().__init__()
        self.name = name
        self.calls = [] if into is None else into

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.calls.append((self.name + str(func), args, kwargs))
        return func(*args, **kwargs)

    @property
    def names(self) -> list[str]:
        return [call[0] for call in self.calls]


def logged(f) -> list[str]:
    with Log() as log:
        f()
    return log.names


X = taeda.arange(6, dtype=taeda.float32).reshape(2, 3)


def test_the_function_is_the_overload_itself():
    with Log() as log:
        X.add_(0)
    seen = []

    class Look(dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **kwargs)

    with Look():
        X.add_(0)
    (func,) = seen
    assert func is taeda.ops.aten.add_.Tensor
    assert func.overloadpacket is taeda.ops.aten.add_
    assert (func.namespace, func.name()) == ("aten", "aten::add_.Tensor")
    assert (func._opname, func._overloadname) == ("add_", "Tensor")
    assert not func.is_view
    schema = func._schema
    assert str(schema) == (
        "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1)"
        " -> Tensor(a!)"
    )
    assert schema.name == "aten::add_"
    assert schema.overload_name == "Tensor"
    assert schema.is_mutable
    assert schema.arguments[0].alias_info.is_write
    assert schema.arguments[0].alias_info.before_set == {"a"}
    assert schema.arguments[1].alias_info is None
    assert schema.arguments[2].default_value == 1
    assert schema.arguments[2].kwarg_only
    assert log.names == ["aten.add_.Tensor"]


@pytest.mark.parametrize(
    ("call", "args", "kwargs"),
    [
        (lambda: X + 1, (X, 1), {}),
        (lambda: X * 2.5, (X, 2.5), {}),
        (lambda: taeda.add(X, X, alpha=1), (X, X), {}),
        (lambda: taeda.add(X, X, alpha=2), (X, X), {"alpha": 2}),
        (lambda: X.sum(0), (X, [0]), {}),
        (lambda: X.sum(0, True), (X, [0], True), {}),
        (lambda: X.sum(dtype=taeda.float64), (X,), {"dtype": taeda.float64}),
        (lambda: X.view(3, 2), (X, [3, 2]), {}),
        (lambda: X[1:], (X, 0, 1, 2), {}),
        (lambda: taeda.cat([X, X]), ([X, X],), {}),
        (lambda: X.double(), (X,), {"dtype": taeda.float64}),
        (lambda: taeda.full((2,), 3.0), ([2], 3.0), {}),
        (lambda: X.gelu() if 0 else taeda.nn.functional.gelu(X), (X,), {}),
        (lambda: X.clamp_min(1), (X, 1), {}),
        (lambda: X.index_select(0, taeda.ones(0, dtype=taeda.long)), None, {}),
    ],
)
def test_defaults_are_left_out_of_the_call(call, args, kwargs):
    with Log() as log:
        call()
    name, seen, seen_kwargs = log.calls[-1]
    if name == "aten.full.default":
        assert seen_kwargs == {"device": taeda.device("cpu"), "pin_memory": False}
        seen_kwargs = {}
    assert seen_kwargs == kwargs
    if args is None:
        return
    assert len(seen) == len(args)
    for got, want in zip(seen, args, strict=True):
        if isinstance(want, taeda.Tensor):
            assert got is want
        elif isinstance(want, list) and isinstance(want[0], taeda.Tensor):
            assert all(a is b for a, b in zip(got, want, strict=True))
        else:
            assert (type(got), got) == (type(want), want)


def test_composites_are_seen_as_their_parts():
    linear = taeda.nn.Linear(3, 4)
    names = logged(lambda: linear(X))
    assert names == ["aten.t.default", "aten.addmm.default"]
    batch = X[None]
    names = logged(lambda: linear(batch))
    assert names == [f"aten.{n}.default" for n in ("t", "view", "addmm", "view")]
    assert "aten.matmul.default" not in logged(lambda: X @ X.T)


def test_results_are_those_without_a_mode():
    w = taeda.randn(3, 4, requires_grad=True)
    plain = ((X @ w).exp().sum(),)
    plain[0].backward()
    want, w.grad = w.grad, None
    with Log():
        loss = (X @ w).exp().sum()
        loss.backward()
    taeda.testing.assert_close(loss, plain[0])
    taeda.testing.assert_close(w.grad, want)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((3,), (3,)),
        ((2, 3), (3,)),
        ((3,), (3, 2)),
        ((2, 3), (3, 4)),
        ((5, 2, 3), (3,)),
        ((5, 2, 3), (3, 4)),
        ((3,), (5, 3, 4)),
        ((2, 3), (5, 3, 4)),
        ((5, 2, 3), (5, 3, 4)),
        ((7, 1, 2, 3), (5, 3, 4)),
        ((0, 2, 3), (3, 4)),
        ((2, 0), (0, 4)),
    ],
)
def test_products_by_parts_equal_the_kernel(a, b):
    a, b = taeda.randn(a), taeda.randn(b)
    want = a @ b
    with Log() as log:
        got = a @ b
    assert "aten.matmul.default" not in log.names
    taeda.testing.assert_close(got, want)
    assert got.stride() == want.stride()


@pytest.mark.parametrize("shape", [(3,), (2, 3), (5, 2, 3), (4, 5, 2, 3), (0, 3)])
@pytest.mark.parametrize("bias", [True, False])
def test_linear_by_parts_equals_the_kernel(shape, bias):
    layer = taeda.nn.Linear(3, 4, bias=bias)
    x = taeda.randn(shape)
    want = layer(x)
    with Log() as log:
        got = layer(x)
    assert "aten.linear.default" not in log.names
    taeda.testing.assert_close(got, want)
    late = taeda.randn(shape).mT.contiguous().mT if len(shape) > 1 else x
    with Log():
        got = layer(late)
    taeda.testing.assert_close(got, layer(late))


def test_modes_nest():
    calls: list = []
    with Log("outer ", calls), Log("inner ", calls):
        X.exp()
    assert [c[0] for c in calls] == ["inner aten.exp.default", "outer aten.exp.default"]


def test_a_mode_is_off_within_its_handler():
    class Twice(dispatch.TorchDispatchMode):
        count = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            Twice.count += 1
            assert dispatch._get_current_dispatch_mode() is None
            taeda.ones(2).mul(2)
            return func(*args, **kwargs)

    with Twice():
        X.exp()
    assert Twice.count == 1


def test_an_error_in_a_handler_leaves_no_mode():
    class Fails(dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            raise KeyError(str(func))

    outer = Log()
    with outer:
        with pytest.raises(KeyError, match="aten.exp.default"), Fails() as inner:
            assert dispatch._get_current_dispatch_mode_stack() == [outer, inner]
            X.exp()
        assert dispatch._get_current_dispatch_mode() is outer
        X.sin()
    assert dispatch._get_current_dispatch_mode() is None
    assert outer.names == ["aten.sin.default"]


def test_an_error_in_the_backward_pass_comes_through():
    class Fails(dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if "sin" in str(func) or "cos" in str(func):
                raise ArithmeticError(str(func))
            return func(*args, **kwargs)

    x = taeda.ones(2, requires_grad=True)
    loss = x.sin().sum()
    with pytest.raises(ArithmeticError, match=r"aten\.cos"), Fails():
        loss.backward()
    assert not dispatch.is_in_torch_dispatch_mode()
    (x.sin().sum()).backward()
    assert x.grad is not None


def test_the_stack_can_be_emptied_for_a_while():
    with Log() as a, Log() as b:
        with dispatch._disable_current_modes() as modes:
            assert modes == [a, b]
            assert not dispatch.is_in_torch_dispatch_mode()
            X.exp()
        assert dispatch._get_current_dispatch_mode_stack() == [a, b]
        with no_dispatch():
            X.exp()
    assert a.names == b.names == []
    with pytest.raises(RuntimeError, match="pop from empty mode stack"):
        dispatch._pop_mode()


def test_a_mode_belongs_to_its_thread():
    names: list = []

    def work():
        names.append(dispatch._get_current_dispatch_mode())
        X.exp()
        with Log() as own:
            X.cos()
        names.append(own.names)

    with Log() as log:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        X.sin()
    assert names == [None, ["aten.cos.default"]]
    assert log.names == ["aten.sin.default"]


def test_many_threads_with_modes():
    def work(found):
        for _ in range(50):
            with Log() as log:
                (X * 2 + 1).sum()
            found.append(log.names)

    found: list = [[] for _ in range(4)]
    threads = [threading.Thread(target=work, args=(f,)) for f in found]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    want = ["aten.mul.Tensor", "aten.add.Tensor", "aten.sum.default"]
    assert all(names == want for f in found for names in f)
    assert [len(f) for f in found] == [50] * 4


class Returns(dispatch.TorchDispatchMode):
    def __init__(self, value) -> None:
        super().__init__()
        self.value = value

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return self.value


@pytest.mark.parametrize(
    ("value", "call", "text"),
    [
        ("a", lambda: X.exp(), "aten::exp: Unable to cast 'a' to Tensor.*str"),
        (3, lambda: X.exp(), "aten::exp: Unable to cast 3 to Tensor"),
        ((X,), lambda: X.exp(), "aten::exp: Unable to cast .* to Tensor"),
        (3, lambda: X.split(1), "aten::split.Tensor: Unable to cast 3 to List"),
        ([3], lambda: X.split(1), "aten::split.Tensor: Unable to cast .3. to List"),
        (None, lambda: X.max(0), "aten::max.dim: Unable to cast None to tuple"),
        (X, lambda: X.max(0), "aten::max.dim: Unable to cast tensor"),
        ((X,), lambda: X.max(0), "aten::max.dim: .* returned 1 values, .* has 2"),
        ((X,) * 3, lambda: X.max(0), "aten::max.dim: .* returned 3 values"),
        ((X, 1), lambda: X.max(0), "aten::max.dim: Unable to cast 1 to Tensor"),
    ],
)
def test_wrong_results_are_errors_naming_the_operator(value, call, text):
    with pytest.raises(RuntimeError, match=f"(?s){text}"), Returns(value):
        call()
    assert not dispatch.is_in_torch_dispatch_mode()


def test_a_mode_that_declines_is_named():
    with pytest.raises(TypeError, match=r"aten::exp'.*\n.*\n.*mode object <.*Returns"):
        with Returns(NotImplemented):
            X.exp()


def test_numbers_are_asked_of_the_mode():
    with Log() as log:
        assert (X.sum().item(), float(X[1, 2]), bool(X[0, 0] > 0)) == (15, 5, False)
    assert log.names.count("aten._local_scalar_dense.default") == 3
    with Returns(taeda.ones(())):
        assert isinstance(X.exp(), taeda.Tensor)


def test_data_from_outside_is_lifted():
    assert logged(lambda: taeda.tensor([1.0])) == ["aten.lift_fresh.default"]
    names = logged(lambda: (taeda.from_numpy(np.ones(2)), taeda.as_tensor([1])))
    assert names == ["aten.lift_fresh.default"] * 2


def test_printing_is_not_seen():
    assert logged(lambda: repr(X)) == []


def test_grad_mode_and_autograd_within_a_handler():
    seen = []

    class Look(dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **kwargs)
            again = taeda.ones(2, requires_grad=True) * 2
            with taeda.overrides.enable_reentrant_dispatch():
                recorded = taeda.ones(2, requires_grad=True) * 2
            seen.append((out.requires_grad, again.requires_grad, recorded.grad_fn))
            return out

    x = taeda.ones(2, requires_grad=True)
    with Look():
        y = x.exp()
    assert y.requires_grad
    assert seen[0][:2] == (False, False)
    assert seen[0][2].name() == "MulBackward0"


def test_a_counting_mode_over_a_training_step():
    from collections import Counter

    class Count(dispatch.TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.counts = Counter()

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.counts[func.overloadpacket] += 1
            return func(*args, **kwargs)

    net = taeda.nn.Sequential(
        taeda.nn.Linear(3, 8), taeda.nn.Tanh(), taeda.nn.Linear(8, 1)
    )
    aten = taeda.ops.aten
    with Count() as count:
        net(X).sum().backward()
    assert count.counts[aten.addmm] == 2
    assert count.counts[aten.mm] == 3  # no gradient of the input is wanted
    assert count.counts[aten.tanh] == 1


def test_one_hot_is_made_of_operators():
    classes, one_hot = taeda.tensor([2, 0]), taeda.nn.functional.one_hot
    with Log() as log:
        assert one_hot(classes).tolist() == [[0, 0, 1], [1, 0, 0]]
        assert one_hot(classes, 4).shape == (2, 4)
    assert log.names.count("aten.bincount.default") == 1
    assert log.names.count("aten.scatter.value") == 2
    with Log():
        with pytest.raises(RuntimeError, match="num_classes should be positive, got 0"):
            one_hot(classes, 0)
        with pytest.raises(RuntimeError, match="number of classes from empty tensor"):
            one_hot(classes[:0])
        with pytest.raises(RuntimeError):
            one_hot(classes, 2)
