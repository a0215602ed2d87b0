"""Policies of records: which there are and the dtypes that follow, as in PyTorch."""

from __future__ import annotations

import warnings
from functools import cache, partial

import pytest
import samples
import taeda
import torch
from recorded import to_taeda
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._pytree import tree_leaves, tree_map

from tools.codegen.records import load_records

LOWER = {"bfloat16": torch.bfloat16, "float16": torch.float16}
# Helpers of Taeda's own, of which PyTorch has another one.
OWN = {"_rnn_layer"}


@cache
def policies() -> dict[str, dict[str, str]]:
    """cpu and cuda by overload, as the library's records say it at run time."""
    found = {}
    for record in load_records("aten/ops"):
        for overload in record.overloads:
            if overload.schema.out_args or overload.schema.mutable_args:
                continue  # those have none; what they are forms of has
            base, _, name = overload.schema.name.partition(".")
            op = getattr(getattr(taeda.ops.aten, base), name or "default")
            found[overload.schema.name] = vars(op.record.autocast)
    return found


@pytest.mark.parametrize(("device", "key"), [("cpu", "CPU"), ("cuda", "CUDA")])
def test_the_operators_with_a_policy_are_pytorchs(device, key):
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    theirs = {
        name.removeprefix("aten::")
        for name in torch._C._dispatch_get_all_op_names()
        if has_kernel(name, f"Autocast{key}")
    }
    known = policies()
    ours = {name for name, of in known.items() if of[device] != "keep"} - OWN
    assert ours == theirs & known.keys()
    assert len(ours) >= 90


def test_in_place_and_out_forms_have_no_policy():
    forms = (taeda.ops.aten.addmm_.default, taeda.ops.aten.addmm.out)
    for form in forms:
        assert vars(form.record.autocast) == {"cpu": "keep", "cuda": "keep"}
    assert taeda.ops.aten.addmm.default.record.autocast.cpu == "lower"


# Dtypes on the CPU ----------------------------------------------------------------


def _dtypes(result) -> list[str]:
    if isinstance(result, (tuple, list)):
        return [name for part in result for name in _dtypes(part)]
    dtype = getattr(result, "dtype", None)
    return [] if dtype is None else [str(dtype).rpartition(".")[2]]


@cache
def _calls() -> list[tuple[str, tuple, dict]]:
    wanted = {name.partition(".")[0] for name, of in policies().items() if _has(of)}
    calls = [*samples.database(wanted), *samples.extra()]
    return [call for call in calls if _is_dense(call)]


def _is_dense(call: tuple) -> bool:
    """Sparse tensors have suites of their own (test/python/sparse)."""
    tensors = (t for t in tree_leaves(call) if isinstance(t, torch.Tensor))
    return all(t.layout is torch.strided for t in tensors)


def _has(policy: dict[str, str]) -> bool:
    return set(policy.values()) != {"keep"}


def _theirs(name: str, args: tuple, kwargs: dict, lower: torch.dtype):
    """PyTorch's result dtypes; None where it has no such kernel on this machine."""
    try:
        with torch.autocast("cpu", lower):
            return _dtypes(samples.resolve(torch, name)(*args, **kwargs))
    except (RuntimeError, NotImplementedError, TypeError):
        return None


def _ours(name: str, args: tuple, kwargs: dict, lower: torch.dtype):
    """Taeda's; the error where a call fails that works without autocast, else None."""
    args, kwargs = _to_taeda((args, kwargs))
    function = samples.resolve(taeda, name)
    try:
        with taeda.autocast("cpu", getattr(taeda, str(lower)[6:])):
            return _dtypes(function(*args, **kwargs))
    except (RuntimeError, NotImplementedError) as error:
        try:
            function(*args, **kwargs)
        except (RuntimeError, NotImplementedError):
            return None  # an operator that lacks the dtype, whatever autocast does
        return str(error)


def _to_taeda(tree):
    """As `to_taeda`, for dtypes that NumPy does not have too."""

    def small(value):
        return isinstance(value, torch.Tensor) and value.dtype == torch.bfloat16

    def leaf(value):
        if small(value):
            return to_taeda(value.float()).bfloat16()
        return to_taeda(value)

    return tree_map(leaf, tree)


@pytest.mark.parametrize("lower", LOWER)
def test_results_have_pytorchs_dtypes(lower):
    cells, wrong, covered = 0, [], set()
    for name, args, kwargs in _calls():
        if samples.resolve(taeda, name) is None:
            continue
        for given in (torch.float32, LOWER[lower], torch.float64):
            call = samples.with_floats((args, kwargs), given)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                expected = _theirs(name, *call, LOWER[lower])
                if expected is None:
                    continue
                found = _ours(name, *call, LOWER[lower])
            if found is None:
                continue
            cells += 1
            covered.add(name)
            if found != expected:
                wrong.append((name, str(given), found, expected))
    print(f"{cells} cells of {len(covered)} functions")
    assert not wrong, wrong
    assert cells >= 900
    assert len(covered) >= 150


def test_the_samples_reach_the_records_with_a_policy():
    wanted = {name.partition(".")[0] for name, of in policies().items() if _has(of)}
    reached = set()
    for name, args, kwargs in _calls():
        function = samples.resolve(torch, name)
        reached |= samples.called_operators(partial(function, *args, **kwargs))
    missed = wanted - reached - OWN
    assert not missed, missed


# CUDA ------------------------------------------------------------------------------

# What a policy makes of float32, float16 and bfloat16 results.
OUTCOMES = {
    "keep": ("float32", "float16", "bfloat16"),
    "lower": ("float16", "float16", "float16"),
    "float32": ("float32", "float32", "float32"),
    "float32_result": ("float32", "float32", "float32"),
    "promote": ("float32", "float16", "RuntimeError"),
    "refuse": ("RuntimeError", "RuntimeError", "RuntimeError"),
}
DTYPES = (torch.float32, torch.float16, torch.bfloat16)


def test_cuda_policies_are_pytorchs():
    """By tensors that PyTorch only pretends to have on a GPU."""
    by_base: dict[str, set[str]] = {}
    for name, of in policies().items():
        by_base.setdefault(name.partition(".")[0], set()).add(of["cuda"])
    compared, wrong = set(), []
    for name, args, kwargs in _calls():
        base = name.rpartition(".")[2]
        base = name.replace(".", "_") if name.startswith("linalg.") else base
        if base not in by_base or by_base[base] == {"keep"}:
            continue
        if name.startswith("masked."):
            continue
        found = tuple(_on_fake_cuda(name, args, kwargs, dtype) for dtype in DTYPES)
        if "no device" in found:
            continue
        compared.add(base)
        if found not in {OUTCOMES[policy] for policy in by_base[base]}:
            wrong.append((name, by_base[base], found))
    print(f"{len(compared)} operators compared: {sorted(compared)}")
    assert not wrong, wrong
    assert len(compared) >= 60


def _on_fake_cuda(name: str, args: tuple, kwargs: dict, dtype: torch.dtype) -> str:
    """The dtype of a call's first result, or its error, under CUDA's autocast."""

    def leaf(value):
        if not isinstance(value, torch.Tensor):
            return value
        kept = value.dtype if value.dtype != torch.float32 else dtype
        return torch.empty(value.shape, dtype=kept, device="cuda")

    before = torch.is_autocast_enabled("cuda")
    with FakeTensorMode(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        args, kwargs = tree_map(leaf, (args, kwargs))
        torch.set_autocast_enabled("cuda", True)
        try:
            return _dtypes(samples.resolve(torch, name)(*args, **kwargs))[0]
        except Exception as error:
            text = str(error)
            told = "prioritize" in text or "unsafe to autocast" in text
            return "RuntimeError" if told else "no device"
        finally:
            torch.set_autocast_enabled("cuda", before)
