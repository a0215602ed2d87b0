"""`func.functionalize`: programs that write, computed by operators that do not.

Where PyTorch computes what the program says, its functionalize is compared too.
"""

from __future__ import annotations

import pytest
import taeda
import torch
from functional_helpers import REMOVE, Log, close, copies, flat, state_of
from taeda import nn
from taeda.func import functional_call, functionalize, grad, jvp, vmap
from torch.func import functionalize as torch_functionalize

# Behaviours --------------------------------------------------------------------------


def same_as_torch(function, *shapes, remove: str = "mutations") -> None:
    """The program here as it is and functionalized, and PyTorch's.

    PyTorch's is functionalized too, where that computes what the program says.
    """
    arrays = [torch.arange(float(torch.Size(s).numel())).view(s) + 1 for s in shapes]
    ours = [taeda.tensor(a.tolist()) for a in arrays]
    eager = [taeda.tensor(a.tolist()) for a in arrays]
    wanted = function(taeda, *eager)
    found = functionalize(lambda *a: function(taeda, *a), remove=remove)(*ours)
    made = lambda *a: function(torch, *a)
    if function not in NOT_IN_TORCH:
        made = torch_functionalize(made, remove=remove)
    theirs = made(*arrays)
    assert close(wanted, found)
    assert close(eager, ours)
    pairs = zip([*flat(found), *ours], [*flat(theirs), *arrays], strict=True)
    for mine, other in pairs:
        assert mine.tolist() == other.tolist()


def select_of_transpose_of_slice(lib, x):
    y = x.clone()
    view = y[1:].transpose(0, 1).select(0, 1)
    view.add_(10)
    y.mul_(2)
    view[0] = 7
    return y, view, y[1]


def pieces(lib, x):
    y = x * 1
    a, b = y.split(2, dim=0)
    for row in a.unbind(0):
        row.mul_(3)
    b.zero_()
    c, d = y.chunk(2, 1)
    d.copy_(c)
    return y, a, b, c


def real_and_imaginary(lib, x):
    z = lib.complex(x, x + 1)
    lib.view_as_real(z)[..., 0].add_(5)
    z.imag.mul_(2)
    z.conj().mul_(2)
    return lib.view_as_real(z)


def diagonals(lib, x):
    y = x.clone()
    y.diagonal().fill_(9)
    y.view(-1)[1:3].sub_(1)
    y.squeeze().unsqueeze(0).sqrt_()
    y.t().as_strided((2,), (3,), 1).neg_()
    return y


def windows(lib, x):
    y = x.clone()
    y.view(-1).unfold(0, 2, 3).mul_(2)
    return y


def data_of_a_detached(lib, x):
    y = x * 1
    y.detach().add_(1)
    return y


def results_of_out(lib, x):
    out, other = lib.empty(0), lib.zeros(4, 4)
    lib.add(x, 1, out=out)
    lib.mul(x, 2, out=other[1:])
    return out, other


def input_and_alias(lib, x):
    x.add_(1)
    y = x.view(-1)
    y.mul_(2)
    return x, y[2:]


def constants(lib, x):
    total = lib.tensor(0.0)
    total += x.sum()
    mask = lib.zeros_like(x)
    mask[0] = 1
    mask[:, 1] += x[:, 0]
    x.masked_fill_(mask > 1, 0.5)
    x.index_put_((lib.tensor([0, 2]),), lib.tensor(3.0), accumulate=True)
    return total, mask


# PyTorch's functionalize refuses as_strided of a view and the conjugate of what it
# made, and writes zeros between windows.
NOT_IN_TORCH = {real_and_imaginary, diagonals, windows}
BEHAVIOURS = [
    select_of_transpose_of_slice,
    pieces,
    real_and_imaginary,
    diagonals,
    windows,
    data_of_a_detached,
    results_of_out,
    input_and_alias,
    constants,
]


@pytest.mark.parametrize("remove", REMOVE)
@pytest.mark.parametrize("function", BEHAVIOURS, ids=lambda f: f.__name__)
def test_a_program_gives_what_it_gives_in_torch(function, remove: str) -> None:
    shape = (3, 4) if function is not diagonals else (3, 3)
    shape = (4, 4) if function is pieces else shape
    same_as_torch(function, shape, remove=remove)


def test_the_operators_below_are_those_of_torch() -> None:
    def f(lib, x):
        y = x.view(-1)
        y.add_(1)
        return x.normal_().uniform_().zero_().fill_(1).copy_(lib.ones(2))

    from torch.utils._python_dispatch import TorchDispatchMode as TorchMode

    class Theirs(TorchMode):
        names = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.names.append(str(func))
            return func(*args, **(kwargs or {}))

    with Log() as ours:
        functionalize(lambda x: f(taeda, x))(taeda.zeros(2))
    with Theirs() as theirs:
        torch_functionalize(lambda x: f(torch, x))(torch.zeros(2))
    moving = {"aten.view.default"}  # when a base is made anew is each one's own affair
    own = [n for n in ours.names if n not in moving]
    assert own == [n for n in theirs.names if n not in moving]


def test_a_traced_graph_is_that_of_torch() -> None:
    from taeda.fx.experimental.proxy_tensor import make_fx
    from torch.fx.experimental.proxy_tensor import make_fx as torch_make_fx

    def f(a):
        b = a + 1
        c = b.view(-1)
        c.add_(1)
        b[0].mul_(2)
        return b.t()

    ours = make_fx(functionalize(f))(taeda.zeros(2, 3))
    theirs = torch_make_fx(torch_functionalize(f))(torch.zeros(2, 3))
    for graph in (ours.graph, theirs.graph):
        graph.eliminate_dead_code()
    named = lambda module: [(str(n.target), len(n.args)) for n in module.graph.nodes]
    assert named(ours) == named(theirs)
    x = taeda.randn(2, 3)
    assert taeda.equal(ours(x), f(x))


def test_a_graph_over_symbols_holds_for_other_sizes() -> None:
    from taeda.fx.experimental.proxy_tensor import make_fx

    def f(a):
        b = a + 1
        b.view(-1).add_(1)
        b[:, 0].mul_(2)
        b.t()[1].relu_()
        return b

    traced = make_fx(functionalize(f), tracing_mode="symbolic")(taeda.randn(3, 4))
    assert not any("_.default" in str(n.target) for n in traced.graph.nodes)
    for shape in ((3, 4), (7, 5)):
        x = taeda.randn(*shape)
        assert taeda.equal(traced(x), f(x))


def test_results_that_are_inputs_are_so_outside() -> None:
    def f(x):
        x.add_(1)
        return x, x.t(), x.clone()

    x = taeda.zeros(2, 3)
    same, view, copy = functionalize(f)(x)
    assert same is x
    view[0, 0] = 5
    assert x[0, 0].item() == 5
    copy.zero_()
    assert x.sum().item() == 10
    untouched = functionalize(lambda t: t[0])(x)
    assert untouched.data_ptr() == x.data_ptr()


def test_inputs_that_share_memory_share_it_inside() -> None:
    def f(a, b, c):
        a.add_(1)
        b[0].mul_(3)
        return a * 1, b * 1, c * 1

    for make in (
        lambda: (lambda x: (x, x, x.clone()))(taeda.ones(2, 2)),
        lambda: (lambda x: (x, x.t(), x[1]))(taeda.arange(4.0).view(2, 2)),
        lambda: (lambda x: (x[1:], x[:-1], x))(taeda.arange(6.0).view(3, 2)),
        lambda: (lambda x: (x[:, ::2], x[0], x))(taeda.arange(12.0).view(3, 4)),
    ):
        eager, ours = make(), make()
        wanted = f(*eager)
        for remove in REMOVE:
            ours = make()
            assert close(functionalize(f, remove=remove)(*ours), wanted)
            assert close(ours, eager)


def test_resizing() -> None:
    def smaller(x):
        y = x.clone()
        y.resize_(2)
        y.fill_(7)
        return y

    def larger(x):
        y = x[0].clone()
        y.resize_(6)
        y[3:] = 1
        return y

    def input_larger(x):
        x.resize_(3, 4)
        x[2] = 0
        x[1, 2:] = 0
        return x.sum()

    for f in (smaller, larger, input_larger):
        a, b = taeda.arange(6.0).view(2, 3), taeda.arange(6.0).view(2, 3)
        assert close(f(a), functionalize(f)(b))
        assert a.shape == b.shape
        assert close(a, b)
    with pytest.raises(RuntimeError, match="resize a view tensor to a larger size"):
        functionalize(lambda x: x.view(-1).resize_(9))(taeda.zeros(2))


def test_set_and_views_in_place() -> None:
    def other_memory(x):
        y = taeda.zeros(2, 2)
        x.set_(y)
        x.add_(1)
        return y

    def turned(x):
        x.t_()
        x[0] = 5
        x.unsqueeze_(0)
        return x.sum((0, 1))

    for f in (other_memory, turned):
        a, b = taeda.arange(6.0).view(2, 3), taeda.arange(6.0).view(2, 3)
        assert close(f(a), functionalize(f)(b))
        assert a.shape == b.shape
        assert a.stride() == b.stride()
        assert close(a, b)


def test_statistics_of_batch_norm_are_written_at_the_end() -> None:
    norm = nn.BatchNorm1d(3)
    x = taeda.randn(5, 3)
    state = state_of(norm)

    def f(state, x):
        return functional_call(norm, state, x), state["running_mean"] * 1

    wanted, eager = f(state, x), copies(state)
    found = state_of(norm)
    with Log() as below:
        assert close(functionalize(f)(found, x), wanted)
    assert close(found, eager)
    assert "aten._native_batch_norm_legit_functional.default" in below.names
    assert [n for n, _ in below.written] == ["aten.copy_.default"] * 3


def test_views_are_copies_where_they_are_removed() -> None:
    def f(x):
        y = x + 1
        z = y.view(-1)
        z.add_(1)
        return y, z

    with Log() as below:
        y, z = functionalize(f, remove="mutations_and_views")(taeda.zeros(2, 2))
    assert y.data_ptr() != z.data_ptr()
    assert y.tolist() == [[2.0, 2.0], [2.0, 2.0]]
    assert not below.written


# With other transforms ---------------------------------------------------------------


def program(x, w):
    y = x * w
    y[0].mul_(2)
    z = y.t()
    z.add_(1)
    y.diagonal().add_(w[0])
    return (y * z.t()).sin_()


@pytest.mark.parametrize("remove", REMOVE)
def test_with_other_transforms(remove: str) -> None:
    taeda.manual_seed(0)
    x, w = taeda.randn(3, 3, dtype=taeda.float64), taeda.randn(3, dtype=taeda.float64)
    f = lambda x, w: program(x, w).sum()
    make = lambda g: functionalize(g, remove=remove)
    wanted = grad(f, (0, 1))(x, w)
    assert close(make(grad(f, (0, 1)))(x, w), wanted)
    assert close(grad(make(f), (0, 1))(x, w), wanted)
    pushed = jvp(f, (x, w), (x, w))
    assert close(make(lambda a, b: jvp(f, (a, b), (a, b)))(x, w), pushed)
    assert close(jvp(make(f), (x, w), (x, w)), pushed)
    xs = taeda.randn(4, 3, 3, dtype=taeda.float64)
    mapped = taeda.stack([program(x, w) for x in xs])
    assert close(vmap(make(program), (0, None))(xs, w), mapped)
    assert close(make(vmap(program, (0, None)))(xs, w), mapped)
    each = taeda.stack([grad(f)(x, w) for x in xs])
    per_sample = vmap(grad(make(f)), (0, None))
    assert close(per_sample(xs, w), each)
    with Log() as below:
        assert close(make(per_sample)(xs, w), each)
    assert not below.written


def test_gradients_pass_through_from_outside() -> None:
    w = taeda.randn(3, requires_grad=True)
    x = taeda.randn(3, 3)
    program(x, w).sum().backward()
    wanted, w.grad = w.grad, None
    functionalize(program)(x, w).sum().backward()
    assert close(w.grad, wanted)


def test_autograd_inside_of_a_level_that_is_no_transform() -> None:
    from taeda._functorch.levels import functional_level

    x, w = taeda.randn(3, 3), taeda.randn(3)
    wanted = grad(lambda w: program(x, w).sum())(w)
    level = functional_level(is_transform=False)
    with Log() as below, level:
        x_in, w_in = level.wrap_inputs([x, w])
        w_in.requires_grad_()
        out = program(x_in, w_in).sum()
        (found,) = taeda.autograd.grad(out, [w_in])
    assert close(level.output(found), wanted)
    assert not below.written


def test_symbolic_sizes_stay_symbols() -> None:
    from taeda._functorch.levels import functional_level
    from taeda._subclasses.fake_tensor import FakeTensorMode
    from taeda.fx.experimental.symbolic_shapes import ShapeEnv

    env = ShapeEnv()
    fake = FakeTensorMode(shape_env=env)
    x = taeda.randn(4, 3)
    taeda._dynamo.mark_dynamic(x, 0)
    given = fake.from_tensor(x)
    level = functional_level()
    with fake, level:
        (inside,) = level.wrap_inputs([given])
        y = inside * 2
        y[:, 1].add_(1)
        y.transpose(0, 1)[0].relu_()
        z = y.view(-1)
        z.mul_(3)
        out = level.unwrap(y + 1)
    assert not isinstance(out.shape[0], int)
    assert str(out.shape[0]) == str(given.shape[0])
    assert not isinstance(inside.shape[0], int)


class Doubled(taeda.autograd.Function):
    """x * x with thrice the gradient, by writes."""

    @staticmethod
    def forward(x):
        y = x.clone()
        y.mul_(x)
        return y

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        out = g.clone()
        out.mul_(x).mul_(6)
        return out


def test_a_function_of_ones_own() -> None:
    def f(x):
        y = x * 1
        y[0].add_(1)
        return Doubled.apply(y).sum()

    x = taeda.tensor([1.0, 2.0])
    with Log() as below:
        assert functionalize(f)(x).item() == 8.0
        assert functionalize(grad(f))(x).tolist() == [12.0, 12.0]
    assert not below.written
    assert grad(functionalize(f))(x).tolist() == [12.0, 12.0]
    given = x.clone().requires_grad_()
    functionalize(f)(given).backward()
    assert given.grad.tolist() == [12.0, 12.0]


class Same(taeda.autograd.Function):
    """Gives back its argument."""

    @staticmethod
    def forward(x):
        return x

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, g):
        return g * 2


def test_a_function_that_returns_its_argument_inside_of_a_recorded_level() -> None:
    from taeda._functorch.levels import functional_level

    level = functional_level(is_transform=False)
    with level:
        (x,) = level.wrap_inputs([taeda.ones(3)])
        x.requires_grad_()
        y = Same.apply(x * 1)
        z = Doubled.apply(y)
        (g,) = taeda.autograd.grad(z.sum(), [x])
    assert level.output(g).tolist() == [12.0] * 3


# Errors ------------------------------------------------------------------------------


def test_errors() -> None:
    captured = taeda.zeros(2)

    def into_captured(x):
        captured.add_(x)

    with pytest.raises(RuntimeError, match="mutating a non-functional tensor"):
        functionalize(into_captured)(taeda.ones(2))

    def by_itself(x):
        captured.add_(1)
        return captured + x

    assert functionalize(by_itself)(taeda.ones(2)).tolist() == [2.0, 2.0]
    assert captured.tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="received invalid argument for remove=x"):
        functionalize(by_itself, remove="x")
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        functionalize(lambda x: x.add_(taeda.ones(3, 2)))(taeda.ones(2))
    with pytest.raises(RuntimeError, match="can't be cast"):
        functionalize(lambda x: x.add_(1.5))(taeda.ones(2, dtype=taeda.int64))
    with pytest.raises(RuntimeError, match="more than one element of the written-to"):
        functionalize(lambda x: x.expand(3, 2).add_(1))(taeda.ones(2))
    with pytest.raises(RuntimeError, match="requires_grad"):
        functionalize(lambda x: x.clone().requires_grad_())(taeda.ones(2))


def test_an_error_inside_leaves_no_level_and_no_write() -> None:
    x = taeda.zeros(2)

    def f(x):
        x.add_(1)
        raise KeyError("stop")

    with pytest.raises(KeyError):
        functionalize(f)(x)
    assert x.tolist() == [0.0, 0.0]
    assert taeda._C._functorch.depth() == 0


def test_a_wrapper_that_escaped_is_refused() -> None:
    kept = []
    functionalize(kept.append)(taeda.ones(2))
    with pytest.raises(RuntimeError, match="functionalize level that has ended"):
        kept[0] + 1


def test_an_operator_of_a_library_without_a_functional_form() -> None:
    library = taeda.library.Library("functional_test", "DEF")
    library.define("bump_(Tensor(a!) self, Tensor by) -> Tensor(a!)")
    library.impl("bump_", lambda t, by: t.add_(by), "CPU")

    def f(x):
        y = x.clone()
        taeda.ops.functional_test.bump_(y[1:], x[1:])
        return y

    x = taeda.arange(4.0)
    assert close(functionalize(f)(x), f(x))
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0]
    with Log() as below:
        functionalize(f)(x)
    # It is called on a copy, which nobody else has.
    assert [n for n, _ in below.written] == ["functional_test.bump_.default"]


def test_printing_and_numbers_inside() -> None:
    seen = []

    def f(x):
        y = x.clone()
        z = y[1:]
        y.add_(1)
        seen.extend([repr(z), z.sum().item(), bool(z[0] > 1), y.tolist()])
        return z

    functionalize(f)(taeda.arange(3.0))
    text, total, flag, values = seen
    assert text.startswith("FunctionalTensor(lvl=1, value=")
    assert "tensor([2., 3.])" in text
    assert (total, flag, values) == (5.0, True, [1.0, 2.0, 3.0])
