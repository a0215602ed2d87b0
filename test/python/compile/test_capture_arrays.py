"""NumPy in captured functions."""

from __future__ import annotations

import numpy as np
import pytest
import taeda
from taeda.compiler._frames import capture


def through_numpy(x):
    y = x.numpy()
    z = np.sin(y) + np.mean(y, axis=0)
    return taeda.from_numpy(z) * 2


def with_methods(x):
    y = x.numpy()
    parts = np.split(y, 2, axis=1)
    total = y.sum(axis=1, keepdims=True) + y.max() - parts[0].std()
    rows = [row * 2 for row in y]
    return taeda.as_tensor(total.astype(np.float64)), np.stack(rows).T, y[1:, 0]


def written(x):
    y = x.numpy()
    y += 1
    y[0] = 5
    np.multiply(y, 2, out=y)
    return x + 1


def of_arrays(a, b):
    return np.matmul(a, b) + 1, taeda.tensor(a), a.shape, a.dtype, a


scale, table = np.float64(2.5), np.array([[1.0, 2.0], [3.0, 4.0]])


def with_constants(x):
    made = np.array([1.0, 2.0], dtype=np.float32)
    return x * float(scale) + np.pi, taeda.tensor(made), taeda.from_numpy(table @ table)


def close(a, b):
    if isinstance(a, tuple):
        assert len(a) == len(b)
        for left, right in zip(a, b, strict=True):
            close(left, right)
    elif isinstance(a, np.ndarray):
        assert type(a) is np.ndarray and a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    elif isinstance(a, taeda.Tensor):
        assert a.dtype == b.dtype and taeda.equal(a, b)
    else:
        assert a == b


def tensor():
    return taeda.arange(8.0).view(2, 4) / 3


def arrays():
    return np.arange(6.0).reshape(2, 3), np.ones((3, 2))


@pytest.mark.parametrize("with_module", [False, True])
@pytest.mark.parametrize(
    ("function", "make"),
    [
        *((f, lambda: (tensor(),)) for f in (through_numpy, with_methods, written)),
        *((of_arrays, arrays), (with_constants, lambda: (taeda.ones(2),))),
    ],
)
def test_calls_of_numpy_are_nodes(function, make, with_module):
    backend = (lambda gm, inputs: gm.forward) if with_module else None
    compiled = capture(function, fullgraph=True, backend=backend)
    for _ in range(2):
        mine, theirs = make(), make()
        close(compiled(*mine), function(*theirs))
        close(mine, theirs)
    assert compiled.explain()["graphs"] == 1


def test_shapes_and_dtypes_of_arrays_are_guarded():
    compiled = capture(lambda a: (a.shape, str(a.dtype), a + 1))
    for made in (np.ones(3), np.ones(4), np.ones(3, dtype=np.float32)):
        shape, dtype, out = compiled(made)
        assert (shape, dtype) == (made.shape, str(made.dtype))
        np.testing.assert_array_equal(out, made + 1)


def test_reading_an_element_ends_a_graph():
    def program(x):
        y = x.numpy() * 2
        if y.sum() > 0:
            return x + 1, int(y[0])
        return x - 1, y.tolist()

    compiled = capture(program)
    for sign in (1, -1):
        x = taeda.ones(2) * sign
        close(compiled(x)[0], program(x)[0])
        assert compiled(x)[1] == program(x)[1]


def test_arrays_of_tensors_with_gradients_are_refused():
    x = taeda.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="requires grad"):
        capture(lambda v: v.numpy())(x)


def made_by_c(a):
    return np.array(a) * 2, np.asarray([a, a]), np.ascontiguousarray(a) + 1


def numbers_of_types(a):
    return np.float32(a.sum()), np.int64(a.max()) + 1


def filled_with_elements(a):
    return np.full(3, a[1]), np.full(2, a.sum()) * a[0]


def chosen_and_written(a):
    made = np.arange(5)
    total = np.ones(3)
    total *= a
    total[0] = a[2]
    return made[a.astype(int)], total


def views_of_elements(a):
    return list(a.flat), bytes(memoryview(a)), np.ndarray((3,), float, a)


@pytest.mark.parametrize(
    "function",
    [
        *(made_by_c, numbers_of_types, filled_with_elements),
        *(chosen_and_written, views_of_elements),
    ],
)
def test_what_c_code_reads_of_arrays_is_what_they_hold(function):
    compiled = capture(function)
    for scale in (1.0, 1.5):
        a = (np.arange(3.0) + 1) * scale
        close(compiled(a), function(a))


def test_numbers_that_differ_are_numbers_to_numpy():
    compiled = capture(lambda a, n: np.where(a > 1, a, n))
    a = np.arange(3.0)
    for n in (5, 6, 7):
        out = compiled(a, n)
        assert out.dtype == a.dtype
        np.testing.assert_array_equal(out, np.where(a > 1, a, n))


@pytest.mark.parametrize("kind", ["float64", "float32", "int64"])
def test_numbers_of_numpy_in_graphs_of_backends(kind) -> None:
    number = getattr(np, kind)(4)

    def backend(gm, inputs):
        gm.recompile()
        return gm.forward

    def program(x):
        return x * np.sqrt(4) + getattr(np, kind)(4)

    compiled = taeda.compile(program, backend=backend, fullgraph=True)
    x = taeda.ones(3)
    assert compiled(x).tolist() == program(x).tolist() == [2 + float(number)] * 3
