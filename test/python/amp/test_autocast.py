"""Scopes of autocast: nesting, islands, the cache of casts, threads and errors."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import warnings
import weakref

import pytest
import taeda
import torch

LOW = ("bfloat16", "float16")


@pytest.fixture(autouse=True)
def _off_afterwards():
    yield
    assert not taeda.is_autocast_enabled("cpu")
    assert taeda.get_autocast_dtype("cpu") == taeda.bfloat16
    assert taeda.is_autocast_cache_enabled()
    assert taeda.autocast_increment_nesting() == 1
    assert taeda.autocast_decrement_nesting() == 0


def square(m):
    x = m.ones(2, 2)
    return (x @ x).dtype


@pytest.mark.parametrize("low", LOW)
def test_scopes_nest_and_have_islands(low):
    def dtypes(m):
        found = []
        with m.autocast("cpu", getattr(m, low)):
            found.append(square(m))
            with m.autocast("cpu", enabled=False):
                found.append(square(m))
                with m.autocast("cpu", m.bfloat16):
                    found.append(square(m))
                found.append(square(m))
            found += [square(m), m.get_autocast_dtype("cpu")]
        return [str(t).rpartition(".")[2] for t in [*found, square(m)]]

    assert dtypes(taeda) == dtypes(torch)


def test_as_a_decorator_it_nests_in_itself():
    seen = []

    @taeda.autocast("cpu")
    def inner(depth):
        """Says its dtype."""
        seen.append(square(taeda))
        if depth > 0:
            inner(depth - 1)

    inner(2)
    assert seen == [taeda.bfloat16] * 3
    assert square(taeda) == taeda.float32
    assert inner.__doc__ == "Says its dtype."


def test_an_exception_restores_the_state():
    with pytest.raises(ZeroDivisionError):
        with taeda.autocast("cpu", taeda.float16, cache_enabled=False):
            with taeda.autocast("cpu", enabled=False):
                raise ZeroDivisionError
    assert square(taeda) == taeda.float32


def test_a_failing_operator_leaves_autocast_on():
    with taeda.autocast("cpu"):
        with pytest.raises(RuntimeError):
            taeda.ones(2, 3) @ taeda.ones(2, 3)
        assert square(taeda) == taeda.bfloat16


def test_the_state_is_the_threads_own():
    found = {}
    entered, asked = threading.Event(), threading.Event()

    def other():
        found["before"] = taeda.is_autocast_enabled("cpu"), square(taeda)
        with taeda.autocast("cpu", taeda.float16):
            entered.set()
            asked.wait(30)
            found["inside"] = square(taeda)

    with taeda.autocast("cpu", taeda.bfloat16):
        thread = threading.Thread(target=other)
        thread.start()
        entered.wait(30)
        found["here"] = square(taeda)
        asked.set()
        thread.join()
        found["after"] = square(taeda)
    assert found == {
        "before": (False, taeda.float32),
        "inside": taeda.float16,
        "here": taeda.bfloat16,
        "after": taeda.bfloat16,
    }


# What is cast ---------------------------------------------------------------------

# Expressions of `m`, f (float32), h (float16), b (bfloat16), d (float64), i (int32).
MIXED = [
    "f @ d",
    "d @ d",
    "h @ b",
    "i @ i",
    "m.cat([f, h])",
    "m.cat([b, d])",
    "m.cat([b, i])",
    "m.cat([i, i])",
    "m.stack([b, b])",
    "m.stack([f, b])",
    "m.prod(b)",
    "m.prod(b, dtype=m.bfloat16)",
    "m.mm(f, f, out=m.empty(2, 2))",
    "m.empty(2, 2).addmm_(f, f)",
    "m.empty(2, 2).addbmm_(f[None], f[None])",
    "m.linalg.vecdot(f, f, out=m.empty(2))",
    "m.nn.functional.mse_loss(b, b)",
    "m.nn.functional.mse_loss(d, d)",
    "m.nn.functional.linear(f, b, h[0])",
    "m.mm(f.to(m.complex64), f.to(m.complex64))",
    "f + b",
    "m.softmax(b, 0)",
    "m.nn.functional.layer_norm(b, (2,))",
    "m.einsum('ij,jk', f, f)",
    "m.nn.functional.gelu(f)",
    "f.index_copy(0, m.tensor([0]), b[:1])",
]


@pytest.mark.parametrize("expression", MIXED)
def test_mixed_arguments(expression):
    def run(m):
        f = m.ones(2, 2)
        values = {
            "m": m,
            "f": f,
            "h": f.half(),
            "b": f.bfloat16(),
            "d": f.double(),
            "i": f.int(),
        }
        try:
            with m.autocast("cpu", m.bfloat16):
                return str(eval(expression, values).dtype).rpartition(".")[2]
        except RuntimeError:
            return "RuntimeError"

    assert run(taeda) == run(torch)


def test_writing_forms_compute_in_the_dtypes_given():
    x = taeda.rand(2, 3, 3)
    expected = taeda.addbmm(taeda.ones(3, 3), x, x)
    with taeda.autocast("cpu"):
        assert taeda.equal(taeda.ones(3, 3).addbmm_(x, x), expected)
        out = taeda.empty(0)
        taeda.addbmm(taeda.ones(3, 3), x, x, out=out)
    assert taeda.equal(out, expected)


def test_promotion_of_two_small_dtypes_is_an_error():
    x = taeda.ones(2)
    for tensors in ([x.half(), x.half()], [x.bfloat16(), x.half()]):
        with taeda.autocast("cpu", taeda.bfloat16):
            with pytest.raises(
                RuntimeError, match=r"cat.*Unexpected floating.*float16"
            ):
                taeda.cat(tensors)


NETWORKS = {
    "LSTM": lambda m: m.nn.LSTM(3, 4, num_layers=2),
    "GRU": lambda m: m.nn.GRU(3, 4, num_layers=2, bidirectional=True),
    "RNN": lambda m: m.nn.RNN(3, 4),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_recurrent_networks(name):
    def run(m):
        m.manual_seed(0)
        with m.autocast("cpu"):
            out, state = NETWORKS[name](m)(m.ones(5, 2, 3))
        states = state if isinstance(state, tuple) else (state,)
        return [str(t.dtype).rpartition(".")[2] for t in (out, *states)]

    try:
        expected = run(torch)
    except RuntimeError as error:
        # PyTorch's oneDNN has no LSTM of bfloat16 for processors without AVX-512;
        # on others all three are of the lower precision.
        assert name == "LSTM" and "primitive descriptor" in str(error)
        expected = ["bfloat16"] * 3
    assert run(taeda) == expected


def test_attention_modules():
    def run(m):
        x = m.ones(2, 3, 4)
        attention = m.nn.MultiheadAttention(4, 2, batch_first=True)
        layer = m.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
        with m.autocast("cpu"):
            found = [*attention(x, x, x), layer(x), m.nn.LSTMCell(4, 4)(x[0])[1]]
        return [str(t.dtype).rpartition(".")[2] for t in found]

    assert run(taeda) == run(torch)


# Gradients ------------------------------------------------------------------------


@pytest.mark.parametrize("low", LOW)
def test_gradients_have_the_parameters_dtypes(low):
    def run(m):
        weight = m.full((4, 4), 0.25, requires_grad=True)
        x = m.full((3, 4), 0.5, requires_grad=True)
        with m.autocast("cpu", getattr(m, low)):
            y = m.nn.functional.linear(x, weight)
            loss = m.nn.functional.mse_loss(y @ weight, m.zeros(3, 4))
        loss.backward()
        assert weight.grad.dtype == x.grad.dtype == m.float32
        return str(y.dtype)[-8:], loss.tolist(), weight.grad.tolist(), x.grad.tolist()

    assert run(taeda) == run(torch)


def test_backward_computes_in_the_dtype_of_forward():
    x = taeda.randn(64, 64, requires_grad=True)
    with taeda.autocast("cpu"):
        y = x @ x
    grad = taeda.randn(64, 64).bfloat16()
    (found,) = taeda.autograd.grad(y, x, grad)
    low = x.detach().bfloat16()
    assert found.dtype == taeda.float32
    # Two products of bfloat16, whose sum is one too: the cast of x is shared. Each of
    # the three is rounded once, by half of 2**-7 of itself at most.
    parts = [(grad @ low.T).float(), (low.T @ grad).float()]
    error = (found - sum(parts)).abs()
    assert (error <= 2.0**-7 * (parts[0].abs() + parts[1].abs())).all()


# The cache ------------------------------------------------------------------------


def casts_of(function) -> int:
    """How often `function` casts, by the nodes of its result's graph."""
    seen, todo = set(), [function().grad_fn]
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        todo += [edge[0] for edge in node.next_functions]
    return sum(node.name().startswith("ToCopyBackward") for node in seen)


def test_a_weight_is_cast_once_in_a_scope():
    weight = taeda.ones(2, 2, requires_grad=True)

    def thrice():
        x = taeda.ones(2, 2)
        for _ in range(3):
            x = taeda.mm(x, weight)
        return x

    for cache, casts in ((True, 1), (False, 3)):
        with taeda.autocast("cpu", cache_enabled=cache):
            assert casts_of(thrice) == casts
    with taeda.autocast("cpu"):
        with taeda.autocast("cpu"):
            first = taeda.mm(weight, weight).grad_fn.next_functions[0][0]
        second = taeda.mm(weight, weight).grad_fn.next_functions[0][0]
        assert first is second
        taeda.clear_autocast_cache()
        third = taeda.mm(weight, weight).grad_fn.next_functions[0][0]
        assert third is not first


def test_what_is_no_leaf_is_cast_each_time():
    weight = taeda.ones(2, 2, requires_grad=True)
    with taeda.autocast("cpu"):
        double = weight * 2
        assert casts_of(lambda: taeda.mm(double, double)) == 2


def test_a_cast_made_without_grad_mode_is_made_again():
    weight = taeda.ones(2, 2, requires_grad=True)
    with taeda.autocast("cpu"):
        with taeda.no_grad():
            taeda.mm(weight, weight)
        loss = taeda.mm(weight, weight).sum()
    loss.backward()
    assert weight.grad is not None


def test_a_weight_that_was_written_is_cast_again():
    weight = taeda.ones(2, 2, requires_grad=True)
    with taeda.autocast("cpu"):
        before = taeda.mm(weight, weight)
        with taeda.no_grad():
            weight.mul_(2)
        after = taeda.mm(weight, weight)
    assert before[0, 0].item() == 2 and after[0, 0].item() == 8


def test_the_cache_ends_with_the_outermost_scope():
    cast = []
    weight = taeda.ones(2, 2, requires_grad=True)
    with taeda.autocast("cpu"):
        node = taeda.mm(weight, weight).grad_fn.next_functions[0][0]
        cast.append(weakref.ref(weight))
    del node, weight
    gc.collect()
    assert cast[0]() is None


def test_a_scope_that_is_never_left_harms_nothing():
    program = (
        "import taeda, threading\n"
        "def work():\n"
        "    scope = taeda.autocast('cpu')\n"
        "    scope.__enter__()\n"
        "    weight = taeda.ones(2, 2, requires_grad=True)\n"
        "    weight.mark = [weight]\n"
        "    taeda.mm(weight, weight)\n"
        "thread = threading.Thread(target=work)\n"
        "thread.start(); thread.join(); work()\n"
        "print('done')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


# Levels ---------------------------------------------------------------------------


def test_transforms_see_cast_arguments():
    x = taeda.randn(5, 3)
    weight = taeda.randn(3, 3)
    with taeda.autocast("cpu"):
        product = taeda.vmap(lambda row: taeda.nn.functional.linear(row, weight))(x)
        grad = taeda.func.grad(lambda w: (x @ w).sum())(weight)
    assert product.dtype == taeda.bfloat16
    assert grad.dtype == taeda.float32
    expected = taeda.nn.functional.linear(x.bfloat16(), weight.bfloat16())
    # Sums in float32 in another order, rounded once: a step of bfloat16 apart.
    assert taeda.allclose(product.float(), expected.float(), rtol=2.0**-7, atol=1e-5)


# Errors and warnings --------------------------------------------------------------


def test_a_dtype_that_is_not_small_warns_and_disables():
    for dtype in (taeda.float32, taeda.float64, taeda.int8):
        with pytest.warns(UserWarning, match="In CPU autocast, but the target dtype"):
            scope = taeda.autocast("cpu", dtype)
        with scope:
            assert square(taeda) == taeda.float32


def test_a_device_that_is_not_there_warns_and_disables():
    with pytest.warns(UserWarning, match="CUDA is not available"):
        with taeda.autocast("cuda"):
            assert not taeda.is_autocast_enabled("cuda")


def test_devices_without_autocast_are_errors():
    with pytest.raises(RuntimeError, match="unsupported autocast device_type 'meta'"):
        taeda.autocast("meta")
    with pytest.raises(RuntimeError, match="unknown device type for autocast: 'meta'"):
        taeda.is_autocast_enabled("meta")
    with pytest.raises(RuntimeError, match="Expected one of cpu, cuda"):
        taeda.autocast("x")
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
        taeda.autocast(1)


@pytest.mark.parametrize(
    "device", "cpu cuda xpu mps hpu mtia maia ipu xla privateuseone".split()
)
def test_the_state_of_each_device(device):
    def run(m):
        at_first = m.is_autocast_enabled(device), str(m.get_autocast_dtype(device))[-8:]
        m.set_autocast_enabled(device, True)
        on = m.is_autocast_enabled(device)
        m.set_autocast_enabled(device, False)
        return *at_first, on, m.is_autocast_enabled(device)

    assert run(taeda) == run(torch)
    assert taeda.amp.is_autocast_available(device)


def test_old_names_of_the_switches():
    with pytest.warns(DeprecationWarning, match="is_autocast_cpu_enabled"):
        assert taeda.is_autocast_cpu_enabled() is False
    with pytest.warns(DeprecationWarning, match=r"get_autocast_dtype\('cpu'\)"):
        assert taeda.get_autocast_cpu_dtype() == taeda.bfloat16
    with pytest.warns(DeprecationWarning, match=r"get_autocast_dtype\('cuda'\)"):
        assert taeda.get_autocast_gpu_dtype() == taeda.float16
    with pytest.warns(DeprecationWarning, match="set_autocast_cpu_enabled"):
        taeda.set_autocast_cpu_enabled(False)
    taeda.set_autocast_enabled(True)
    assert taeda.is_autocast_enabled()
    taeda.set_autocast_enabled(False)
    with pytest.raises(TypeError, match="set_autocast_enabled"):
        taeda.set_autocast_enabled("cpu")


def test_old_modules():
    with pytest.warns(FutureWarning, match=r"taeda.amp.autocast\('cpu', args"):
        with taeda.cpu.amp.autocast(dtype=taeda.float16):
            assert square(taeda) == taeda.float16
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert not taeda.cuda.amp.GradScaler().is_enabled()
        assert taeda.cpu.amp.GradScaler().is_enabled()
        assert taeda.cuda.amp.custom_bwd(lambda ctx: 1) is not None


# Checkpoints -------------------------------------------------------------------


def test_checkpoint_recomputes_under_the_same_autocast():
    from taeda.utils.checkpoint import checkpoint

    weight = taeda.ones(2, 2, requires_grad=True)
    seen = []

    def body(x):
        y = x @ weight
        seen.append(y.dtype)
        return y * 2

    for reentrant in (True, False):
        x = taeda.ones(2, 2, requires_grad=True)
        with taeda.autocast("cpu", taeda.float16):
            y = checkpoint(body, x, use_reentrant=reentrant)
        y.sum().backward()
    # Each body runs twice; the second may end where nothing more is saved.
    assert len(seen) >= 3 and set(seen) == {taeda.float16}
