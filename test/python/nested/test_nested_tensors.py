"""Nested tensors: the same program with PyTorch's, and what PyTorch's cannot do."""

from __future__ import annotations

import copy
import io
import pickle
import re

import numpy as np
import pytest
import taeda
import taeda.nested
import torch
import torch.nested

pytestmark = pytest.mark.filterwarnings("ignore")

# Evaluated in order, with one library and then the other; nt changes near the end.
PROGRAM = """
nt
nt.shape
nt.size(1)
nt.size(-1)
nt.stride()
nt.dim()
nt.numel()
nt.layout
nt.is_contiguous()
nt.offsets()
nt+b
nt+nt
nt*2
2-nt
nt+torch.ones(3)
nt+torch.ones(2,1,3)*torch.tensor([[[1.]],[[2.]]])
nt+torch.ones(3,1,3)
nt.transpose(1,2)
nt.transpose(0,1)
nt.sum()
nt.sum(1)
nt.sum(0)
nt.sum(2)
nt.sum((0,1))
nt.sum((1,2))
nt.sum(1,keepdim=True)
nt.sum(2,keepdim=True)
nt.sum(-1)
nt.mean(1)
nt.mean()
nt.mean(2)
nt.amax(1)
nt.amin(1)
nt.argmax(1)
nt.max(1)
nt.min(1)
nt.max(2)
nt.softmax(1)
nt.softmax(-1)
nt.softmax(0)
torch.softmax(nt,1)
F.softmax(nt,dim=1)
F.softmax(nt,dim=2)
F.log_softmax(nt,dim=2)
nt.view(2,-1,3)
nt.view(2,-1,3,1)
nt.view(6,3)
nt.reshape(2,-1,1,3)
nt.flatten(1)
nt.unsqueeze(-1).flatten(2)
nt.unflatten(2,(1,3))
nt.unsqueeze(1)
nt.unsqueeze(-1)
nt.squeeze(1)
nt.unsqueeze(2).squeeze(2)
nt[0]
nt[...,0]
nt[1,0]
nt[1:]
nt.select(2,0)
nt.select(0,1)
nt.narrow(2,0,1)
nt.chunk(2,0)
nt.chunk(3,2)
nt.split(1,2)
nt.split([1,2],2)
nt.split(1,1)
nt.split(1,0)
torch.cat([nt,nt],2)
torch.cat([nt,nt],1)
torch.cat([nt,b],0)
torch.stack([nt,nt],2)
torch.stack([nt,nt],0)
nt@torch.ones(3,2)
nt@torch.ones(2,3,2)
nt@torch.ones(3)
nt@nt
nt.transpose(1,2)@nt
torch.bmm(nt,torch.ones(2,3,4))
torch.matmul(torch.ones(2,3),nt.transpose(1,2))
torch.matmul(torch.ones(2,5,3),nt.transpose(1,2))
F.linear(nt,torch.ones(5,3),torch.ones(5))
F.layer_norm(nt,(3,))
F.layer_norm(nt,(3,),torch.ones(3),torch.ones(3))
F.layer_norm(nt,nt.shape[1:])
F.layer_norm(nt,nt.shape)
F.scaled_dot_product_attention(*[nt.unsqueeze(-1)]*3)
nt.to_padded_tensor(0.)
N.to_padded_tensor(nt,-1.,(2,5,3))
nt.unbind()
nt.unbind(1)
len(nt)
[x.shape for x in nt]
bool((nt==nt).all())
nt.numpy()
nt.item()
nt.permute(0,2,1)
nt.permute(2,0,1)
nt.mT
nt.contiguous()
nt.clone()
nt.double()
nt.to(torch.float64).dtype
torch.zeros_like(nt)
torch.ones_like(nt,dtype=torch.int64)
nt.expand(2,nt.shape[1],3)
torch.where(nt>0,nt,nt)
torch.where(nt>0,nt,0.)
nt.masked_fill(nt>0,0)
torch.clamp(nt,0,1)
nt.clamp(min=0)
torch.lerp(nt,nt,0.5)
nt.any()
nt.any(1)
nt.all(1)
nt.all(2)
nt.prod(1)
nt.shape[1]*2
nt.shape[1]>=0
nt.shape[1]>=5
nt.shape[1]==nt.sin().shape[1]
N.nested_tensor([],layout=J)
N.nested_tensor([torch.ones(2,3),torch.ones(3,4)],layout=J)
N.nested_tensor([1,2],layout=J)
N.nested_tensor([[1,2],[3]],layout=J)
N.nested_tensor([torch.ones(3,2),torch.ones(3,4)],layout=J)
N.nested_tensor([torch.ones(2),torch.ones(3).long()],layout=J)
N.nested_tensor([torch.ones(2),torch.ones(3,1)],layout=J)
N.as_nested_tensor(g(2,3,4),layout=J)
N.nested_tensor_from_jagged(g(6,2),torch.tensor([0,2,6]))
N.nested_tensor_from_jagged(g(6,2),lengths=torch.tensor([2,4]))
N.nested_tensor_from_jagged(g(6,2),torch.tensor([0,3,6]),lengths=torch.tensor([2,3]))
N.nested_tensor_from_jagged(g(6,2),torch.tensor([0,3,6]),lengths=torch.tensor([2,3])).unbind()
N.nested_tensor_from_jagged(g(6,2),torch.tensor([0,3,6]),lengths=torch.tensor([2,3])).contiguous()
N.nested_tensor_from_jagged(torch.ones(6,2))
N.narrow(g(3,5,2),1,torch.tensor([0,1,2]),torch.tensor([2,3,1]),layout=J).unbind()
N.narrow(g(3,5,2),1,0,torch.tensor([2,3,1]),layout=J).unbind()
N.narrow(torch.ones(3,5,2),2,0,torch.tensor([2,3,1]),layout=J)
N.masked_select(torch.arange(6).reshape(2,3),torch.tensor([[True,False,True],[False,True,False]]))
N.masked_select(torch.arange(12).reshape(2,3,2),torch.tensor([[True],[False],[True]]))
nt.detach()
nt.sin()
-nt
abs(nt)
nt**2
2**nt
nt.exp().log()
F.relu(nt)
F.gelu(nt)
F.silu(nt)
nt.__rdiv__(2)
nt.cfloat().dtype
nt.chalf().dtype
nt.conj()
torch.conj(nt)
(nt+9).mvlgamma(2).detach()
+nt
torch.positive(nt)
nt.real
torch.real(nt)
F.tanhshrink(nt)
torch.matmul(nt,other=torch.ones(3,2))
torch.bmm(nt,mat2=torch.ones(2,3,4))
F.dropout(nt,0.5,False)
F.embedding(N.nested_tensor([torch.tensor([0,1]),torch.tensor([2])],layout=J),g(3,2))
torch.nn.Linear(3,2).requires_grad_(False)(nt).shape
torch.nn.LayerNorm(3).requires_grad_(False)(nt)
nt.isnan().any()
nt.sum(1).sum(0)
nt.add_(1)
nt.mul_(2)
nt.zero_()
nt.requires_grad_()
nt.sin().sum()
(nt*nt).sum().backward()
nt.grad
torch.autograd.grad((nt*nt).sum(),nt)
nt.sin().grad_fn is not None
nt.transpose(1,2).contiguous()
torch.add(nt,1,alpha=2)
nt>0
nt.to_padded_tensor(0.).requires_grad
nt.type(torch.float64)
nt.element_size()
nt.is_floating_point()
torch.nn.functional.softplus(nt)
nt.sigmoid()
"""


def numbers(lib, *shape):
    n = int(np.prod(shape))
    return (lib.arange(n).reshape(shape) * 7 % 11).float() - 5


def names_of(lib) -> dict:
    jagged = lib.jagged
    entries = [numbers(lib, 2, 3), numbers(lib, 4, 3) + 0.5]
    heads = [numbers(lib, 2, 2, 4), numbers(lib, 3, 2, 4)]
    make = lib.nested.nested_tensor
    return {
        "torch": lib,
        "N": lib.nested,
        "F": lib.nn.functional,
        "J": jagged,
        "g": lambda *shape: numbers(lib, *shape),
        "nt": make(entries, layout=jagged),
        "b": make(entries, layout=jagged),
        "q": make(heads, layout=jagged).transpose(1, 2),
    }


def text_of(value) -> str:
    if getattr(value, "is_nested", False):
        listed = [round(v, 3) for v in value.values().double().flatten().tolist()]
        return f"{value!r} {listed}"
    if isinstance(value, (tuple, list)) and not hasattr(value, "numel"):
        return type(value).__name__ + str([text_of(v) for v in value])
    if hasattr(value, "flatten"):
        listed = [round(v, 3) for v in value.double().flatten().tolist()]
        return f"{tuple(value.shape)} {value.dtype} {listed}"
    return str(value)


def shown(line: str, names: dict) -> str:
    try:
        text = text_of(eval(line, names))
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
    text = re.sub(r"j\d+", "jN", text)
    return re.sub(r"object at 0x\w+>|0x\w+", "", text).replace("taeda", "torch")


def test_a_program_gives_what_pytorch_gives():
    lines = PROGRAM.split("\n")[1:-1]
    assert len(lines) == 187
    theirs, ours = names_of(torch), names_of(taeda)
    wrong = []
    for line in lines:
        want, got = shown(line, theirs), shown(line, ours)
        if want != got:
            wrong.append((line, got, want))
    assert not wrong, wrong


def nested(*lengths, width=3, seed=0, **options):
    taeda.manual_seed(seed)
    parts = [taeda.randn(n, width, dtype=taeda.float64) for n in lengths]
    return taeda.nested.nested_tensor(parts, layout=taeda.jagged, **options)


def test_raggedness_shows_as_a_size_and_no_tensor_has_it():
    nt = nested(2, 4)
    size = nt.shape[1]
    assert re.fullmatch(r"j\d+", str(size))
    assert size == nt.sin().shape[1]
    assert size != nested(2, 4).shape[1]
    with pytest.raises(TypeError, match="no single number"):
        int(size)
    with pytest.raises(RuntimeError):
        taeda.zeros(nt.shape)
    other = taeda.nested.nested_tensor_from_jagged(taeda.ones(6), nt.offsets())
    assert other.shape[1] == size
    with pytest.raises(RuntimeError, match="cannot call binary pointwise function"):
        nt + nested(2, 4)


@pytest.mark.parametrize("causal", [False, True])
def test_attention_is_each_sequences_own(causal):
    parts = [taeda.randn(n, 2, 4, dtype=taeda.float64) for n in (3, 1, 5)]
    nt = taeda.nested.nested_tensor(parts, layout=taeda.jagged, requires_grad=True)
    q = nt.transpose(1, 2)
    attend = taeda.nn.functional.scaled_dot_product_attention
    out = attend(q, q, q, is_causal=causal).transpose(1, 2)
    out.values().square().sum().backward()
    for entry, part, grad in zip(out.unbind(), parts, nt.grad.unbind(), strict=True):
        alone = torch.from_numpy(part.numpy()).requires_grad_()
        t = alone.transpose(0, 1)
        f = torch.nn.functional.scaled_dot_product_attention
        want = f(t, t, t, is_causal=causal).transpose(0, 1)
        want.square().sum().backward()
        np.testing.assert_allclose(entry.detach().numpy(), want.detach().numpy(), 1e-8)
        np.testing.assert_allclose(grad.numpy(), alone.grad.numpy(), 1e-7, 1e-9)


def test_a_layer_trains_as_on_each_entry():
    layer = taeda.nn.Sequential(
        taeda.nn.Linear(3, 5), taeda.nn.GELU(), taeda.nn.LayerNorm(5)
    ).double()
    nt = nested(2, 4, requires_grad=True)
    layer(nt).sum(1).square().sum().backward()
    grads = [p.grad.clone() for p in layer.parameters()]
    layer.zero_grad()
    sums = [layer(e.detach()).sum(0) for e in nt.unbind()]
    taeda.stack(sums).square().sum().backward()
    for mine, alone in zip(grads, layer.parameters(), strict=True):
        np.testing.assert_allclose(mine.numpy(), alone.grad.numpy(), 1e-9, 1e-12)


def test_second_derivatives():
    nt = nested(2, 3, requires_grad=True)
    (g,) = taeda.autograd.grad((nt**3).sum(), nt, create_graph=True)
    (h,) = taeda.autograd.grad(g.sum(), nt)
    np.testing.assert_allclose(h.values().numpy(), 6 * nt.values().detach().numpy())


def test_operators_of_the_ragged_dim_are_each_entrys():
    nt = nested(2, 4, 1)
    for name in "var median cumsum sort log_softmax logsumexp std cummax".split():
        found = getattr(nt, name)(dim=1)
        found = found if isinstance(found, tuple) else (found,)
        for column, result in enumerate(found):
            for entry, part in zip(nt.unbind(), result.unbind(), strict=True):
                want = getattr(torch.from_numpy(entry.numpy()), name)(dim=0)
                want = want[column] if isinstance(want, tuple) else want
                np.testing.assert_allclose(part.numpy(), want.numpy(), 1e-9, 1e-9)


def test_empty_entries_and_holes():
    nt = nested(0, 2, 0)
    assert nt.to_padded_tensor(1.0).shape == (3, 2, 3)
    assert nt.sum(1).tolist()[0] == [0.0] * 3
    assert [e.shape[0] for e in nt.softmax(1).unbind()] == [0, 2, 0]
    offsets, lengths = taeda.tensor([0, 3, 6]), taeda.tensor([2, 1])
    holes = taeda.nested.nested_tensor_from_jagged(taeda.arange(6.0), offsets, lengths)
    assert holes.sum().item() == 0 + 1 + 3
    assert holes.numel() == 3
    with pytest.raises(RuntimeError, match="holes"):
        holes.sum(1)
    with pytest.raises(RuntimeError, match="holes"):
        holes.to_padded_tensor(0.0)
    with pytest.raises(RuntimeError, match="beyond the values"):
        taeda.nested.nested_tensor_from_jagged(taeda.ones(2), offsets)


def test_copies_and_pickles():
    nt = nested(2, 4)
    for twin in (copy.deepcopy(nt), pickle.loads(pickle.dumps(nt))):
        assert taeda.equal(twin.values(), nt.values())
        assert twin.offsets().tolist() == [0, 2, 6]


def test_what_is_missing_names_itself():
    nt = nested(2, 4, requires_grad=True)
    with pytest.raises(NotImplementedError, match=r"layout taeda.strided"):
        taeda.nested.nested_tensor([taeda.ones(2)])
    with pytest.raises(NotImplementedError, match=r"aten\.flip"):
        nt.flip(2)
    with pytest.raises(NotImplementedError, match="not recorded by autograd"):
        taeda.ops.aten.sin(nt)
    with taeda.no_grad():
        assert taeda.ops.aten.sin(nt).is_nested


def test_a_saved_one_is_data():
    nt = nested(2, 4).transpose(1, 2)
    file = io.BytesIO()
    taeda.save({"nt": nt}, file)
    file.seek(0)
    found = taeda.load(file, weights_only=True)["nt"]
    assert [e.tolist() for e in found.unbind()] == [e.tolist() for e in nt.unbind()]


@pytest.mark.parametrize(
    "parts",
    [
        (1, taeda.tensor([0, 2]), None, 1),
        (taeda.ones(2), taeda.ones(2), None, 1),
        (taeda.ones(2), taeda.tensor(2), None, 1),
        (taeda.ones(2), taeda.tensor([0, 2]), taeda.tensor([1, 1]), 1),
        (taeda.ones(2), taeda.tensor([0, 2]), None, 2),
    ],
)
def test_a_damaged_one_is_refused(parts):
    from taeda._io.rebuild import nested as rebuild

    with pytest.raises(pickle.UnpicklingError, match="damaged"):
        rebuild(*parts)
