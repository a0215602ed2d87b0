"""The dtypes of `out=` tensors: the result's, or any it can be cast to."""

from __future__ import annotations

import pytest
import taeda
import torch

# Of `m`, the library, and `x`, a symmetric matrix of float32.
EXACT = """
    m.mm(x, x), m.addmm(x, x, x), m.matmul(x, x), m.dot(x[0], x[0]), m.mv(x, x[0])
    m.sort(x), m.topk(x, 1), m.max(x, 0), m.mode(x), m.kthvalue(x, 1), m.cummax(x, 0)
    m.argmax(x), m.amax(x, 0), m.amin(x), m.linalg.vector_norm(x), m.aminmax(x, dim=0)
    m.logcumsumexp(x, 0), m.softmax(x, 0), m.quantile(x, 0.5), m.histc(x)
    m.histogram(x, 3), m.renorm(x, 2, 0, 1.0), m.take(x, i), m.tril(x), m.diag(x)
    m.index_select(x, 0, i), m.scatter_add(x, 0, i[None], x), m.permute_copy(x, (1, 0))
    m.linalg.inv(x), m.linalg.det(x), m.linalg.svd(x), m.linalg.eigh(x)
    m.linalg.cholesky(x), m.linalg.lu_factor(x), m.linalg.matrix_power(x, 2)
    m.linalg.norm(x), m.linalg.cross(x, x), m.tensordot(x, x, 1), m.searchsorted(x, x)
    m.abs(x), m.abs(i), m.neg(x), m.ceil(x), m.floor(i), m.trunc(x), m.round(x)
    m.frac(x), m.round(x, decimals=1), m.sign(x), m.sgn(i), m.signbit(x)
    m.clamp(x, 1, 2), m.clamp(x, 1), m.clamp(x, max=1), m.clamp_min(x, 1)
    m.bitwise_not(i), m.inner(x, x), m.unbind_copy(x), m.special.round(x)
    m.isposinf(x), m.isneginf(x), m.conj_physical(x), m.heaviside(x, x)
    m.where(x > 1, x, x), m._C._nn.gelu(x), m._C._nn.softplus(x), m.hardshrink(x)
    m._C._nn.softshrink(x), m._C._nn.log_sigmoid(x), m._C._nn.elu(x), m._C._nn.silu(x)
    m._C._nn.mish(x), m._C._nn.hardsigmoid(x), m._C._nn.hardswish(x)
    m._C._nn.hardtanh(x), m._C._nn.leaky_relu(x)
"""
CASTING = """
    m.add(x, x), m.sin(x), m.mean(x, 0), m.std(x, 0), m.var(x, 0), m.logsumexp(x, 0)
    m.sum(x, 0), m.prod(x, 0), m.cumsum(x, 0), m.cat([x, x]), m.stack([x, x])
    m.pow(x, 2), m.linalg.eigvals(x), m.linalg.pinv(x), m.geqrf(x), m.maximum(x, x)
    m.angle(x), m.square(x), m.sqrt(x), m.logical_not(x), m.clamp(x, x, x)
    m.diff(x), m.clamp_min(x, x)
"""


def calls(texts: str) -> list[str]:
    found = texts.replace("),", "),\n").split("\n")
    return [t.strip().rstrip(",") for t in found if t.strip()]


def written(lib, text: str) -> bool:
    """Whether a call takes a wider tensor for its first result."""
    names = {
        "m": lib,
        "x": lib.eye(3) * 2 + lib.ones(3, 3),
        "i": lib.tensor([0, 1, 2]),
    }
    result = eval(text, names)
    outs = [result] if isinstance(result, lib.Tensor) else list(result)
    wide = {lib.float32: lib.float64, lib.complex64: lib.complex128}
    first = lib.empty_like(outs[0], dtype=wide.get(outs[0].dtype, lib.int16))
    names["out"] = (first, *outs[1:]) if len(outs) > 1 else first
    try:
        eval(f"{text[:-1]}, out=out)", names)
    except RuntimeError:
        return False
    return True


@pytest.mark.parametrize("text", calls(EXACT))
def test_other_dtypes_are_refused(text):
    assert written(torch, text) is written(taeda, text) is False


@pytest.mark.parametrize("text", calls(CASTING))
def test_results_are_cast(text):
    assert written(torch, text) is written(taeda, text) is True


@pytest.mark.parametrize("dtype", ["float64", "complex64", "complex128"])
def test_sizes_of_complex_numbers_go_to_real_tensors_of_any_dtype(dtype):
    def result(lib):
        out = lib.empty(0, dtype=getattr(lib, dtype))
        try:
            return lib.abs(lib.tensor([3 + 4j]), out=out).tolist()
        except RuntimeError:
            return None

    assert result(taeda) == result(torch)


@pytest.mark.parametrize("name", ["sum", "prod"])
def test_sums_are_computed_in_the_dtype_of_out(name):
    def result(lib):
        x = lib.tensor([[1.5, 100.0], [2.5, 200.0]])
        out = lib.empty(0, dtype=lib.int16)
        return getattr(lib, name)(x, 0, out=out)

    assert result(taeda).tolist() == result(torch).tolist()
    x, out = taeda.ones(2, 2), taeda.empty(0, dtype=taeda.float64)
    with pytest.raises(RuntimeError, match="float, but got double"):
        getattr(taeda, name)(x, 0, dtype=taeda.float32, out=out)
