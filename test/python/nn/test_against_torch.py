"""Layers, functions and initial values against PyTorch, forward and backward."""

from __future__ import annotations

import numpy as np
import pytest
import taeda
from tolerance import rounding

# Relative and absolute: layers of some hundred sums of some ten terms, and what is
# drawn by a formula of a few operations (orthogonal_ by a factorisation).
ERROR = (rounding("float64", 1024),) * 2
DRAWN = (rounding("float32", 24),) * 2


def values(shape, seed: int = 0, dtype="float64"):
    """Reproducible standard normal values as an array."""
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def tensor(T, array, requires_grad: bool = False):
    """A tensor of the library T with the values of `array`."""
    made = T.from_numpy(np.array(array))
    return made.requires_grad_() if requires_grad else made


def array(t):
    """The values of a tensor of either library."""
    return t.detach().numpy()


def copy_state(source, target) -> None:
    """Give `target`, a module of one library, the state of the other's `source`."""
    state = {k: taeda_or_torch(target)(v) for k, v in source.state_dict().items()}
    target.load_state_dict(state)


def taeda_or_torch(module):
    """A converter to the library that `module` belongs to."""
    if isinstance(module, taeda.nn.Module):
        return lambda t: taeda.from_numpy(np.array(array(t)))
    import torch

    return lambda t: torch.from_numpy(np.array(array(t)))


LAYERS = [
    ("Linear", (4, 3), (5, 4)),
    ("Conv1d", (2, 4, 3), (2, 2, 9)),
    ("Conv2d", (2, 4, 3, 2, 1), (2, 2, 7, 8)),
    ("Conv3d", (2, 2, 2), (1, 2, 4, 4, 4)),
    ("ConvTranspose2d", (2, 3, 3, 2), (2, 2, 4, 4)),
    ("BatchNorm1d", (3,), (4, 3)),
    ("BatchNorm2d", (3,), (4, 3, 2, 2)),
    ("InstanceNorm2d", (3,), (2, 3, 4, 4)),
    ("LayerNorm", (4,), (3, 4)),
    ("GroupNorm", (2, 4), (2, 4, 3)),
    ("RMSNorm", (4,), (3, 4)),
    ("GELU", (), (3, 4)),
    ("ELU", (0.7,), (3, 4)),
    ("Softmax", (1,), (3, 4)),
    ("PReLU", (), (3, 4)),
    ("MaxPool2d", (2,), (1, 2, 6, 6)),
    ("AvgPool2d", (3, 2, 1), (1, 2, 6, 6)),
    ("LPPool2d", (2, 2), (1, 2, 6, 6)),
    ("AdaptiveAvgPool2d", (3,), (1, 2, 7, 8)),
    ("ReflectionPad2d", (1,), (1, 2, 4, 4)),
    ("TransformerEncoderLayer", (4, 2, 8, 0.0), (5, 2, 4)),
    ("LSTM", (3, 4, 2), (5, 2, 3)),
    ("GRU", (3, 4), (5, 2, 3)),
    ("RNN", (3, 4), (5, 2, 3)),
]


@pytest.mark.parametrize(("name", "options", "shape"), LAYERS, ids=lambda v: str(v))
def test_layer(torch, name, options, shape):
    want, have = (getattr(T.nn, name)(*options).double() for T in (torch, taeda))
    copy_state(want, have)
    assert repr(want) == repr(have)
    x, y = (tensor(T, values(shape), True) for T in (torch, taeda))
    outputs = [
        m(t)[0] if isinstance(m(t), tuple) else m(t) for m, t in ((want, x), (have, y))
    ]
    np.testing.assert_allclose(array(outputs[1]), array(outputs[0]), *ERROR)
    for out in outputs:
        (out * out).sum().backward()
    np.testing.assert_allclose(array(y.grad), array(x.grad), *ERROR)
    for (n, p), (_, q) in zip(
        want.named_parameters(), have.named_parameters(), strict=True
    ):
        np.testing.assert_allclose(array(q.grad), array(p.grad), *ERROR, err_msg=n)


FUNCTIONS = {
    "interpolate": lambda F, x: F.interpolate(x, scale_factor=1.7, mode="bicubic"),
    "interpolate_area": lambda F, x: F.interpolate(x, size=3, mode="area"),
    "pad": lambda F, x: F.pad(x, (1, 2, 0, 1), mode="circular"),
    "unfold": lambda F, x: F.unfold(x, 2, padding=1),
    "local_response_norm": lambda F, x: F.local_response_norm(x, 3),
    "normalize": lambda F, x: F.normalize(x, dim=2),
    "softmin": lambda F, x: F.softmin(x, 1),
    "glu": lambda F, x: F.glu(x, 1),
    "huber_weighted": lambda F, x: F.huber_loss(x, x * 2, weight=x.detach() ** 2),
    "mse_weighted": lambda F, x: F.mse_loss(x, x * 2, weight=x.detach() ** 2),
    "gaussian_nll": lambda F, x: F.gaussian_nll_loss(x, x * 2, x.detach() ** 2),
    "multilabel_soft_margin": lambda F, x: F.multilabel_soft_margin_loss(x, x.sign()),
    "triplet": lambda F, x: F.triplet_margin_with_distance_loss(x, x * 2, x * 3),
    "poisson": lambda F, x: F.poisson_nll_loss(x, x.abs(), full=True),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(torch, name):
    results = []
    for T in (torch, taeda):
        x = tensor(T, values((2, 4, 5, 6)), True)
        out = FUNCTIONS[name](T.nn.functional, x)
        out.sum().backward()
        results.append((array(out), array(x.grad)))
    for have, want in zip(*reversed(results), strict=True):
        np.testing.assert_allclose(have, want, *ERROR)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_linear_cross_entropy_in_chunks(torch, reduction):
    F, options = taeda.nn.functional, taeda.nn.LinearCrossEntropyOptions
    x, w = tensor(taeda, values((7, 4))), tensor(taeda, values((5, 4), 1))
    target = taeda.tensor([0, 1, 2, -100, 4, 0, 1])
    factors = tensor(taeda, np.abs(values((5,), 2)))
    plain, chunked = (
        F.linear_cross_entropy(
            x, w, target, weight=factors, reduction=reduction, options=o
        )
        for o in (None, options(batch_chunk_size=2))
    )
    np.testing.assert_allclose(array(chunked), array(plain), *ERROR)


INITS = [
    "xavier_uniform_",
    "xavier_normal_",
    "kaiming_uniform_",
    "kaiming_normal_",
    "orthogonal_",
    "trunc_normal_",
]


@pytest.mark.parametrize("name", INITS)
def test_init_draws_the_same_values(torch, name):
    drawn = []
    for T in (torch, taeda):
        T.manual_seed(3)
        drawn.append(array(getattr(T.nn.init, name)(T.empty(7, 5))))
    np.testing.assert_allclose(drawn[1], drawn[0], *DRAWN)


def test_trunc_normal_tail_draws_the_same_values(torch):
    drawn = []
    for T in (torch, taeda):
        T.manual_seed(3)
        filled = T.nn.init.trunc_normal_(T.empty(50), a=1.5, b=3.0)
        drawn.append(array(filled))
    np.testing.assert_allclose(drawn[1], drawn[0], *DRAWN)
    assert drawn[1].min() >= 1.5 and drawn[1].max() <= 3


@pytest.mark.parametrize(
    "build",
    [
        lambda nn: nn.Linear(5, 3),
        lambda nn: nn.Conv2d(4, 6, 3, groups=2),
        lambda nn: nn.MultiheadAttention(4, 2),
        lambda nn: nn.LSTM(3, 4),
        lambda nn: nn.Transformer(4, 2, 1, 1, 8),
        lambda nn: nn.Embedding(5, 3, padding_idx=1),
    ],
)
def test_layers_begin_with_the_same_values(torch, build):
    states = []
    for T in (torch, taeda):
        T.manual_seed(11)
        states.append({k: array(v) for k, v in build(T.nn).state_dict().items()})
    assert list(states[0]) == list(states[1])
    for key, want in states[0].items():
        np.testing.assert_allclose(states[1][key], want, *DRAWN, err_msg=key)


def test_attention_masks(torch):
    want, have = (T.nn.MultiheadAttention(4, 2).double() for T in (torch, taeda))
    copy_state(want, have)
    mask = np.triu(np.ones((5, 5), bool), 1)
    hidden = np.zeros((2, 5), bool)
    hidden[1, 3:] = True
    for need_weights in (True, False):
        results = []
        for T, layer in ((torch, want), (taeda, have)):
            x = tensor(T, values((5, 2, 4)))
            results.append(
                layer(
                    *(x, x, x),
                    attn_mask=tensor(T, mask),
                    key_padding_mask=tensor(T, hidden),
                    need_weights=need_weights,
                )
            )
        for a, b in zip(*results, strict=True):
            if a is not None:
                np.testing.assert_allclose(array(b), array(a), *ERROR)
