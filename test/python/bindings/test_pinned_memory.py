"""`pin_memory=True`: an error wherever PyTorch's build without CUDA makes it one."""

from __future__ import annotations

import re

import pytest
import taeda
import torch

MESSAGE = "pin_memory=True requires a CUDA or other accelerator backend"
SCHEMAS = {
    (name, overload): schema
    for name, overload, schema in taeda._C._op_schemas()
    # Parts of sparse tensors must go together: see the last test.
    if re.search(r"\bbool\? pin_memory\b", schema) and "sparse_" not in name
}
_VALUES = {
    "Tensor": lambda lib: lib.ones(()),
    "Scalar": lambda lib: 1,
    "SymInt": lambda lib: 1,
    "int": lambda lib: 1,
    "float": lambda lib: 1.0,
    "bool": lambda lib: True,
    "SymInt[]": lambda lib: [1],
    "int[]": lambda lib: [0],
    "Generator?": lambda lib: None,
}


def arguments(schema: str, lib) -> tuple[list, dict]:
    """Values for what a schema demands: (by position, by name)."""
    given: tuple[list, dict] = [], {}
    named = False
    for part in re.search(r"\((.*)\) ->", schema)[1].split(", "):
        if part == "*":
            named = True
        elif "=" not in part:
            kind, name = part.split()
            value = 0 if name == "low" else _VALUES[kind.replace("(a)", "")](lib)
            given[1].update({name: value}) if named else given[0].append(value)
    return given


def outcome(function, key, lib, **options) -> str:
    by_place, by_name = arguments(SCHEMAS[key], lib)
    try:
        assert not function(*by_place, **by_name, **options).is_pinned()
    except RuntimeError as error:
        return "refused" if MESSAGE in str(error) else str(error)
    return "made"


def operator(key, lib):
    return getattr(getattr(lib.ops.aten, key[0]), key[1] or "default")


@pytest.mark.parametrize("key", SCHEMAS, ids=".".join)
def test_operators(key) -> None:
    ours, theirs = operator(key, taeda), operator(key, torch)
    for options in ({}, {"pin_memory": None}, {"pin_memory": False}):
        assert outcome(ours, key, taeda, **options) == "made"
        assert outcome(theirs, key, torch, **options) == "made"
    want = outcome(theirs, key, torch, pin_memory=True)
    # Copies are pinned on their way from an accelerator only.
    assert want == ("made" if "non_blocking" in SCHEMAS[key] else "refused")
    assert outcome(ours, key, taeda, pin_memory=True) == want


@pytest.mark.parametrize("key", SCHEMAS, ids=".".join)
def test_functions_and_methods(key) -> None:
    want = outcome(operator(key, torch), key, torch, pin_memory=True)
    places = [taeda]
    if SCHEMAS[key].startswith(f"{key[0]}(Tensor"):
        places.append(taeda.Tensor)
    for function in filter(None, (getattr(p, key[0], None) for p in places)):
        if "pin_memory" in (function.__doc__ or ""):
            assert outcome(function, key, taeda, pin_memory=True) == want
            assert outcome(function, key, taeda, pin_memory=False) == "made"


def test_what_is_looped_over() -> None:
    assert len(SCHEMAS) > 60
    documented = [n for n, _ in SCHEMAS if "pin_memory" in (_doc(n) or "")]
    assert len(set(documented)) > 30


def _doc(name: str) -> str | None:
    return (getattr(taeda, name, None) or getattr(taeda.Tensor, name)).__doc__


def test_a_schemas_default_dtype_is_a_number() -> None:
    for lib in (taeda, torch):
        assert lib.ops.aten.randint(1, [2]).dtype == lib.int64
        assert lib.ops.aten.zeros([1], dtype=4).dtype == lib.int64
    for wrong in (-1, 12, 47, 999):
        with pytest.raises(RuntimeError, match=f"no dtype has the number {wrong}"):
            taeda.ops.aten.zeros([1], dtype=wrong)


def test_tensors_of_data() -> None:
    with pytest.raises(RuntimeError, match=f"tensor: {MESSAGE}"):
        taeda.tensor([1.0], pin_memory=True)
    with pytest.raises(TypeError, match="unexpected keyword argument 'pin_memory'"):
        taeda.ones(1).new_tensor([1.0], pin_memory=True)


def test_elsewhere_than_on_the_cpu_it_means_nothing() -> None:
    for lib in (taeda, torch):
        plain = lib.ones(2)
        meta = plain.to("meta")
        for made in (
            lib.empty(2, device="meta", pin_memory=True),
            lib.tensor([1.0], device="meta", pin_memory=True),
            lib.zeros_like(meta, pin_memory=True),
            lib.zeros_like(plain, device="meta", pin_memory=True),
            meta.new_ones(2, pin_memory=True),
        ):
            assert made.is_meta
        with pytest.raises(RuntimeError, match=MESSAGE):
            lib.zeros_like(meta, device="cpu", pin_memory=True)
        # The out tensor decides.
        assert lib.zeros(2, out=plain, pin_memory=True).is_cpu


def test_sparse_constructors() -> None:
    """PyTorch refuses them too, in words of its own for each layout."""
    for lib, words in ((taeda, MESSAGE), (torch, "accelerator")):
        with pytest.raises(RuntimeError, match=words):
            lib.sparse_coo_tensor([[0]], [1.0], (2,), pin_memory=True)
        with pytest.raises(RuntimeError, match=words):
            lib.sparse_csr_tensor([0, 1], [0], [1.0], (1, 2), pin_memory=True)
