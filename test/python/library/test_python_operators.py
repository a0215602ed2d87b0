"""Operators declared, implemented and differentiated from Python."""

from __future__ import annotations

import itertools

import pytest
import taeda
import torch
from taeda.library import (
    Library,
    _scoped_library,
    custom_op,
    define,
    impl,
    opcheck,
    register_autograd,
    register_fake,
)

_count = itertools.count()


@pytest.fixture
def ns() -> str:
    """A namespace of the test's own: operators live as long as the process."""
    return f"py_ops_{next(_count)}"


def test_library_defines_and_implements_by_key(ns: str) -> None:
    lib = Library(ns, "DEF")
    lib.define("scale(Tensor x, float factor=2.0, *, int? power=None) -> Tensor")

    def on_cpu(x, factor=2.0, *, power=None):
        return x * factor ** (1 if power is None else power)

    lib.impl("scale", on_cpu, "CPU")
    lib.impl("scale", lambda x, factor=2.0, *, power=None: x.new_empty(x.shape), "Meta")
    op = getattr(taeda.ops, ns).scale
    assert op(taeda.ones(2)).tolist() == [2.0, 2.0]
    assert op(taeda.ones(2), 3.0, power=2).tolist() == [9.0, 9.0]
    assert op(taeda.ones(5, device="meta")).is_meta
    assert op.default(taeda.ones(1)).tolist() == [2.0]
    with pytest.raises(RuntimeError, match="multiple times"):
        lib.define("scale(Tensor x) -> Tensor")


def test_what_a_library_made_goes_with_it(ns: str) -> None:
    first, second = Library(ns, "DEF"), Library(ns, "FRAGMENT")
    first.define("f(Tensor x) -> Tensor")
    first.impl("f", lambda x: x + 1, "CPU")
    second.impl("f", lambda x: x + 2, "CPU")
    f = getattr(taeda.ops, ns).f
    assert f(taeda.ones(1)).item() == 3
    del second
    assert f(taeda.ones(1)).item() == 2
    first._destroy()
    assert not hasattr(getattr(taeda.ops, ns), "f")
    with pytest.raises(NotImplementedError, match=f"{ns}::f .withdrawn."):
        f.default(taeda.ones(1))
    again = Library(ns, "DEF")
    again.define("f(Tensor x, Tensor y) -> Tensor")
    again.impl("f", lambda x, y: x * y, "CPU")
    assert getattr(taeda.ops, ns).f(taeda.ones(1), taeda.zeros(1)).item() == 0
    again._destroy()
    again._destroy()


def test_kernels_of_the_records_come_back() -> None:
    one = taeda.ones(2, requires_grad=True)
    before = taeda.nn.functional.hardswish(one)
    with _scoped_library("aten", "IMPL") as inner:
        inner.impl("hardswish", lambda x: x * 0 + 7, "CPU")
        with _scoped_library("aten", "IMPL") as other:
            other.impl("hardswish", lambda x: x * 0 + 8, "CPU")
            assert taeda.nn.functional.hardswish(one).tolist() == [8, 8]
        assert taeda.nn.functional.hardswish(one).tolist() == [7, 7]
    after = taeda.nn.functional.hardswish(one)
    assert after.equal(before)
    after.sum().backward()
    assert one.grad.isfinite().all()


def test_a_custom_operator_is_defined_again(ns: str) -> None:
    for step in (1, 2):

        @custom_op(f"{ns}::plus", mutates_args=())
        def plus(x: taeda.Tensor, step: int = step) -> taeda.Tensor:
            return x + step

        plus.register_fake(lambda x, step=0: x.new_empty(x.shape))
        assert plus(taeda.zeros(1)).item() == step
        assert getattr(taeda.ops, ns).plus(taeda.zeros(1)).item() == step
    impl(f"{ns}::plus", "cpu", lambda x, step=0: x + 30)
    assert plus(taeda.zeros(1)).item() == 30


def test_operators_without_a_kernel_say_so(ns: str) -> None:
    define(f"{ns}::nothing", "(Tensor x) -> Tensor")
    with pytest.raises(NotImplementedError, match=f"{ns}::nothing"):
        getattr(taeda.ops, ns).nothing(taeda.ones(1))


def test_overloads_and_decorators(ns: str) -> None:
    lib = Library(ns, "FRAGMENT")
    lib.define("f(Tensor x) -> Tensor")
    lib.define("f.other(Tensor x, Tensor y) -> Tensor")

    @impl(f"{ns}::f", "cpu")
    def one(x):
        return x + 1

    lib.impl("f.other", lambda x, y: x * y, "CPU")
    op = getattr(taeda.ops, ns).f
    assert op.default(taeda.ones(1)).item() == 2
    assert op.other(taeda.ones(1), taeda.full((1,), 3.0)).item() == 3


def test_lists_options_and_several_results(ns: str) -> None:
    @custom_op(f"{ns}::parts", mutates_args=())
    def parts(
        tensors: list[taeda.Tensor], sizes: list[int], bias: taeda.Tensor | None = None
    ) -> tuple[taeda.Tensor, taeda.Tensor]:
        total = sum(t.sum() for t in tensors)
        return total + (0 if bias is None else bias), taeda.zeros(sizes)

    total, zeros = parts([taeda.ones(2), taeda.ones(3)], [2, 2])
    assert total.item() == 5 and zeros.shape == (2, 2)
    assert parts([taeda.ones(2)], [1], taeda.ones(()))[0].item() == 3


def cube(ns: str):
    @custom_op(f"{ns}::cube", mutates_args=())
    def op(x: taeda.Tensor, scale: float = 1.0) -> taeda.Tensor:
        return x * x * x * scale

    def setup(ctx, inputs, output) -> None:
        x, ctx.scale = inputs
        ctx.save_for_backward(x)

    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 3 * x * x * ctx.scale, None

    op.register_autograd(backward, setup_context=setup)
    op.register_fake(lambda x, scale=1.0: taeda.empty_like(x))
    return op


def test_lists_of_dtypes_and_layouts(ns: str) -> None:
    lib = Library(ns, "DEF")
    lib.define("f(ScalarType[] a, Layout[] b, MemoryFormat[]? c=None) -> ScalarType[]")
    seen = []

    def kernel(a, b, c=None):
        seen.append((a, b, c))
        return [*a, taeda.int8]

    lib.impl("f", kernel, "CompositeExplicitAutograd")
    op = getattr(taeda.ops, ns).f
    dtypes, layouts = [taeda.float32, taeda.bool], [taeda.strided, taeda.sparse_csr]
    assert op(dtypes, layouts) == [*dtypes, taeda.int8]
    assert op([], [], [taeda.channels_last]) == [taeda.int8]
    assert seen == [(dtypes, layouts, None), ([], [], [taeda.channels_last])]


def test_registered_derivatives_are_used_twice_over(ns: str) -> None:
    op = cube(ns)
    x = taeda.tensor([1.0, 2.0], dtype=taeda.float64, requires_grad=True)
    op(x, 2.0).sum().backward()
    assert x.grad.tolist() == [6.0, 24.0]
    assert taeda.autograd.gradcheck(lambda t: op(t, 0.5), (x,))
    assert taeda.autograd.gradgradcheck(lambda t: op(t, 0.5), (x,))
    assert op(taeda.ones(3, device="meta")).shape == (3,)


def test_free_functions_register_on_a_name(ns: str) -> None:
    define(f"{ns}::twice", "(Tensor x, *, float factor) -> Tensor")
    impl(f"{ns}::twice", "CPU", lambda x, *, factor: x.detach() * factor)
    register_fake(f"{ns}::twice", lambda x, *, factor: taeda.empty_like(x))

    def setup(ctx, inputs, keyword_only_inputs, output) -> None:
        ctx.factor = keyword_only_inputs["factor"]

    register_autograd(
        f"{ns}::twice", lambda ctx, grad: grad * ctx.factor, setup_context=setup
    )
    x = taeda.ones(2, requires_grad=True)
    getattr(taeda.ops, ns).twice(x, factor=4.0).sum().backward()
    assert x.grad.tolist() == [4.0, 4.0]


def test_written_arguments(ns: str) -> None:
    @custom_op(f"{ns}::fill", mutates_args=("x",))
    def fill(x: taeda.Tensor, value: float) -> None:
        x.fill_(value)

    x = taeda.zeros(2)
    assert fill(x, 3.0) is None
    assert x.tolist() == [3.0, 3.0]
    with pytest.raises(RuntimeError, match="non-functional"):
        fill.register_autograd(lambda ctx, grad: None)


def test_opcheck_passes_a_sound_operator(ns: str) -> None:
    x = taeda.rand(3, 4).t().requires_grad_()
    assert set(opcheck(cube(ns), (x, 2.0)).values()) == {"SUCCESS"}


def test_opcheck_finds_what_is_wrong(ns: str) -> None:
    @custom_op(f"{ns}::writes", mutates_args=())
    def writes(x: taeda.Tensor) -> taeda.Tensor:
        x.add_(1)
        return x.clone()

    @custom_op(f"{ns}::returns", mutates_args=())
    def returns(x: taeda.Tensor) -> taeda.Tensor:
        return x

    library = Library(ns, "FRAGMENT")
    library.define("detaches(Tensor x) -> Tensor")
    library.impl("detaches", lambda x: x.detach() + 1, "CPU")
    detaches = getattr(taeda.ops, ns).detaches.default
    register_fake(detaches, lambda x: x.new_empty(1), lib=library)
    x = taeda.rand(3)
    for op, part in ((writes, "was mutated"), (returns, "aliasing")):
        with pytest.raises(Exception, match=part):
            opcheck(op, (x,), test_utils="test_schema")
    report = opcheck(detaches, (x.requires_grad_(),), raise_exception=False)
    assert report["test_schema"] == "SUCCESS"
    assert "requires grad and no result" in str(report["test_autograd_registration"])
    assert "shape" in str(report["test_faketensor"])
    calls = []

    @custom_op(f"{ns}::counts", mutates_args=())
    def counts(x: taeda.Tensor) -> taeda.Tensor:
        calls.append(1)
        return x * len(calls)

    counts.register_fake(taeda.empty_like)
    with pytest.raises(Exception, match="compiled it differs in result or gradient 0"):
        opcheck(counts, (taeda.ones(2),), test_utils="test_aot_dispatch_dynamic")
    with pytest.raises(ValueError, match="no such test_utils"):
        opcheck(detaches, (x,), test_utils="test_nonsense")


def _operators_with_rules(library, space: str):
    schema = "(Tensor x, Tensor y, float factor) -> Tensor"

    @library.library.custom_op(f"{space}::scaled", mutates_args=(), schema=schema)
    def scaled(x, y, factor):
        assert x.dim() == 1, "the operator itself knows no batches"
        return x * y * factor

    calls = []

    def rule(info, in_dims, x, y, factor):
        calls.append((info.batch_size, info.randomness))
        x, y = (
            t if dim is None else t.movedim(dim, 0)
            for t, dim in zip((x, y), in_dims[:2], strict=True)
        )
        return x * y * factor, 0

    library.library.register_vmap(f"{space}::scaled", rule)
    return scaled, calls


def test_vmap_uses_the_rule_of_an_operator() -> None:
    found = []
    for library in (taeda, torch):
        scaled, calls = _operators_with_rules(library, "ruled")
        x, y = library.arange(6.0).reshape(2, 3), library.arange(3.0)
        one = library.vmap(scaled, in_dims=(0, None, None))(x, y, 2.0)
        both = library.vmap(scaled, in_dims=(1, 1, None))(x, x, 3.0)
        twice = library.vmap(
            library.vmap(scaled, in_dims=(None, 0, None)), in_dims=(0, None, None)
        )(x, x, 1.0)
        plain = scaled(y, y, 1.0)
        results = [t.tolist() for t in (one, both, twice, plain)]
        found.append((results, calls[:2], len(calls)))
    assert found[0] == found[1]
    with pytest.raises(ValueError, match="unexpected type for op"):
        taeda.library.register_vmap(3, print)


def test_the_old_name_of_register_fake_warns() -> None:
    @taeda.library.custom_op("ruled::old_fake", mutates_args=())
    def old_fake(x: taeda.Tensor) -> taeda.Tensor:
        return x.clone()

    with pytest.warns(FutureWarning, match="impl_abstract is deprecated"):
        taeda.library.impl_abstract("ruled::old_fake", lambda x: x.new_empty(7))
    assert old_fake(taeda.ones(2, device="meta")).shape == (7,)


def test_what_custom_operators_lack_is_said(ns: str) -> None:
    @custom_op(f"{ns}::scaled", mutates_args=())
    def scaled(x: taeda.Tensor, by: float = 2.0) -> taeda.Tensor:
        return x.detach() * by

    x = taeda.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        scaled(x).sum().backward()
    with pytest.raises(RuntimeError, match="no fake impl registered for <CustomOpDef"):
        scaled(taeda.ones(2, device="meta"))
    scaled.register_fake(lambda x, by=2.0: taeda.empty_like(x))
    assert scaled(taeda.ones(2, device="meta")).is_meta
    scaled.register_autograd(lambda ctx, grad: grad * 3)
    scaled(x).sum().backward()
    assert x.grad.tolist() == [3, 3]  # of a number no gradient is asked
    sum_of = "(Tensor x, Tensor y) -> Tensor"
    both = custom_op(f"{ns}::both", taeda.add, mutates_args=(), schema=sum_of)
    both.register_autograd(lambda ctx, grad: grad)
    with pytest.raises(RuntimeError, match=r"number of gradients .expected 2, got 1"):
        both(x, x).sum().backward()
    same = custom_op(f"{ns}::same", lambda x: x[0], mutates_args=(), schema=ONE)
    with pytest.raises(RuntimeError, match="may not alias any inputs"):
        same(x.detach())


ONE = "(Tensor x) -> Tensor"
WRONG_OPERATORS = {
    "written": {"schema": "(Tensor(a!) x) -> ()"},
    "by name": {"schema": "(Tensor x, *, Tensor y) -> Tensor"},
    "no device": {"schema": "() -> Tensor", "device_types": "cpu"},
}


@pytest.mark.parametrize("name", WRONG_OPERATORS)
def test_custom_operators_that_are_refused(name, ns: str) -> None:
    kinds = []
    for library in (taeda, torch):
        with pytest.raises((ValueError, NotImplementedError)) as caught:
            library.library.custom_op(
                f"{ns}::{name.replace(' ', '_')}",
                lambda *args, **kwargs: None,
                mutates_args=(),
                **WRONG_OPERATORS[name],
            )
        kinds.append((caught.type, str(caught.value)[:40]))
    assert kinds[0] == kinds[1]


def test_kernels_that_are_passed_over_and_writes_that_count(ns: str) -> None:
    @custom_op(f"{ns}::counted", mutates_args={"out"})
    def counted(out: taeda.Tensor) -> None:
        out.detach().numpy()[:] = 1

    x = taeda.zeros(2)
    counted(x)
    assert (x.tolist(), x._version) == ([1.0, 1.0], 1)

    @custom_op(f"{ns}::chosen", mutates_args=())
    def chosen(x: taeda.Tensor) -> taeda.Tensor:
        return x + 1

    chosen.register_kernel("cpu", lambda x: x + 10)
    with chosen.set_kernel_enabled("cpu", False):
        assert chosen(taeda.zeros(1)).item() == 1
    assert chosen(taeda.zeros(1)).item() == 10


def test_gradients_of_tensors_in_lists(ns: str) -> None:
    @custom_op(f"{ns}::lists", mutates_args=())
    def lists(
        x: taeda.Tensor, xs: list[taeda.Tensor]
    ) -> tuple[taeda.Tensor, list[taeda.Tensor]]:
        return x * 2, [t * 3 for t in xs]

    def backward(ctx, grad, grads):
        return grad * 2, [g * 3 for g in grads]

    lists.register_autograd(backward)
    a, b, c = (taeda.ones(1, requires_grad=True) for _ in range(3))
    first, rest = lists(a, [b, c])
    (first + rest[0] + 5 * rest[1]).backward()
    assert [t.grad.item() for t in (a, b, c)] == [2, 3, 15]


def test_tags_and_the_old_ways_to_declare(ns: str) -> None:
    library = Library(ns, "DEF")
    tag = taeda.Tag
    library.define("f(Tensor x) -> Tensor", tags=(tag.pointwise, tag.core))
    ops = getattr(taeda.ops, ns)
    assert ops.f.default.tags == [tag.core, tag.pointwise]
    define(f"{ns}::g", ONE, lib=library, tags=tag.pt2_compliant_tag)
    assert ops.g.default.tags == [tag.pt2_compliant_tag]
    define(library, "h(Tensor x) -> Tensor")(lambda x: x + 1)
    impl(library, "g", "CPU")(lambda x: x + 2)
    assert (ops.h(taeda.zeros(1)).item(), ops.g(taeda.zeros(1)).item()) == (1, 2)
    made = custom_op(f"{ns}::k", lambda x: x + 1, mutates_args=(), schema=ONE)
    assert made._opoverload.tags == [tag.pt2_compliant_tag]
    for name, value in tag.__members__.items():
        assert int(getattr(torch.Tag, name)) == int(value)


def test_signatures_with_dtypes_have_a_text() -> None:
    import inspect

    def function(d: taeda.dtype, m: taeda.memory_format) -> taeda.layout: ...

    function.__annotations__ = {"d": taeda.dtype, "m": taeda.memory_format}
    assert str(inspect.signature(function)) == (
        "(d: taeda.dtype, m: taeda.memory_format)"
    )


def test_a_tuple_of_one():
    @taeda.library.custom_op("tuples::one", mutates_args=())
    def one(x: taeda.Tensor) -> tuple[taeda.Tensor]:
        return (x.clone(),)

    @one.register_fake
    def _(x):
        return (taeda.empty_like(x),)

    one.register_autograd(lambda ctx, grad: grad * 3)
    x = taeda.ones(2, requires_grad=True)
    (result,) = one(x)
    result.sum().backward()
    assert result.tolist() == [1.0, 1.0] and x.grad.tolist() == [3.0, 3.0]
    (compiled,) = taeda.compile(one, fullgraph=True)(x.detach())
    assert compiled.tolist() == [1.0, 1.0]


def test_the_device_of_a_factory_chooses_its_kernel():
    @taeda.library.custom_op("factories::f", mutates_args=(), device_types="cpu")
    def f(device: taeda.device) -> taeda.Tensor:
        return taeda.ones(3)

    assert f("cpu").tolist() == [1.0] * 3
    with pytest.raises(RuntimeError, match="f does not have a kernel registered for c"):
        f("cuda")

    @f.register_kernel("meta")
    def _(device):
        return taeda.empty(3, device="meta")

    assert f(device=taeda.device("meta")).is_meta
