"""Padded positions of an encoder's output, against PyTorch's encoder."""

from __future__ import annotations

import warnings

import pytest
import taeda
import torch
from taeda import nn

END = [[0, 0, 1, 1], [0, 0, 0, 1]]
MIDDLE = [[0, 1, 0, 1], [0, 0, 0, 1]]


def encoder(library, seed, *, mask_check=True, norm=False, **options):
    options = {"batch_first": True, "dropout": 0.0, **options}
    layer = library.nn.TransformerEncoderLayer(8, 2, 16, **options)
    last = library.nn.LayerNorm(8) if norm else None
    whole = library.nn.TransformerEncoder(layer, 2, last, mask_check=mask_check)
    for i, p in enumerate(whole.parameters()):
        count = library.arange(p.numel(), dtype=library.float32)
        p.data = (count * (seed + i)).sin().reshape(p.shape)
    return whole.eval()


def output(library, model, mask, grad=False, **arguments):
    x = library.arange(64, dtype=library.float32).sin().reshape(2, 4, 8)
    mask = library.tensor(mask, dtype=library.bool)
    with library.set_grad_enabled(grad):
        return model(x, src_key_padding_mask=mask, **arguments).detach().numpy()


@pytest.mark.parametrize("mask", [END, MIDDLE])
@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.filterwarnings("ignore::UserWarning:torch")
def test_zeros_stand_where_the_ends_are_padded(mask, norm, activation, grad):
    options = {"norm": norm, "activation": activation}
    ours, theirs = (
        output(library, encoder(library, 3, **options), mask, grad)
        for library in (taeda, torch)
    )
    assert ours == pytest.approx(theirs, abs=1e-4)
    assert ((ours == 0).all(-1) == (theirs == 0).all(-1)).all()


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.train(),
        lambda m: setattr(m, "use_nested_tensor", False),
        lambda m: taeda.backends.mha.set_fastpath_enabled(False),
    ],
)
def test_padding_stays_in(change):
    model = encoder(taeda, 3)
    assert (output(taeda, model, END)[0, 2:] == 0).all()
    try:
        change(model)
        assert (output(taeda, model, END)[0, 2:] != 0).any()
    finally:
        taeda.backends.mha.set_fastpath_enabled(True)


@pytest.mark.parametrize(
    "options, reason",
    [
        ({"batch_first": False}, "self_attn.batch_first was not True"),
        ({"norm_first": True}, "norm_first was True"),
        ({"bias": False}, "self_attn was passed bias=False"),
        ({"nhead": 1}, "self_attn.num_heads is odd"),
        ({"activation": taeda.tanh}, "activation was neither"),
    ],
)
def test_layers_that_keep_padding_in_say_why(options, reason):
    options = {"d_model": 8, "nhead": 2, "batch_first": True, **options}
    layer = nn.TransformerEncoderLayer(**options)
    with pytest.warns(UserWarning, match=f"self.use_nested_tensor is False.*{reason}"):
        assert not nn.TransformerEncoder(layer, 1).use_nested_tensor
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
