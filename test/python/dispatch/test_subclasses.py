"""Classes of tensors with `__torch_dispatch__`."""

from __future__ import annotations

import copy
import gc
import weakref

import pytest
import taeda
from taeda.testing import assert_close
from taeda.utils import _python_dispatch as dispatch
from taeda.utils._mode_utils import no_dispatch
from taeda.utils._pytree import tree_map, tree_map_only


class Logs(taeda.Tensor):
    """A wrapper around one tensor that notes the operators on it."""

    log: list = []

    @staticmethod
    def __new__(cls, elem, requires_grad=False):
        facts = {name: getattr(elem, name) for name in ("dtype", "layout", "device")}
        facts |= {"strides": elem.stride(), "storage_offset": elem.storage_offset()}
        return taeda.Tensor._make_wrapper_subclass(
            cls, elem.shape, requires_grad=requires_grad, **facts
        )

    def __init__(self, elem, requires_grad=False):
        self.elem = elem

    def __repr__(self):
        return f"Logs({self.elem})"

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        cls.log.append(str(func).removeprefix("aten."))
        inner = tree_map_only(cls, lambda t: t.elem, (args, kwargs or {}))
        out = func(*inner[0], **inner[1])
        wrapped = tree_map_only(taeda.Tensor, cls, out)
        return dispatch.return_and_correct_aliasing(func, args, kwargs, wrapped)


@pytest.fixture(autouse=True)
def _empty_log():
    Logs.log.clear()


def test_a_wrapper_has_geometry_and_no_memory():
    a = Logs(taeda.randn(4, 3).T)
    assert type(a) is Logs
    assert isinstance(a, taeda.Tensor)
    assert (a.shape, a.stride(), a.dtype) == ((3, 4), (1, 3), taeda.float32)
    assert (a.device, a.layout) == (taeda.device("cpu"), taeda.strided)
    assert a.data_ptr() == 0
    assert Logs.log == []
    with pytest.raises(RuntimeError, match="not supported for tensor subclasses"):
        a.numpy()
    with pytest.raises(RuntimeError, match="not supported for tensor subclasses"):
        a.tolist()
    with no_dispatch(), pytest.raises(RuntimeError, match="not allocated"):
        a + 1


def test_devices_that_are_not_here():
    a = taeda.Tensor._make_wrapper_subclass(Logs, (2, 3), device="cuda:1")
    assert (a.device, a.is_cuda, a.stride()) == (taeda.device("cuda:1"), True, (3, 1))
    b = taeda.Tensor._make_wrapper_subclass(Logs, (2,), device="xla")
    assert b.device.type == "xla"


def test_calls_arrive_and_results_are_wrapped():
    x = taeda.arange(6.0).reshape(2, 3)
    a = Logs(x)
    out = a + 1
    assert type(out) is Logs
    assert_close(out.elem, x + 1)
    assert_close((2 - a).elem, 2 - x)
    assert_close((a @ a.T).elem, x @ x.T)
    assert [type(t) for t in a.split(1)] == [Logs, Logs]
    assert_close(a.max(1).values.elem, x.max(1).values)
    assert Logs.log[0] == "add.Tensor"
    assert "mm.default" in Logs.log
    assert a.sum().item() == 15
    assert Logs.log[-2:] == ["sum.default", "_local_scalar_dense.default"]


def test_functions_are_not_overridden_by_such_a_class():
    assert Logs.__torch_function__ is taeda._C._disabled_torch_function_impl
    assert not taeda.overrides.has_torch_function((Logs(taeda.ones(1)),))

    class Both(Logs):
        seen: list = []

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            cls.seen.append(func.__name__)
            with taeda._C.DisableTorchFunctionSubclass():
                return func(*args, **(kwargs or {}))

    b = Both(taeda.ones(2))
    b.exp()
    assert Both.seen == ["exp"]
    assert Logs.log == ["exp.default"]


def test_backward_is_seen_and_grads_are_wrappers():
    x = taeda.randn(3)
    a = Logs(x, requires_grad=True)
    assert a.is_leaf
    y = (a.exp() * a).sum()
    assert type(y) is Logs
    assert y.grad_fn is not None
    Logs.log.clear()
    y.backward()
    assert "ones_like.default" in Logs.log
    assert Logs.log.count("mul.Tensor") == 3
    assert type(a.grad) is Logs
    assert_close(a.grad.elem, x.exp() * x + x.exp())
    a.sin().sum().backward()
    assert_close(a.grad.elem, x.exp() * x + x.exp() + x.cos())
    a.grad.zero_()
    assert_close(a.grad.elem, taeda.zeros(3))


def test_double_backward():
    x = taeda.randn(3, dtype=taeda.float64)
    a = Logs(x, requires_grad=True)
    (g,) = taeda.autograd.grad((a**3).sum(), a, create_graph=True)
    (h,) = taeda.autograd.grad(g.sum(), a)
    assert type(h) is Logs
    assert_close(h.elem, 6 * x)


def test_views_and_changes_of_them():
    x = taeda.arange(6.0).reshape(2, 3)
    a = Logs(x)
    row = a[1]
    assert row._is_view()
    assert row._base is a
    assert row.view(3, 1)._base is a
    assert not (a + 1)._is_view()
    before = a._version
    row.add_(10)
    assert (a._version, row._version) == (before + 1, before + 1)
    assert_close(a.elem[1], taeda.tensor([13.0, 14.0, 15.0]))
    assert a.untyped_storage()._cdata == row.untyped_storage()._cdata


def test_in_place_changes_under_autograd():
    x = taeda.randn(2, 3)
    a = Logs(x.clone(), requires_grad=True)
    b = a * 2
    b[0].mul_(3)
    b.add_(1)
    b.sum().backward()
    assert_close(a.grad.elem, taeda.tensor([[6.0] * 3, [2.0] * 3]))
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        a.add_(1)
    c = a.exp()
    c.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        c.sum().backward() or a.exp_()


def test_in_place_gives_the_object_itself():
    a = Logs(taeda.ones(2))
    assert a.add_(1) is a
    out = Logs(taeda.zeros(2))
    assert taeda.add(taeda.ones(2), 1, out=out) is out
    assert_close(out.elem, taeda.full((2,), 2.0))


def test_detach_and_data():
    a = Logs(taeda.ones(2), requires_grad=True)
    for t in (a.detach(), a.data):
        assert type(t) is Logs
        assert not t.requires_grad
    assert Logs.log == ["detach.default"] * 2
    p = taeda.nn.Parameter(Logs(taeda.ones(2)))
    assert type(p) is Logs
    assert isinstance(p, taeda.nn.Parameter)
    assert p.requires_grad


def test_copies():
    a = Logs(taeda.randn(3))
    b = copy.deepcopy(a)
    assert type(b) is Logs
    assert b.elem is not a.elem
    assert_close(b.elem, a.elem)


class Pair(taeda.Tensor):
    """Two tensors that are computed side by side."""

    @staticmethod
    def __new__(cls, a, b):
        return taeda.Tensor._make_wrapper_subclass(
            cls,
            a.size(),
            strides=a.stride(),
            storage_offset=a.storage_offset(),
            dtype=a.dtype,
            device=a.device,
            requires_grad=a.requires_grad,
        )

    def __init__(self, a, b):
        self.a, self.b = a, b

    def __repr__(self):
        return f"Pair({self.a}, {self.b})"

    def __tensor_flatten__(self):
        return ["a", "b"], None

    @staticmethod
    def __tensor_unflatten__(inner, meta, outer_size, outer_stride):
        return Pair(inner["a"], inner["b"])

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}

        def side(name):
            pick = lambda t: getattr(t, name)
            return func(
                *tree_map_only(Pair, pick, args), **tree_map_only(Pair, pick, kwargs)
            )

        a, b = side("a"), side("b")
        if isinstance(a, taeda.Tensor):
            out = Pair(a, b)
        elif isinstance(a, (tuple, list)):
            out = type(a)(Pair(p, q) for p, q in zip(a, b, strict=True))
        else:
            out = a
        return dispatch.return_and_correct_aliasing(func, args, kwargs, out)


def test_two_tensors_in_training():
    taeda.manual_seed(0)
    x = [taeda.randn(8, 3) for _ in range(2)]
    y = taeda.randn(8, 1)
    make = lambda: taeda.nn.Sequential(
        taeda.nn.Linear(3, 4), taeda.nn.ReLU(), taeda.nn.Linear(4, 1)
    )
    net = make()
    nets = [copy.deepcopy(net) for _ in range(2)]
    for module in net.modules():
        for name, p in list(module._parameters.items()):
            module._parameters[name] = taeda.nn.Parameter(
                Pair(p.detach().clone(), p.detach().clone())
            )

    def train(model, data):
        steps = taeda.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        for _ in range(5):
            steps.zero_grad()
            loss = ((model(data) - y) ** 2).mean()
            loss.backward()
            steps.step()
        return loss

    loss = train(net, Pair(*x))
    for side, (model, data) in zip("ab", zip(nets, x, strict=True), strict=True):
        assert_close(getattr(loss, side), train(model, data).detach())
        for p, q in zip(net.parameters(), model.parameters(), strict=True):
            assert_close(getattr(p, side), q.detach())


def test_traceable_wrappers_are_transformed():
    p = Pair(taeda.ones(2), taeda.zeros(2))
    assert dispatch.is_traceable_wrapper_subclass(p)
    assert not dispatch.is_traceable_wrapper_subclass(taeda.ones(1))
    assert not dispatch.is_traceable_wrapper_subclass(Logs(taeda.ones(1)))
    seen = []
    q = dispatch.transform_subclass(p, lambda name, t: seen.append(name) or t + 1)
    assert seen == ["a", "b"]
    assert_close(q.a, taeda.full((2,), 2.0))
    with pytest.raises(AssertionError, match=r"Pair.*\(3,\)"):
        dispatch.transform_subclass(p, lambda name, t: taeda.ones(3))


class Same(taeda.Tensor):
    """Has memory of its own; computes past the dispatch of Python."""

    calls: list = []

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        cls.calls.append((func, types))
        with no_dispatch():
            return func(*args, **(kwargs or {}))


def test_a_class_with_memory_of_its_own():
    Same.calls.clear()
    a = taeda.Tensor._make_subclass(Same, taeda.arange(3.0), True)
    assert type(a) is Same
    assert a.requires_grad
    b = (a * 2).sum()
    assert type(b) is taeda.Tensor
    assert Same.calls == [(taeda.ops.aten.mul.Tensor, (Same,))]
    b.backward()
    assert_close(a.grad, taeda.full((3,), 2.0))
    c = taeda.ones(3).as_subclass(Same)
    assert type(c.as_subclass(taeda.Tensor)) is taeda.Tensor
    Same.calls.clear()
    c.as_subclass(taeda.Tensor) + 1
    assert [f for f, _ in Same.calls] == [taeda.ops.aten.alias.default]


def declines(name, base=taeda.Tensor):
    asked: list = []

    def handler(cls, func, types, args=(), kwargs=None):
        asked.append((cls.__name__, [t.__name__ for t in types]))
        return NotImplemented

    cls = type(name, (base,), {"__torch_dispatch__": classmethod(handler)})
    return cls, asked


def test_subclasses_are_asked_first_and_all_may_decline():
    base, asked_base = declines("Base")
    derived, asked = declines("Derived", base)
    make = taeda.Tensor._make_subclass
    a, b = make(base, taeda.ones(2)), make(derived, taeda.ones(2))
    with pytest.raises(TypeError) as error:
        taeda.add(a, b)
    text = str(error.value)
    assert "aten::add.Tensor" in text
    assert "NotImplemented" in text
    assert text.index("Derived") < text.index("Base'")
    assert asked == [("Derived", ["Derived", "Base"])]
    assert asked_base == [("Base", ["Derived", "Base"])]


def test_the_next_class_answers_where_one_declines():
    cls, asked = declines("Shy")
    shy = taeda.Tensor._make_subclass(cls, taeda.ones(2))

    class Takes(Logs):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return "handled" if func is taeda.ops.aten.item.default else taeda.ones(7)

    out = taeda.add(shy, Takes(taeda.ones(2)))
    assert len(asked) == 1
    assert out.shape == (7,)


def test_a_mode_is_asked_before_the_class():
    seen = []

    class Mode(dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(types)
            return NotImplemented if types else func(*args, **(kwargs or {}))

    a = Logs(taeda.ones(2))
    with Mode():
        out = a.exp()
    assert type(out) is Logs
    assert seen == [(Logs,), ()]
    assert Logs.log == ["exp.default"]


def test_wrappers_nest():
    class Outer(Logs):
        log: list = []

    x = taeda.ones(2)
    out = Outer(Logs(x)).exp()
    assert (type(out), type(out.elem), type(out.elem.elem)) == (
        Outer,
        Logs,
        taeda.Tensor,
    )
    assert Outer.log == Logs.log == ["exp.default"]


def test_wrong_results_and_errors():
    class Wrong(Logs):
        what: object = "text"

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            if isinstance(cls.what, Exception):
                raise cls.what
            return cls.what

    a = Wrong(taeda.ones(2), requires_grad=True)
    with pytest.raises(
        RuntimeError, match="aten::exp: Unable to cast 'text' to Tensor"
    ):
        a.exp()
    Wrong.what = ZeroDivisionError("mine")
    with pytest.raises(ZeroDivisionError, match="mine"):
        a.exp()
    with pytest.raises(TypeError, match="P must define __torch_dispatch__"):
        taeda.Tensor._make_wrapper_subclass(type("P", (taeda.Tensor,), {}), (2,))
    with pytest.raises(NotImplementedError, match="_make_wrapper_subclass"):
        taeda.Tensor._make_wrapper_subclass(Logs, (2,), dispatch_device=True)
    with pytest.raises(RuntimeError, match="differ in length"):
        taeda.Tensor._make_wrapper_subclass(Logs, (2,), strides=(1, 1))


def test_objects_live_as_long_as_the_graph_needs_them():
    a = Logs(taeda.randn(3), requires_grad=True)
    b = a.exp()
    y = b.sin().sum()
    ref = weakref.ref(b.elem)
    del b
    gc.collect()
    assert ref() is not None  # sin saved its input
    y.backward()
    del y
    gc.collect()
    assert ref() is None
    assert type(a.grad) is Logs


def test_hooks_and_custom_functions_see_the_class():
    class Twice(taeda.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            assert type(x) is Logs
            return grad * 2

    a = Logs(taeda.ones(3), requires_grad=True)
    seen = []
    b = Twice.apply(a)
    b.register_hook(lambda g: seen.append(type(g)))
    b.sum().backward()
    assert seen == [Logs]
    assert_close(a.grad.elem, taeda.full((3,), 2.0))


def test_modules_of_wrapped_parameters():
    taeda.manual_seed(0)
    net = taeda.nn.Sequential(
        taeda.nn.Conv2d(1, 2, 3), taeda.nn.BatchNorm2d(2), taeda.nn.ReLU()
    )
    x = taeda.randn(2, 1, 5, 5)
    want = copy.deepcopy(net)(x)
    got = net(Logs(x))
    assert type(got) is Logs
    assert_close(got.elem, want.detach(), check_stride=False)
    assert Logs.log[0] == "convolution.default"


def test_tree_map_over_a_handlers_arguments():
    kinds = []

    class Kinds(dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            kinds.append(tree_map(lambda v: type(v).__name__, args))
            return func(*args, **(kwargs or {}))

    with Kinds():
        taeda.cat([taeda.ones(1), taeda.ones(1)], 0)
    assert kinds[-1] == (["Tensor", "Tensor"],)


class Asked(taeda.Tensor):
    """A wrapper whose geometry is what `answers` says, by operator."""

    __torch_function__ = taeda._C._disabled_torch_function_impl
    answers: dict = {}

    @staticmethod
    def __new__(cls, policy):
        return taeda.Tensor._make_wrapper_subclass(
            cls, (2, 3), dispatch_sizes_strides_policy=policy
        )

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return cls.answers.get(str(func), NotImplemented)


def test_geometry_is_asked_of_the_class():
    Asked.answers = {
        "aten.sym_size.default": (7, 8),
        "aten.sym_stride.default": (9, 1),
        "aten.dim.default": 2,
        "aten.sym_numel.default": 56,
        "aten.sym_storage_offset.default": 3,
        "aten.is_contiguous.default": False,
        "aten.is_contiguous.memory_format": True,
    }
    x = Asked("sizes")
    assert (x.shape, x.size(), x.size(-1), len(x)) == ((7, 8), (7, 8), 8, 7)
    assert (x.dim(), x.ndim, x.numel(), x.storage_offset()) == (2, 2, 56, 3)
    assert (x.stride(), x.stride(0)) == ((9, 1), 9)
    assert not x.is_contiguous()
    assert x.is_contiguous(memory_format=taeda.channels_last)
    with pytest.raises(IndexError, match=r"\[-2, 1\], but got 2"):
        x.size(2)
    y = Asked("strides")
    assert (y.shape, y.numel(), y.stride(), y.is_contiguous()) == (
        *((2, 3), 6, (9, 1)),
        False,
    )


def test_geometry_without_an_answer():
    Asked.answers = {"aten.sym_size.default": None}
    x = Asked("sizes")
    assert x.shape == (2, 3)
    with pytest.raises(TypeError, match=r"'aten.sym_stride.default'.*NotImplemented"):
        x.stride()
    with pytest.raises(RuntimeError, match="'strides' or 'sizes', got 'all'"):
        Asked("all")
