"""Switches of backends: they act, are refused, or are kept as PyTorch keeps them."""

from __future__ import annotations

import sys
import types

import pytest
import taeda
import torch

backends = taeda.backends


# oneDNN -----------------------------------------------------------------------


def routes(run) -> set[str]:
    """Which libraries a call's results come from, seen by their rounding."""
    return {run().numpy().tobytes()}


def test_without_onednn_products_and_convolutions_come_out_otherwise() -> None:
    taeda.manual_seed(0)
    a, b = taeda.randn(160, 200), taeda.randn(200, 168)
    x, w = taeda.randn(2, 16, 20, 20), taeda.randn(24, 16, 3, 3)
    half = a.bfloat16(), b.bfloat16()
    calls = {
        "matmul": lambda: a @ b,
        "conv": lambda: taeda.nn.functional.conv2d(x, w),
        "bfloat16": lambda: (half[0] @ half[1]).float(),
    }
    for name, call in calls.items():
        inside = call()
        with backends.mkldnn.flags(enabled=False):
            assert not backends.mkldnn.enabled
            outside = call()
        wide = 2e-2 if name == "bfloat16" else 1e-4
        taeda.testing.assert_close(outside, inside, rtol=wide, atol=wide * 20)
    assert backends.mkldnn.enabled


def test_onednn_is_not_called_while_it_is_off(monkeypatch) -> None:
    """The convolution's loops add in another order than oneDNN's blocks."""
    taeda.manual_seed(0)
    x, w = taeda.randn(4, 32, 16, 16), taeda.randn(32, 32, 3, 3)
    inside = taeda.nn.functional.conv2d(x, w)
    backends.mkldnn.enabled = False
    try:
        outside = taeda.nn.functional.conv2d(x, w)
    finally:
        backends.mkldnn.enabled = True
    assert not taeda.equal(inside, outside)
    assert taeda.equal(inside, taeda.nn.functional.conv2d(x, w))


def test_flags_of_onednn() -> None:
    mkldnn = backends.mkldnn
    before = mkldnn.set_flags(False)
    assert before == (True, False, True, "none") and not mkldnn.enabled
    assert mkldnn.set_flags(_enabled=True)[0] is False and mkldnn.enabled
    assert mkldnn.is_available()
    with pytest.raises(RuntimeError, match="deterministic expects a bool"):
        mkldnn.deterministic = 1
    with pytest.raises(TypeError, match="unexpected arguments"):
        mkldnn.flags(no_such=True)


# Kept for the CUDA build ------------------------------------------------------


def cudnn_program(library) -> list:
    """Sets and reads the switches of cuDNN."""
    cudnn, seen = library.backends.cudnn, []
    names = "enabled benchmark deterministic allow_tf32".split()

    def look() -> None:
        seen.append([getattr(cudnn, name) for name in names])

    look()
    cudnn.benchmark = True
    look()
    with cudnn.flags(enabled=True, deterministic=True):
        look()
    seen.append(cudnn.set_flags(_benchmark=False)[:2])
    look()
    for name, value in (("benchmark", "x"), ("enabled", 1)):
        try:
            setattr(cudnn, name, value)
        except RuntimeError:
            seen.append("refused")
    return [*seen, cudnn.is_available(), cudnn.version()]


def test_switches_of_cudnn_are_kept() -> None:
    assert cudnn_program(taeda) == cudnn_program(torch)


def precision_program(library) -> list:
    """Sets the precision of float32 in the old ways and in the new."""
    own, seen = library.backends, []
    matmul = own.cuda.matmul

    def look() -> None:
        old = library.get_float32_matmul_precision()
        new = [matmul.fp32_precision, own.mkldnn.matmul.fp32_precision]
        seen.append([old, matmul.allow_tf32, own.mkldnn.conv.fp32_precision, *new])

    look()
    for word in ("high", "medium", "highest"):
        library.set_float32_matmul_precision(word)
        look()
    for value in (True, False):
        matmul.allow_tf32 = value
        seen.append([library.get_float32_matmul_precision(), matmul.fp32_precision])
    own.mkldnn.conv.fp32_precision = "bf16"
    look()
    own.mkldnn.conv.fp32_precision = "none"
    own.mkldnn.matmul.fp32_precision = matmul.fp32_precision = "none"
    look()
    for target, value in (
        (own.mkldnn.matmul, "no_such"),
        (matmul, "bf16"),
        (matmul, "no_such"),
    ):
        try:
            target.fp32_precision = value
        except RuntimeError:
            seen.append("refused")
    try:
        matmul.no_such = 1
    except AttributeError:
        seen.append("unknown")
    return seen


def test_permissions_of_lower_precision() -> None:
    assert precision_program(taeda) == precision_program(torch)
    with pytest.raises(RuntimeError, match="is not one of"):
        taeda.set_float32_matmul_precision("no_such")
    a, b = taeda.randn(64, 64), taeda.randn(64, 64)
    want = a @ b
    taeda.set_float32_matmul_precision("medium")
    try:
        assert taeda.equal(a @ b, want)
    finally:
        taeda.set_float32_matmul_precision("highest")
        backends.cuda.matmul.fp32_precision = "none"
        backends.mkldnn.matmul.fp32_precision = "none"


def test_the_precision_of_all_backends_is_inherited() -> None:
    with backends.flags(fp32_precision="tf32"):
        assert backends.fp32_precision == backends.mkldnn.fp32_precision == "tf32"
        backends.mkldnn.fp32_precision = "ieee"
        assert backends.mkldnn.rnn.fp32_precision == "ieee"
        backends.mkldnn.fp32_precision = "none"
    assert backends.fp32_precision == "none"


# Others -----------------------------------------------------------------------


def test_engines_of_quantized_operators() -> None:
    assert backends.quantized.engine == "none"
    assert backends.quantized.supported_engines == ["none"]
    backends.quantized.engine = "none"
    with pytest.raises(NotImplementedError, match=r"backends\.quantized\.engine"):
        backends.quantized.engine = "qnnpack"


def test_the_permission_of_a_fast_path() -> None:
    mha = backends.mha
    mha.set_fastpath_enabled(False)
    assert mha.get_fastpath_enabled() is False
    mha.set_fastpath_enabled(True)
    with pytest.raises(RuntimeError):
        mha.set_fastpath_enabled("x")


@pytest.fixture
def found_paths(monkeypatch):
    """Puts a package opt_einsum in place that contracts the last two at each step."""
    asked: list[tuple] = []

    def contract_path(equation, *operands, optimize):
        asked.append((equation, len(operands), optimize))
        steps = [(n - 2, n - 1) for n in range(len(operands), 1, -1)]
        return steps, None

    package = types.ModuleType("opt_einsum")
    package.contract_path = contract_path
    from importlib.machinery import ModuleSpec

    package.__spec__ = ModuleSpec("opt_einsum", None)
    monkeypatch.setitem(sys.modules, "opt_einsum", package)
    backends.opt_einsum.is_available.cache_clear()
    yield asked
    backends.opt_einsum.is_available.cache_clear()


def test_einsum_of_three_operands_takes_the_packages_path(found_paths) -> None:
    a, b, c = taeda.randn(4, 5), taeda.randn(5, 6), taeda.randn(6, 2)
    own = backends.opt_einsum
    assert own.is_available() and own.enabled and own.strategy == "auto"
    want = a @ (b @ c)
    taeda.testing.assert_close(taeda.einsum("ij,jk,kl->il", a, b, c), want)
    assert found_paths == [("ij,jk,kl->il", 3, "auto")]
    with own.flags(strategy="greedy"):
        taeda.einsum("ij,jk,kl->il", a, b, c)
    assert found_paths[1:] == [("ij,jk,kl->il", 3, "greedy")]
    with own.flags(enabled=False):
        taeda.einsum("ij,jk,kl->il", a, b, c)
    taeda.einsum("ij,jk->ik", a, b)
    assert len(found_paths) == 2 and own.enabled
    with pytest.raises(ValueError, match="strategy"):
        own.set_flags(True, "no_such")
    own.strategy = "auto-hq"  # what the package knows more is its own affair
    try:
        with own.flags(strategy="greedy"):
            assert own.strategy == "greedy"
        taeda.einsum("ij,jk,kl->il", a, b, c)
        assert found_paths[2:] == [("ij,jk,kl->il", 3, "auto-hq")]
    finally:
        own.strategy = "auto"


def test_without_the_package_it_cannot_be_enabled(monkeypatch) -> None:
    own = backends.opt_einsum
    monkeypatch.setattr(own, "is_available", lambda: False)
    assert own.enabled is False and own.strategy is None
    with pytest.raises(ValueError, match="not available"):
        own.enabled = True


# Results that repeat ----------------------------------------------------------


def filled(library) -> list:
    """What uninitialised memory holds, for several ways to get it."""
    d = library
    x = d.zeros(2)
    made = [
        *(d.empty(3, dtype=t) for t in (d.float32, d.int32, d.uint8, d.bool, d.int64)),
        *(d.empty_like(x), x.new_empty(2), d.empty_strided((2, 2), (2, 1))),
        *(d.empty_permuted((2, 1), (1, 0)), d.Tensor(2), d.zeros(2).resize_(5)),
        *(d.empty(2, dtype=d.complex64), d.empty(2, dtype=d.bfloat16).float()),
        d.zeros(4)[:2].resize_(4),
    ]
    return [str(t.tolist()) for t in made]


def test_deterministic_programs_get_filled_memory() -> None:
    results = []
    for library in (taeda, torch):
        library.use_deterministic_algorithms(True)
        try:
            results.append(filled(library))
        finally:
            library.use_deterministic_algorithms(False)
    assert results[0] == results[1]
    with pytest.raises(TypeError, match="must be bool"):
        taeda.use_deterministic_algorithms(1)


def test_filling_can_be_switched_off() -> None:
    from taeda.utils import deterministic

    taeda.use_deterministic_algorithms(True)
    try:
        assert taeda._C._fills_uninitialized()
        deterministic.fill_uninitialized_memory = False
        assert not taeda._C._fills_uninitialized()
        deterministic.fill_uninitialized_memory = True
        strided = taeda.zeros(6)
        taeda.empty(3, out=strided[::2])
        assert strided.isnan().tolist() == [True, False] * 3
    finally:
        taeda.use_deterministic_algorithms(False)
    assert not taeda._C._fills_uninitialized()
    strided = taeda.arange(6.0)
    taeda.empty(3, out=strided[::2])
    assert strided.tolist() == [0, 1, 2, 3, 4, 5]


def test_denormal_numbers_can_be_flushed() -> None:
    tiny = taeda.full((100_000,), 1e-310, dtype=taeda.float64)
    assert taeda.set_flush_denormal(True) is True
    try:
        assert (tiny * 1).count_nonzero() == 0
    finally:
        taeda.set_flush_denormal(False)
    assert (tiny * 1).count_nonzero() == 100_000


def test_warnings_can_come_every_time() -> None:
    x = taeda.ones(1)

    def warned() -> int:
        import warnings

        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            taeda.add(x, 2, x)
        return len(seen)

    warned()
    assert warned() == 0
    taeda.set_warn_always(True)
    try:
        assert taeda.is_warn_always_enabled() and warned() == warned() == 1
    finally:
        taeda.set_warn_always(False)
    with pytest.raises(RuntimeError):
        taeda.set_warn_always(1)


def test_flags_decorate_functions():
    before = backends.mkldnn.enabled

    @backends.mkldnn.flags(enabled=not before)
    def depth(n):
        inside = backends.mkldnn.enabled
        return [inside, *(depth(n - 1) if n else [])]

    for _ in range(2):
        assert depth(1) == [not before] * 2 and backends.mkldnn.enabled == before


def test_switches_can_be_frozen(monkeypatch) -> None:
    monkeypatch.setattr(backends._frozen, "value", False)
    assert not backends.flags_frozen()
    backends.disable_global_flags()
    assert backends.flags_frozen()
    with pytest.raises(RuntimeError, match="after disable_global_flags; please use"):
        backends.mkldnn.enabled = False
    with backends.mkldnn.flags(enabled=False):
        assert not backends.mkldnn.enabled
    assert backends.mkldnn.enabled
    backends.quantized.engine = "none"  # it has no flags()
