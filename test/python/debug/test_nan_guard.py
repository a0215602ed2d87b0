"""The call, the module, the line and the shapes of the first NaN."""

from __future__ import annotations

import re

import pytest
import taeda
from taeda.debug import nan_guard

nn, F = taeda.nn, taeda.nn.functional


class Log(nn.Module):
    def forward(self, x):
        return (x - 2).log()  # the culprit


def line_of(mark: str) -> int:
    with open(__file__) as file:
        return next(i for i, text in enumerate(file, 1) if mark in text)


def test_names_call_module_line_and_shapes() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.Sequential(nn.ReLU(), Log()))
    with pytest.raises(RuntimeError) as caught, nan_guard():
        model(taeda.zeros(2, 3))
    text = str(caught.value)
    assert text.startswith("nan_guard: aten::log made ")
    assert "of 8 values, of shape [2, 4] and dtype float32" in text
    assert "from (float32[2, 4])" in text
    assert "in module Sequential.1.1" in text
    assert f"{__file__}:{line_of('# the culprit')} in Log.forward" in text
    assert "return (x - 2).log()" in text


def test_names_the_node_and_the_call_that_it_differentiates() -> None:
    class Root(nn.Module):
        def forward(self, x):
            return x.sqrt()  # has no slope at 0

    model = nn.Sequential(Root(), nn.Flatten())
    x = taeda.zeros(2, 3, requires_grad=True)
    with pytest.raises(RuntimeError) as caught, nan_guard():
        model(x).sum().backward()
    text = str(caught.value)
    assert text.startswith(
        "nan_guard: SqrtBackward0 (backward of Sqrt) made 0 NaN and 6"
    )
    assert "in module Sequential.0" in text
    assert f":{line_of('# has no slope')} in" in text
    assert "gradients float32[2, 3]" in text


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16", "complex64"])
@pytest.mark.parametrize("n", [1, 5, 4096, 10001])
def test_every_value_is_read(dtype, n) -> None:
    ones = taeda.ones(n, dtype=getattr(taeda, dtype))
    for place in {0, n // 2, n - 1}:
        x = ones.clone()
        x[place] = 0
        with nan_guard():
            x + 1
            with pytest.raises(RuntimeError, match="aten::div made 1 NaN|1 inf"):
                x / x
    with nan_guard():
        ones.exp()


def test_infinities_only_where_they_count() -> None:
    x = taeda.full((3,), 200.0)
    with nan_guard(infinities=False):
        y = x.exp()
        with pytest.raises(RuntimeError, match="aten::sub made 3 NaN and 0 inf"):
            y - y
    with (
        nan_guard(),
        pytest.raises(RuntimeError, match="aten::exp made 0 NaN and 3 inf"),
    ):
        x.exp()


def test_bad_values_that_a_call_is_given_are_not_its_fault() -> None:
    bad = taeda.tensor([1.0, float("nan")])
    mask = taeda.tensor([[True, False]])
    with nan_guard():
        (bad * 2).sum()
        scores = taeda.ones(1, 2).masked_fill(mask, float("-inf"))
        assert F.softmax(scores, -1).sum() == 1
        taeda.empty(1000)
        taeda.full((2,), float("inf"))


def test_transposed_parts_and_results_in_lists() -> None:
    x = taeda.zeros(4, 6)
    with nan_guard():
        with pytest.raises(RuntimeError, match=r"aten::div_ made 24 NaN"):
            x.t().div_(0)
        y = [taeda.ones(2), taeda.zeros(2)]
        with pytest.raises(RuntimeError, match="aten::_foreach_log"):
            taeda._foreach_log(y)
        with pytest.raises(RuntimeError, match="log"):
            taeda.log(taeda.zeros(3), out=taeda.empty(3))


def test_a_program_without_nan_computes_the_same() -> None:
    def losses() -> list[float]:
        taeda.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.1), nn.LayerNorm(8))
        optimizer = taeda.optim.Adam(model.parameters())
        out = []
        for _ in range(4):
            loss = model(taeda.randn(3, 4)).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            out.append(loss.item())
        return out

    plain, call = losses(), nn.Module.__call__
    with nan_guard():
        assert losses() == plain
    assert nn.Module.__call__ is call


def test_forward_that_raises_leaves_the_guard_in_order() -> None:
    class Fails(nn.Module):
        def forward(self, x):
            raise ValueError("own")

    model = nn.Sequential(Fails())
    other = nn.Sequential(Log())
    with nan_guard():
        with pytest.raises(ValueError, match="own"):
            model(taeda.ones(1))
        with pytest.raises(RuntimeError, match=re.escape("in module Sequential.0")):
            other(taeda.zeros(1))
        with pytest.raises(RuntimeError) as caught:
            taeda.zeros(1).log()
        assert "in module" not in str(caught.value)
