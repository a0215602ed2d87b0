"""What a notebook shows: well-formed HTML with the facts of tensors and modules."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
import taeda


class Reader(HTMLParser):
    """Texts by the tag they stand in; fails on tags that are not closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data) -> None:
        self.texts.setdefault(self.open[-1], []).append(data)


def facts(tensor) -> dict[str, str]:
    texts = Reader(tensor._repr_html_()).texts
    assert "".join(texts["pre"]) == repr(tensor)
    return dict(zip(texts["th"], texts["td"], strict=True))


def test_tensors() -> None:
    x = taeda.arange(6.0).reshape(2, 3).requires_grad_()
    assert facts(x) == {
        "shape": "2 x 3",
        "dtype": "float32",
        "device": "cpu",
        "memory": "24 B",
        "gradient": "leaf",
        "min": "0",
        "mean": "2.5",
        "max": "5",
    }
    assert facts(x * 2)["gradient"] == "MulBackward0"
    odd = taeda.tensor([1.0, float("nan"), float("inf")])
    assert (facts(odd)["not finite"], facts(odd)["max"]) == ("2", "1")
    assert facts(taeda.tensor(3))["shape"] == "scalar"
    assert facts(taeda.zeros(3 << 19, dtype=taeda.int16))["memory"] == "3 MiB"


@pytest.mark.parametrize(
    "make",
    [
        lambda: taeda.empty(0),
        lambda: taeda.ones(2, dtype=taeda.bool),
        lambda: taeda.ones(2, dtype=taeda.complex64),
        lambda: taeda.ones(2, device="meta"),
        lambda: taeda.full((2,), float("nan")),
        lambda: taeda.nn.Parameter(taeda.ones(2)),
        lambda: taeda.ones(2).to(taeda.float8_e4m3fn),
    ],
)
def test_tensors_of_other_kinds(make) -> None:
    found = facts(make())
    assert "min" not in found or found["dtype"] in ("float32", "float8_e4m3fn")


def test_modules() -> None:
    net = taeda.nn.Sequential(
        taeda.nn.Linear(3, 4),
        taeda.nn.Sequential(taeda.nn.ReLU(), taeda.nn.Linear(4, 1)),
    )
    net[0].bias.requires_grad_(False)
    texts = Reader(net._repr_html_()).texts
    assert texts["small"] == [
        "21 parameters, 4 of them fixed",
        "16 parameters, 4 of them fixed",
        "5 parameters",
        "0 parameters",
        "5 parameters",
    ]
    assert texts["summary"] == ["Sequential() ", "1: Sequential() "]
    assert "0: Linear(in_features=3, out_features=4, bias=True) " in texts["div"]


def test_names_are_escaped_and_lazy_parameters_left_out() -> None:
    class Odd(taeda.nn.LazyLinear):
        def extra_repr(self) -> str:
            return "<b>&\nmore"

    html = Odd(2)._repr_html_()
    assert "Odd(&lt;b&gt;&amp; more)" in html and "0 parameters" in html
    Reader(html)
