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
    def two(
        x: t.Tensor, ys: list[t.Tensor]
    ) -> tuple[t.Tensor, int, list[t.Tensor]]: ...

    return locals()


@pytest.mark.parametrize("written", [(), "unknown", {"x"}, {"y"}])
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


def test_names_of_arguments_in_one_text_are_refused() -> None:
    for library in (taeda, torch):
        with pytest.raises(ValueError, match="mutates_args must either be a sequence"):
            function = annotated(library)["plain"]
            library.library.infer_schema(function, mutates_args="x")


def test_dtypes_are_defaults() -> None:
    """They became None."""

    @taeda.library.custom_op("inferred_schemas::cast", mutates_args=())
    def cast(x: taeda.Tensor, to: taeda.dtype = taeda.float64) -> taeda.Tensor:
        return x.to(to, copy=True)

    assert cast(taeda.ones(1)).dtype is taeda.float64
    assert cast._opoverload._schema.arguments[1].default_value is taeda.float64
