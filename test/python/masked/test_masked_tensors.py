"""`MaskedTensor`: the same program with PyTorch's, and every unary operator."""

from __future__ import annotations

import copy
import pickle
import re
import warnings

import numpy as np
import pytest
import taeda
import torch
import torch.masked
from taeda._subclasses.carried import is_elementwise, overloads

pytestmark = pytest.mark.filterwarnings("ignore")

# Evaluated in order, with one library and then the other; x changes near the end.
PROGRAM = """
x
i
z
x.sum()
x.sum(0)
x.sum(1,keepdim=True)
x.sum((0,1))
x.mean(1)
x.mean(dim=0)
x.argmax(1)
x.amax(1)
x.amin()
x.prod(1)
x.std(1)
x.var(1)
x.all()
x.bool().all(1)
i.sum(0)
i.prod()
i.amax(1)
x+1
x+x
x*x
x+y
x+d
d+x
2/x
x**2
x.sin()
torch.sin(x)
x.clamp(1,2)
x.clamp(min=1)
-x
abs(x)
x<2
x==x
x.isnan()
x.float_power(2)
x[0]
x[:,1]
x[0,0]
x.reshape(3,2)
x.view(6)
x.t()
x.transpose(0,1)
x.unsqueeze(0)
x.expand(2,2,3).shape
x.split(1)
torch.stack([x,x])
torch.cat([x,y])
x.softmax(1)
torch.softmax(x,1)
torch.where(m,x,y)
x.get_data()
x.get_mask()
x.to_tensor(9)
torch.ones_like(x)
x.clone()
x.detach()
x.contiguous()
x.double()
x.to(torch.float64)
x.item()
x.sum().item()
x.numpy()
x.stride()
x.is_contiguous()
len(x)
x.shape
x.add_(1)
x
x.mul_(2)
x.sin_()
torch.sum(x,dim=1)
M.sum(x,1)
M.softmax(x,1)
masked_tensor(d.bfloat16(),m)
masked_tensor(d,m[0])
masked_tensor(d,d)
masked_tensor(1,d)
masked_tensor(x,m)
M.is_masked_tensor(x)
g
(g*g).sum()
(g*g).sum().backward()
g.grad
g.is_leaf
g.requires_grad
a.exp().sum().backward()
"""


def names_of(lib) -> dict:
    d = lib.arange(6.0).reshape(2, 3)
    m = lib.tensor([[True, False, False], [True, True, False]])
    masked = lib.masked.masked_tensor
    source = d.clone().requires_grad_()
    return {
        "torch": lib,
        "M": lib.masked,
        "masked_tensor": masked,
        "d": d,
        "m": m,
        "x": masked(d, m),
        "y": masked(d, ~m),
        "i": masked(d.long(), m),
        "z": masked(lib.tensor(3.0), lib.tensor(False)),
        "g": masked(d, m, requires_grad=True),
        "a": lib.masked.as_masked_tensor(source, m),
    }


def shown(line: str, names: dict) -> str:
    try:
        text = repr(eval(line, names))
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
    return re.sub(r"object at 0x\w+", "", text).replace("taeda", "torch")


def test_a_program_prints_what_pytorch_prints():
    lines = PROGRAM.split("\n")[1:-1]
    assert len(lines) == 89
    theirs, ours = names_of(torch), names_of(taeda)
    wrong = []
    for line in lines:
        want, got = shown(line, theirs), shown(line, ours)
        if want != got:
            wrong.append((line, got, want))
    assert not wrong, wrong


def unary_names() -> list[str]:
    """Operators of one tensor that PyTorch's MaskedTensor has too."""
    from torch.masked.maskedtensor.unary import UNARY_NAMES

    names = [n for n in UNARY_NAMES if n not in ("clamp", "clip", "pow")]
    return [
        n for n in names if n == "positive" or any(map(is_elementwise, overloads(n)))
    ]


def binary_names() -> list[str]:
    from torch.masked.maskedtensor.binary import BINARY_NAMES

    return [n for n in BINARY_NAMES if any(map(is_elementwise, overloads(n)))]


def result(lib, name: str, dtype: str, count: int):
    data = (np.arange(6).reshape(2, 3) * 0.15 + 0.1).astype(dtype)
    if dtype == "int64":
        data = np.arange(1, 7).reshape(2, 3)
    mask = lib.tensor([[True, False, True], [False, True, True]])
    tensors = [
        lib.masked.masked_tensor(lib.from_numpy(data + i), mask) for i in range(count)
    ]
    try:
        found = getattr(lib.ops.aten, name)(*tensors)
    except Exception as error:
        return error
    return found.to_tensor(0).numpy(), found.get_mask().numpy()


def test_every_unary_and_binary_operator_agrees():
    cells = [(n, 1) for n in unary_names()] + [(n, 2) for n in binary_names()]
    compared = 0
    for name, count in cells:
        for dtype in ("float32", "float64", "int64"):
            want = result(torch, name, dtype, count)
            got = result(taeda, name, dtype, count)
            if isinstance(want, Exception):
                continue
            assert not isinstance(got, Exception), (name, dtype, got)
            np.testing.assert_allclose(got[0], want[0], 1e-5, 1e-6, err_msg=name)
            assert (got[1] == want[1]).all()
            compared += 1
    assert compared == COMPARED


COMPARED = 215


def test_gradients_are_masked_tensors():
    grads = []
    for lib in (torch, taeda):
        x = lib.masked.masked_tensor(
            lib.tensor([-10.0, 0.5, 100.0]),
            lib.tensor([True, True, False]),
            requires_grad=True,
        )
        (x.exp() * 2).sum().backward()
        grads.append(repr(x.grad))
    assert grads[0] == grads[1]


def test_copies_and_pickles():
    x = taeda.masked.masked_tensor(taeda.arange(3.0), taeda.tensor([True, False, True]))
    for twin in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert repr(twin) == repr(x)
        assert type(twin) is taeda.masked.MaskedTensor


def test_construction_warns_and_what_is_missing_is_refused():
    data, mask = taeda.arange(3.0), taeda.tensor([True, False, True])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        x = taeda.masked.masked_tensor(data, mask)
    assert "prototype" in str(caught[0].message)
    for refused in (lambda: x.cumsum(0), lambda: x.matmul(x), lambda: x.median()):
        with pytest.raises(TypeError, match="no implementation"):
            refused()


@pytest.mark.parametrize("name", ["sum", "prod", "amax", "amin", "mean"])
@pytest.mark.parametrize("layout", ["coo", "csr"])
def test_reductions_of_sparse_tensors_are_those_of_their_elements(name, layout):
    if (name, layout) == ("mean", "coo"):
        with pytest.raises(ValueError, match="expects strided or sparse_csr tensor"):
            taeda.masked.mean(taeda.ones(2).to_sparse(), mask=taeda.ones(2) > 0)
        return
    x = taeda.tensor([[-1.0, 0, -2], [0, 3, 0], [0, 0, 0]])
    mask = taeda.tensor([[True, True, False], [False, True, False], [False] * 3])
    to_layout = (
        taeda.Tensor.to_sparse if layout == "coo" else taeda.Tensor.to_sparse_csr
    )
    reduce = getattr(taeda.masked, name)
    for dim in (0, 1, (0, 1)):
        wanted = reduce(x, dim, keepdim=True, mask=mask)
        wanted = wanted.masked_fill(~mask.sum(dim, keepdim=True).bool(), 0)
        for given in (mask, mask.to_sparse(), mask.to_sparse_csr()):
            found = reduce(to_layout(x), dim, keepdim=True, mask=given)
            assert found.layout == to_layout(x).layout
            assert taeda.equal(found.to_dense(), wanted)
    if name != "sum":
        with pytest.raises(ValueError, match=f"explicit mask for sparse_{layout}"):
            reduce(to_layout(x), 0, keepdim=True)


def test_a_compressed_result_keeps_its_dims():
    x = taeda.ones(2, 2).to_sparse_csr()
    with pytest.raises(RuntimeError, match="CSR tensors with keepdim=False"):
        taeda.masked.sum(x, 0)
    assert taeda.masked.sum(x, 0, keepdim=True).to_dense().tolist() == [[2.0, 2.0]]


def test_softmax_of_a_sparse_tensor_names_the_layout():
    with pytest.raises(ValueError, match="softmax expects strided tensor"):
        taeda.masked.softmax(taeda.ones(2, 2).to_sparse(), 0)
