"""Operators of lists against PyTorch's: values, gradients and refusals."""

from __future__ import annotations

import numpy as np
import pytest
import taeda
import torch
from tolerance import rounding

CLOSE = rounding("float32", 32)
SHAPES = ((2, 3), (1,), (4,))
NUMBERS = (0.5, 2.0, 3.0)
# A kernel and a composite: no calls of an element.
NORMS = {"_foreach_norm", "_foreach_powsum"}
# Of matrices only.
PRODUCTS = {"_foreach_mm"}
# PyTorch differentiates these one by one only; its formula of addcdiv for lists takes
# elements of a tensor where it means tensors of the list.
ONE_BY_ONE = {
    *(("_foreach_copy_", ""), ("_foreach_addcdiv", "Tensor")),
    *(("_foreach_addcdiv_", "Tensor"), ("_foreach_addcmul", "Tensor")),
    *(("_foreach_addcmul_", "Tensor"), ("_foreach_maximum_", "Scalar")),
    *(("_foreach_maximum_", "ScalarList"), ("_foreach_minimum_", "Scalar")),
    *(("_foreach_minimum_", "ScalarList"), ("_foreach_addcdiv", "Scalar")),
    ("_foreach_addcdiv", "ScalarList"),
}


def _overloads() -> list[tuple[str, str]]:
    """All overloads of operators of lists that are there."""
    rows = taeda._C._op_schemas()
    return sorted(
        (name, overload)
        for name, overload, _ in rows
        if name.startswith("_foreach_") and name not in NORMS | PRODUCTS
    )


def _tensors(lib, seed: int, requires_grad: bool) -> list:
    rng = np.random.default_rng(seed)
    arrays = [rng.uniform(0.1, 0.9, shape).astype(np.float32) for shape in SHAPES]
    leaves = [lib.tensor(a) for a in arrays]
    return [x.requires_grad_() if requires_grad else x for x in leaves]


def _arguments(lib, overload) -> tuple[list, dict, list]:
    """Arguments of an overload, and the leaves among them."""
    record, leaves, args, kwargs = overload.record, [], [], {}
    packed = record.name.endswith("Tensor") and "addc" in record.name
    for place, a in enumerate(record.arguments):
        if a.type == "Tensor[]":
            value = _tensors(lib, place, requires_grad=True)
            leaves += value
        elif a.type == "Tensor":
            value = lib.tensor(NUMBERS if packed else 0.7)
        elif a.type == "Scalar[]":
            value = list(NUMBERS)
        elif a.type == "Scalar":
            value = 0.3
        else:
            continue
        if hasattr(a, "keyword_only"):
            kwargs[a.name] = value
        else:
            args.append(value)
    return args, kwargs, leaves


def _operator(lib, name: str, overload: str):
    return getattr(getattr(lib.ops.aten, name), overload or "default")


def _one_by_one(name: str, overload: str):
    """PyTorch's element operator in a loop, as an operator of lists."""
    record = _operator(taeda, name, overload).record
    element = record.element.name.removeprefix("aten::").partition(".")
    # PyTorch's maximum has neither an overload for numbers nor a form in place.
    plain = element[0].strip("_")
    tensors = plain in ("maximum", "minimum")
    call = _operator(torch, *((plain, "") if tensors else (element[0], element[2])))
    names = [a.name for a in call._schema.arguments]

    def function(*args):
        results = []
        for i in range(len(SHAPES)):
            lists = (list, torch.Tensor)
            given = [a[i] if isinstance(a, lists) else a for a in args]
            if tensors:
                given[1] = torch.as_tensor(given[1])
                given[0].copy_(call(given[0].clone(), given[1]))
                continue
            options = {n: float(a) for n, a in zip(names[3:], given[3:], strict=False)}
            results.append(call(*given[:3], **options))
        return None if name.endswith("_") else results

    return function


def _run(lib, name: str, overload: str) -> tuple[list, list]:
    """Results and the gradients of their sum."""
    args, kwargs, leaves = _arguments(lib, _operator(taeda, name, overload))
    function = _operator(lib, name, overload)
    if lib is torch and (name, overload) in ONE_BY_ONE:
        function = _one_by_one(name, overload)
    if name.endswith("_"):
        args[0] = [x.clone() for x in args[0]]
        assert function(*args, **kwargs) is None
        results = args[0]
    else:
        results = list(function(*args, **kwargs))
    reached = [r for r in results if r.requires_grad]
    if not reached:
        return results, []
    grads = lib.autograd.grad(sum(r.sum() for r in reached), leaves, allow_unused=True)
    return results, list(grads)


def _array(x) -> np.ndarray | None:
    return None if x is None else x.detach().numpy()


@pytest.mark.parametrize(("name", "overload"), _overloads())
def test_values_and_gradients_are_torchs(name: str, overload: str) -> None:
    ours, our_grads = _run(taeda, name, overload)
    theirs, their_grads = _run(torch, name, overload)
    assert len(ours) == len(SHAPES) and len(our_grads) == len(their_grads)
    for a, b in zip(ours + our_grads, theirs + their_grads, strict=True):
        if a is None or b is None:
            # Where nothing is passed on, one of both may say so by zeros.
            assert all(x is None or not x.any() for x in (a, b))
            continue
        np.testing.assert_allclose(_array(a), _array(b), rtol=CLOSE, atol=CLOSE)


@pytest.mark.parametrize("name", ["maximum", "minimum", "clamp_min", "clamp_max"])
@pytest.mark.parametrize("kind", ["Scalar", "ScalarList", "List"])
def test_gradients_where_both_are_the_same(name: str, kind: str) -> None:
    def gradients(lib):
        leaves = [lib.tensor([1.0, 2.0, 3.0]).requires_grad_() for _ in range(2)]
        bound = {"Scalar": 2.0, "ScalarList": [2.0], "List": [leaves[1].flip(0)]}[kind]
        result = getattr(lib, f"_foreach_{name}")(leaves[:1], bound)
        grads = lib.autograd.grad(result[0].sum(), leaves, allow_unused=True)
        return [None if g is None else g.tolist() for g in grads]

    assert gradients(taeda) == gradients(torch)


def test_all_overloads_were_found() -> None:
    assert len(_overloads()) == 143


@pytest.mark.parametrize("ord", [2, 3, 0, -1, float("inf")])
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_sums_of_powers(ord, dtype) -> None:
    for options in ({}, {"dtype": "float64"}):
        if ord == -1 and dtype == "complex64":
            continue

        def run(lib, options=options):
            given = {k: getattr(lib, v) for k, v in options.items()}
            lists = [[1.0, -2.0, 0.5], [[3.0]], []]
            x = [lib.tensor(v, dtype=getattr(lib, dtype)) for v in lists]
            return [t.tolist() for t in lib._foreach_powsum(x, ord, **given)]

        np.testing.assert_allclose(run(taeda), run(torch), rtol=CLOSE)
    with pytest.raises(NotImplementedError, match="powsum"):
        taeda._foreach_powsum([taeda.tensor([1])], 2)


def test_products_of_matrices() -> None:
    def run(lib):
        x = [lib.ones(2, 3, requires_grad=True), lib.full((1, 1), 2.0)]
        y = [lib.arange(6.0).reshape(3, 2), lib.full((1, 2), 3.0)]
        found = lib._foreach_mm(x, y)
        slope = lib.autograd.grad(found[0].sum(), x[0])
        return [t.tolist() for t in (*found, *slope)]

    assert run(taeda) == run(torch)
    for lib in (taeda, torch):
        with pytest.raises(RuntimeError):
            lib._foreach_mm([lib.ones(3)], [lib.ones(3)])


REFUSALS = {
    "empty": lambda lib, x: lib._foreach_abs_([]),
    "empty_exponents": lambda lib, x: lib._foreach_pow(2.0, []),
    "lists": lambda lib, x: lib._foreach_add([x], [x, x]),
    "third_list": lambda lib, x: lib._foreach_lerp_([x], [x], [x, x]),
    "numbers": lambda lib, x: lib._foreach_mul_([x], [1.0, 2.0]),
    "numbers_of_lerp": lambda lib, x: lib._foreach_lerp([x], [x], [1.0, 2.0]),
    "numbers_in_a_tensor": lambda lib, x: lib._foreach_addcdiv(
        [x], [x], [x], lib.ones(2)
    ),
    "dims_of_numbers": lambda lib, x: lib._foreach_addcmul_(
        [x], [x], [x], lib.ones(1, 1)
    ),
    "strides_of_numbers": lambda lib, x: lib._foreach_addcmul_(
        [x, x], [x, x], [x, x], lib.ones(4)[::2]
    ),
    "single": lambda lib, x: lib._foreach_div([x], lib.ones(2)),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refusals_are_torchs(case: str) -> None:
    with pytest.raises(RuntimeError) as theirs:
        REFUSALS[case](torch, torch.ones(2))
    with pytest.raises(RuntimeError) as ours:
        REFUSALS[case](taeda, taeda.ones(2))
    # Ours goes on with the lengths where PyTorch's ends.
    assert str(ours.value).startswith(str(theirs.value).splitlines()[0].rstrip("."))


def test_lists_are_mapped() -> None:
    rows = taeda.arange(6.0).reshape(3, 2)
    mapped = taeda.vmap(lambda x, y: taeda._foreach_mul([x, y], [y, y])[0])
    assert taeda.equal(mapped(rows, rows + 1), rows * (rows + 1))


@pytest.mark.parametrize("order", [0, 1, 2, 3.5, float("inf")])
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_norms_of_complex_tensors(dtype, order) -> None:
    rng = np.random.default_rng(3)
    parts = [(rng.normal(size=s), rng.normal(size=s)) for s in SHAPES]
    arrays = [(a + 1j * b).astype(dtype) for a, b in parts]
    found = taeda._foreach_norm([taeda.tensor(a) for a in arrays], order)
    for norm, array in zip(found, arrays, strict=True):
        expected = np.linalg.norm(array.ravel(), order)
        assert norm.dtype == taeda.tensor(array).abs().dtype
        assert norm.item() == pytest.approx(expected, rel=1e-5)
