"""Schemas of annotations, which are objects here: each library has its own."""

import pytest
import taeda
import torch


def annotated(t) -> dict:
    def plain(x: t.Tensor, d: t.dtype = t.float32, v: t.device = "cpu") -> t.Tensor: ...
    def bare(x: t.Tensor): ...
    def many(*xs: t.Tensor) -> t.Tensor: ...
    def text(x: t.Tensor) -> str: ...
    def listed(x: t.Tensor, sizes: list[int] = [1]) -> t.Tensor: ...  # noqa: B006
    def maybe(x: list[t.Tensor] | None) -> None: ...
    def two(x: t.Tensor, ys: list[t.Tensor]) -> tuple[t.Tensor, int, list[t.Tensor]]: ...

    return locals()


@pytest.mark.parametrize("written", [(), "unknown", "x", {"y"}])
@pytest.mark.parametrize("name", [n for n in annotated(taeda) if n != "t"])
def test_schemas_of_annotations(name, written) -> None:
    """The same text as PyTorch's, or an error of the same kind that begins alike."""
    told = []
    for library in (taeda, torch):
        try:
            function = annotated(library)[name]
            text = library.library.infer_schema(function, mutates_args=written)
        except ValueError as error:
            text = str(error)[:44]
        told.append(text)
    assert told[0] == told[1]
