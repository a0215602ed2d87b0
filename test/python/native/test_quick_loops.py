"""Loops with a shorter way for some operands give what the long way gives."""

import itertools

import pytest
import taeda

NAN = float("nan")
ARITHMETIC = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
}


def _random(*shape, dtype=taeda.float32):
    return taeda.randn(*shape, generator=taeda.Generator().manual_seed(7)).to(dtype)


@pytest.mark.parametrize("name", ARITHMETIC)
@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64, taeda.float16])
@pytest.mark.parametrize("length", [3, 63, 64, 700])
def test_one_value_a_row(name, dtype, length):
    f = ARITHMETIC[name]
    x = _random(5, length, dtype=dtype)
    column = _random(5, 1, dtype=dtype) + 2
    full = column.expand(5, length).contiguous()
    turned = x.t().contiguous().t()
    for a in (x, turned, x[:, ::2]):
        b = full[:, : a.shape[1]]
        assert taeda.equal(f(a, column), f(a, b))
        assert taeda.equal(f(column, a), f(b, a))
    assert taeda.equal(f(x[0], 1.5), f(x[0], taeda.full_like(x[0], 1.5)))
    out = taeda.empty(length, 5, dtype=dtype).t()
    getattr(taeda, name)(x, column, out=out)
    assert taeda.equal(out, f(x, full))


def test_two_single_operands():
    a, b = _random(300, 1), _random(1, 1)
    assert taeda.equal(a.expand(300, 200) + b, (a + b).expand(300, 200))
    assert taeda.equal(
        taeda.minimum(_random(300).half(), taeda.tensor([9])).isnan().any(),
        taeda.tensor(False),
    )


@pytest.mark.parametrize("dtype", [taeda.float16, taeda.bfloat16])
def test_numbers_are_rounded_to_halves_but_in_products(dtype):
    number = 0.5245436828511515
    x = taeda.linspace(-8, 8, 801).to(dtype)
    wide, near = x.float(), float(taeda.tensor(number, dtype=dtype))
    zero_dim = taeda.tensor(number)
    for f in (ARITHMETIC["add"], ARITHMETIC["sub"], taeda.fmod, taeda.remainder):
        want = f(wide, near).to(dtype)
        assert taeda.equal(f(x, number), want) and taeda.equal(f(x, zero_dim), want)
    for f in (ARITHMETIC["mul"], ARITHMETIC["div"]):
        want = f(wide, number).to(dtype)
        assert taeda.equal(f(x, number), want) and taeda.equal(f(x, zero_dim), want)
    first = taeda.mul(zero_dim, x)  # only a second operand is taken as it is
    assert taeda.equal(first, (wide * near).to(dtype))
    weighed = taeda.lerp(wide, wide * 2, number).to(dtype)
    assert taeda.equal(taeda.lerp(x, x * 2, number), weighed)
    assert bool(taeda.tensor([number], dtype=dtype) == number)


def test_integers_are_rounded_to_halves():
    x = taeda.zeros(3, dtype=taeda.float16)
    assert (x + taeda.tensor([2049, 2050, 2051])).tolist() == [2048, 2050, 2052]


def test_clamp_at_its_edges():
    x = taeda.tensor([-3.0, 0.5, 4.0, NAN, -0.0])
    assert taeda.equal(x.clamp(-1, 1)[:3], taeda.tensor([-1.0, 0.5, 1.0]))
    assert x.clamp(-1, 1).isnan().tolist() == [False, False, False, True, False]
    assert x.clamp(2, 1)[[0, 1, 2]].tolist() == [1.0, 1.0, 1.0]  # min(max(x, 2), 1)
    assert x.clamp(NAN, 1).isnan().all() and x.clamp(-1, NAN).isnan().all()
    hard = taeda.nn.functional.hardtanh(x, -1.0, 1.0)
    assert hard.isnan().tolist() == x.isnan().tolist()
    assert taeda.maximum(x, x.flip(0)).isnan().tolist() == [
        a or b
        for a, b in zip(x.isnan().tolist(), x.flip(0).isnan().tolist(), strict=True)
    ]


BOUND = 2**51
EDGES = [1, 2, 3, 7, BOUND - 1, BOUND, BOUND + 1, 2**62 + 1, 2**63 - 1]
WHOLE = [*EDGES, *(-e for e in EDGES), 0, -(2**63)]


@pytest.mark.parametrize("near", [True, False])
def test_quotients_of_integers_near_and_far(near):
    pairs = [
        (a, b)
        for a, b in itertools.product(WHOLE, WHOLE)
        if b != 0 and (a, b) != (-(2**63), -1)
    ]
    if near:
        pairs = [p for p in pairs if max(map(abs, p)) < BOUND]
    a = taeda.tensor([p[0] for p in pairs])
    b = taeda.tensor([p[1] for p in pairs])
    assert (a // b).tolist() == [p // q for p, q in pairs]
    assert (a % b).tolist() == [p % q for p, q in pairs]
    quotients = [abs(p) // abs(q) * (1 if (p < 0) == (q < 0) else -1) for p, q in pairs]
    assert taeda.div(a, b, rounding_mode="trunc").tolist() == quotients
    rests = [p - q * t for (p, q), t in zip(pairs, quotients, strict=True)]
    assert taeda.fmod(a, b).tolist() == rests


def test_division_by_zero_is_refused():
    ones = taeda.ones(5000, dtype=taeda.int64)
    zero = ones.clone()
    zero[4321] = 0
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        ones // zero


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("n,k", [(700, 3), (20_000, 10), (5000, 70), (130, 2)])
@pytest.mark.parametrize("kind", ["numbers", "ties", "nan", "rising", "columns"])
def test_topk_of_long_rows(largest, n, k, kind):
    x = _random(3, n)
    if kind == "ties":
        x = (x * 3).round()
    elif kind == "nan":
        x[:, ::37] = NAN
    elif kind == "rising":
        x = x.sort(1, descending=not largest).values
    elif kind == "columns":
        x = x.t().contiguous().t()
    values, places = x.topk(k, 1, largest)
    want = x.sort(1, descending=largest).values[:, :k]
    assert taeda.equal(values.nan_to_num(1e9), want.nan_to_num(1e9))
    assert taeda.equal(x.gather(1, places).nan_to_num(1e9), want.nan_to_num(1e9))
    assert all(len(set(row)) == k for row in places.tolist())


@pytest.mark.parametrize(
    "dtype",
    [taeda.uint16, taeda.uint32, taeda.uint64, taeda.float8_e4m3fn, taeda.complex32],
)
def test_fills_of_rare_types(dtype):
    x = taeda.empty(3, 5, dtype=dtype)
    for t in (x, x.t(), x[:, 1::2]):
        t.fill_(3)
        assert (t.to(taeda.complex64) == 3).all()
    assert taeda.equal(
        x[:, 1::2].clone().to(taeda.complex64), x[:, 1::2].to(taeda.complex64)
    )


def test_all_and_any_of_other_bytes_than_0_and_1():
    raw = taeda.tensor([2, 255, 1] * 40, dtype=taeda.uint8)
    mask = raw.view(taeda.bool)
    assert mask.all() and mask.view(8, 15).all(1).tolist() == [True] * 8
    raw[50] = 0
    assert (
        not mask.all()
        and mask.any()
        and mask.view(8, 15).all(0).tolist().count(False) == 1
    )


@pytest.mark.parametrize(
    "dtype", [taeda.float32, taeda.float64, taeda.int64, taeda.int32]
)
def test_ramps(dtype):
    want = [3 + 2 * i for i in range(1000)]
    assert taeda.arange(3, 2003, 2, dtype=dtype).tolist() == want
    assert taeda.linspace(3, 2001, 1000, dtype=dtype).tolist() == want
    down = taeda.arange(0.5, -2, -0.25, dtype=taeda.float32)
    assert down.tolist() == [0.5 - 0.25 * i for i in range(10)]
    ends = taeda.linspace(0.1, 0.7, 33)
    assert ends[0] == taeda.tensor(0.1) and ends[-1] == taeda.tensor(0.7)


def test_windows_from_one_cosine():
    n = 64
    x = taeda.arange(n, dtype=taeda.float64) * (2 * taeda.pi / n)
    hann = taeda.hann_window(n, dtype=taeda.float64)
    taeda.testing.assert_close(hann, 0.5 - 0.5 * x.cos(), rtol=0, atol=1e-15)
    blackman = taeda.blackman_window(n, dtype=taeda.float64)
    want = 0.42 - 0.5 * x.cos() + 0.08 * (2 * x).cos()
    taeda.testing.assert_close(blackman, want, rtol=0, atol=1e-15)
    assert taeda.hann_window(1).tolist() == [1.0]
    assert taeda.hann_window(0).tolist() == []


@pytest.mark.parametrize("rows", [1, 8, 40])
def test_sums_of_columns_start_from_nothing(rows):
    x = _random(rows, 1300)
    want = x.double().sum(0)
    taeda.testing.assert_close(x.sum(0).double(), want, rtol=1e-5, atol=1e-6)
    taeda.testing.assert_close(
        x.bfloat16().sum(0).double(), x.bfloat16().double().sum(0), rtol=1e-2, atol=1e-2
    )


@pytest.mark.parametrize("name", ["sum", "mean", "amax", "prod"])
@pytest.mark.parametrize("dims", [(0,), (1,), (0, 2), (2,)])
def test_reductions_of_broadcast_dims(name, dims):
    for shape in ((4, 1, 6), (1, 5, 1), (1, 1, 1), (4, 5, 1)):
        x = _random(*shape).expand(4, 5, 6)
        for keepdim in (False, True):
            if name == "prod":
                got, want = (t.prod(dims[0], keepdim) for t in (x, x.contiguous()))
            else:
                f = getattr(taeda.Tensor, name)
                got, want = (f(t, dims, keepdim) for t in (x, x.contiguous()))
            taeda.testing.assert_close(got, want)


@pytest.mark.parametrize("dtype", [taeda.float16, taeda.bfloat16])
@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("turned", [False, True])
def test_softmax_of_16_bits(dtype, log, turned):
    f = taeda.log_softmax if log else taeda.softmax
    x = _random(3, 50, dtype=dtype)
    grad = (_random(50, 3) if turned else _random(3, 50)).to(dtype)
    if turned:
        x, grad = x.t().contiguous().t(), grad.t()
    x.requires_grad_()
    y = f(x, 1)
    wide = x.detach().float().requires_grad_()
    expected = f(wide, 1)
    near = {"rtol": 2e-2, "atol": 2e-2}
    taeda.testing.assert_close(y.float(), expected, **near)
    got = taeda.autograd.grad(y, x, grad)[0].float()
    want = taeda.autograd.grad(expected, wide, grad.float())[0]
    taeda.testing.assert_close(got, want, **near)


def _by_middles(row, value, right):
    low, high = 0, len(row)
    while low < high:
        middle = low + (high - low) // 2
        before = row[middle] <= value if right else row[middle] < value
        low, high = (middle + 1, high) if before else (low, middle)
    return low


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("kind", ["sorted", "not"])
@pytest.mark.parametrize("count", [3, 200])
def test_places_in_rows_that_are_sorted_or_not(right, kind, count):
    row = (_random(13) * 9).round()
    row = row.sort().values if kind == "sorted" else row
    values = (_random(count) * 9).round()
    want = [_by_middles(row.tolist(), v, right) for v in values.tolist()]
    assert taeda.searchsorted(row, values, right=right).tolist() == want
    assert taeda.bucketize(values, row, right=right).tolist() == want


@pytest.mark.parametrize("dtype", [taeda.uint8, taeda.int16, taeda.float32])
@pytest.mark.parametrize("width", [*range(1, 20), 31, 32, 33, 63, 64, 65, 129, 300])
def test_rows_of_bytes(dtype, width):
    """Rows of every length are copied whole, and nothing beside them."""
    x = (taeda.arange(7 * 2 * (width + 5)) % 251).to(dtype).view(7, 2, width + 5)
    part = x[:, :, 2 : 2 + width]
    want = [[line[2 : 2 + width] for line in plane] for plane in x.tolist()]
    assert part.clone().tolist() == want
    assert part[:1].expand(3, 2, width).clone().tolist() == want[:1] * 3
    frame = taeda.full_like(x, 252 % 128)
    frame[:, :, 3 : 3 + width] = part
    assert frame[:, :, 3 : 3 + width].tolist() == want
    assert (frame[:, :, :3] == 124).all() and (frame[:, :, 3 + width :] == 124).all()


FUNCTIONS = {
    "gelu": lambda x: taeda.nn.functional.gelu(x),
    "tanh": lambda x: x.tanh(),
    "sin": lambda x: taeda.sin(x),
    "exp": lambda x: x.exp(),
    "relu": lambda x: x.relu(),
    "celu": lambda x: taeda.nn.functional.celu(x, alpha=0.3),
    "lgamma": lambda x: x.lgamma(),
    "in place": lambda x: x.clone().erf_(),
    "out": lambda x: taeda.log(x, out=taeda.empty_like(x)),
    "strided": lambda x: x.view(2, -1).t().erfinv().t().reshape(-1),
    "wider": lambda x: taeda.special.log_ndtr(x.float()).to(x.dtype),
    "tests": lambda x: x.isnan(),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_tables_of_16_bit_functions_have_the_same_bits(name, dtype) -> None:
    """Note [Tables of 16-bit functions]."""
    every = taeda.arange(65536, dtype=taeda.int32).to(taeda.int16)
    every = every.view(getattr(taeda, dtype))
    want = FUNCTIONS[name](every)
    order = taeda.randperm(65536)
    got = FUNCTIONS[name](every[order].repeat(9))
    assert got.dtype == want.dtype
    bits = taeda.uint8 if want.dtype == taeda.bool else taeda.int16
    assert taeda.equal(got.view(bits), want.view(bits)[order].repeat(9))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "bool", "uint8", "int32"])
@pytest.mark.parametrize("length", [1, 11, 12, 13, 63, 64, 100, 1024, 2048, 2049, 5000])
def test_sums_of_rows_of_other_types(dtype, length):
    """Rows that are converted together sum up as the same numbers of the sum's type."""
    drawn = _random(3, 2, length) * 3
    x = drawn.gt(0.3) if dtype == "bool" else drawn.to(getattr(taeda, dtype))
    views = [x, x.transpose(0, 1), x[:, :1].expand(3, 4, length), x[..., ::2]]
    views += [x[..., 1:], x.mT.contiguous().mT]
    for view in views:
        got = view.sum(-1)
        wide = view.to(taeda.float64 if got.is_floating_point() else taeda.int64)
        want = wide.contiguous().sum(-1)
        if got.is_floating_point():
            size = wide.abs().sum(-1).to(got.dtype)
            assert ((got.double() - want).abs() <= 2**-7 * size.double()).all()
        else:
            assert taeda.equal(got, want)
        assert got.shape == view.shape[:-1]
        assert taeda.equal(view.to(got.dtype).sum(-1), got)
