"""Operators one by one: in the graph, by core operators, after a file."""

from __future__ import annotations

import io

import pytest
import taeda
from taeda import export, nn
from taeda.nn import functional as F

A = taeda.arange(16.0).reshape(4, 4).sin()
B = taeda.arange(16.0).reshape(4, 4).cos() + 1.5
IMAGE = taeda.arange(48.0).reshape(1, 3, 4, 4).sin()
PLACES = taeda.tensor([0, 1, 2, 3])


def assigned(x, i):
    y = x.clone()
    y[0] = 1.0
    y[:, 1] = y[:, 0]
    y[i] = 2.0
    y[1:, 2:] *= 3
    return y


def in_place(x):
    y = x.clone()
    y.add_(1).mul_(2).relu_().clamp_(0, 3).sub_(x).div_(2).exp_()
    y += 1
    y -= x
    y **= 2
    y[0] += 1
    y[:, 1:] *= 2
    return y, y.t_()


PROGRAMS = {
    "activations": (
        lambda x: (
            *(F.relu6(x), F.leaky_relu(x), F.elu(x), F.hardswish(x), F.mish(x)),
            *(F.softplus(x), F.glu(x), F.silu(x), F.hardtanh(x), F.selu(x), F.gelu(x)),
            *(F.celu(x), F.logsigmoid(x), F.softsign(x), F.tanhshrink(x)),
            *(F.threshold(x, 0.1, 0), F.prelu(x, taeda.ones(1) / 4), F.softmax(x, 1)),
        ),
        (A,),
    ),
    "losses": (
        lambda x, y: (
            *(F.mse_loss(x, y), F.l1_loss(x, y), F.smooth_l1_loss(x, y, beta=0.5)),
            *(F.huber_loss(x, y), F.kl_div(x, y), F.cosine_similarity(x, y)),
            F.binary_cross_entropy_with_logits(x, y),
            F.nll_loss(x, taeda.zeros(4, dtype=taeda.int64)),
            F.cross_entropy(x, y.softmax(1), label_smoothing=0.1),
        ),
        (A, B),
    ),
    "shapes": (
        lambda x: (
            *(x.flatten(), x.reshape(2, -1), x.unflatten(0, (2, 2)), x.squeeze()),
            *(x.permute(1, 0), x.T, x.mT, x.repeat(2, 1), x.expand(2, 4, 4), x.roll(1)),
            *(x.flip(0), x.tile(2), x.movedim(0, 1), x.narrow(0, 0, 2), x.diagonal()),
            *(x.tril(), x.triu(1), x.unfold(0, 2, 1), x.chunk(2), x.split([1, 3])),
        ),
        (A,),
    ),
    "indexing": (
        lambda x, i: (
            *(x[i], x[:, i], x[0], x[..., 1:3], x[None], x.gather(0, i[None])),
            *(x.index_select(0, i), x.take(i), x.masked_fill(x > 0, 1.0)),
            *(taeda.where(x > 0, x, 0.0), x.scatter(0, i[None], 1.0)),
        ),
        (A, PLACES),
    ),
    "assignments": (assigned, (A, PLACES[:2])),
    "in_place": (in_place, (A,)),
    "reductions": (
        lambda x: (
            *(x.sum(), x.sum(0), x.mean(1, keepdim=True), x.var(), x.std(0), x.max()),
            *(x.max(0), x.argmax(), x.prod(), x.norm(), x.logsumexp(0), x.cumsum(0)),
            *((x > 0).all(), x.amax(0), x.median(), x.sort(), x.topk(2), x.min(1)),
            *(x.logsumexp((0, 1), keepdim=True), x.std(correction=0), x.aminmax()),
        ),
        (A,),
    ),
    "products": (
        lambda x: (
            *(x @ x, x.mv(x[0]), x[0].dot(x[1]), taeda.bmm(x[None], x[None])),
            *(taeda.addmm(x, x, x, beta=2), taeda.einsum("ij,kj->ik", x, x)),
            *(taeda.outer(x[0], x[1]), x.matmul(x[0]), taeda.tensordot(x, x, 1)),
            taeda.baddbmm(x[None], x[None], x[None], beta=0.5, alpha=2),
            *(taeda.kron(x, x), x[0] @ x, x.expand(2, 3, 4, 4) @ x[0]),
        ),
        (A,),
    ),
    "arithmetic": (
        lambda x, y: (
            *(x + 1, 1 - x, x * 2.0, x / y, x // y, x % y, y**2, 2**x, -x, abs(x)),
            *(x > y, x.add(y, alpha=2), 3 - x.long(), x.double(), x.to(taeda.float16)),
            *(x.clamp(0, 1), x.clamp(min=0), ~(x > 0), taeda.lerp(x, y, 0.5)),
            *(taeda.addcmul(x, x, y), y.rsqrt(), x.erf(), x.round(), y.fmod(2)),
        ),
        (A, B),
    ),
    "factories": (
        lambda x: (
            *(taeda.zeros(3), taeda.ones(2, 2), taeda.full((2,), 3.0), taeda.arange(3)),
            *(
                taeda.eye(3),
                taeda.linspace(0, 1, 3),
                taeda.zeros_like(x),
                x.new_ones(2),
            ),
            *(
                taeda.ones(2, dtype=taeda.int32),
                taeda.full_like(x, 2),
                taeda.tensor(3.0),
            ),
            *(taeda.tensor([1, 2]), taeda.ones_like(x, dtype=taeda.bool)),
        ),
        (A,),
    ),
    "joins": (
        lambda x: (
            *(taeda.cat([x, x]), taeda.stack([x, x], 1), taeda.hstack([x, x])),
            *(x.unbind(), taeda.meshgrid(x[0], x[1], indexing="ij")),
            *(taeda.broadcast_tensors(x, x[0]), taeda.tensor_split(x, 2)),
        ),
        (A,),
    ),
    "images": (
        lambda x: (
            *(F.avg_pool2d(x, 2), F.max_pool2d(x, 2, return_indices=True)),
            *(F.adaptive_max_pool2d(x, 2), F.interpolate(x, scale_factor=2)),
            *(F.interpolate(x, size=(6, 6), mode="bilinear"), F.pad(x, (1, 1))),
            *(F.pad(x, (1, 1, 1, 1), mode="reflect"), F.unfold(x, 2)),
            F.conv_transpose2d(x, taeda.ones(3, 2, 3, 3)),
            *(F.group_norm(x, 3), F.instance_norm(x), F.local_response_norm(x, 2)),
        ),
        (IMAGE,),
    ),
    "attention": (
        lambda x: (
            F.scaled_dot_product_attention(x, x, x),
            F.scaled_dot_product_attention(x, x, x, taeda.ones(4, 4).bool().tril()),
            F.scaled_dot_product_attention(x, x, x, is_causal=True, scale=0.5),
        ),
        (IMAGE,),
    ),
    "embeddings": (
        lambda i: (
            *(F.embedding(i, taeda.ones(5, 3)), F.one_hot(i, 5)),
            F.embedding_bag(i[None], taeda.ones(5, 3)),
        ),
        (PLACES,),
    ),
    "lstm": (nn.LSTM(4, 3, bidirectional=True), (A[:, None],)),
    "multihead": (nn.MultiheadAttention(4, 2), (A[:, None],) * 3),
    "weight_norm": (nn.utils.parametrizations.weight_norm(nn.Linear(4, 2)), (A,)),
    "reflected": (nn.Conv2d(3, 2, 3, padding=1, padding_mode="reflect"), (IMAGE,)),
}


class Called(nn.Module):
    def __init__(self, function) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_of_operators(name: str) -> None:
    function, args = PROGRAMS[name]
    net = function if isinstance(function, nn.Module) else Called(function)
    ep = export.export(net, args)
    file = io.BytesIO()
    export.save(ep, file)
    wanted = net(*args)
    core = ep.run_decompositions()
    for program in (ep, core, export.load(file)):
        got = program.module()(*args)
        leaves = taeda.utils._pytree.tree_leaves
        for ours, theirs in zip(leaves(got), leaves(wanted), strict=True):
            taeda.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    calls = {str(n.target) for n in core.graph.nodes}
    assert not calls & {"aten.linear.default", "aten.matmul.default", "aten.t.default"}
