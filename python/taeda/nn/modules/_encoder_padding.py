"""Where an encoder leaves padded positions out, so that zeros stand there.

Without gradients and outside of training an encoder of a common form takes padded
sequences for sequences of different lengths; what stood behind their ends is zero in
its output. Here the positions are computed and then written over.
"""

from __future__ import annotations

import warnings

import taeda
from taeda.backends import mha

__all__: list[str] = []


def _obstacle(layer, kind: type) -> str | None:
    """What about an encoder's layer keeps its padded positions in, if anything does."""
    if not isinstance(layer, kind):
        return f"encoder_layer was not {kind.__name__}"
    attention = layer.self_attn
    obstacles = {
        "norm_first was True": layer.norm_first,
        "self_attn.batch_first was not True": not attention.batch_first,
        "self_attn._qkv_same_embed_dim was not True": (
            not attention._qkv_same_embed_dim
        ),
        "self_attn was passed bias=False": attention.in_proj_bias is None,
        "activation was neither relu nor gelu": not layer.activation_relu_or_gelu,
        "norm1.eps was not norm2.eps": layer.norm1.eps != layer.norm2.eps,
        "self_attn.num_heads is odd": attention.num_heads % 2 == 1,
    }
    found = next((text for text in obstacles if obstacles[text]), None)
    return None if found is None else f"encoder_layer.{found}"


def leaves_padding_out(wanted: bool, layer, kind: type) -> bool:
    """Whether an encoder of such layers does it, with a warning where it was wanted."""
    obstacle = _obstacle(layer, kind)
    if wanted and obstacle is not None:
        warnings.warn(
            "enable_nested_tensor is True, but self.use_nested_tensor is False "
            f"because {obstacle}",
            stacklevel=3,
        )
    return wanted and obstacle is None


def left_out(encoder, src, mask, padding):
    """(N, L): the positions of this call that are zero in its output, or None.

    `padding` (N, L) adds to scores: 0 where a position counts. What it holds is not
    looked at from Python, which would stop a capture.
    """
    if padding is None or mask is not None or src.dim() != 3:
        return None
    layer = encoder.layers[0]
    if not encoder.use_nested_tensor or layer.training:
        return None
    if not mha.get_fastpath_enabled() or taeda.is_autocast_enabled():
        return None
    if taeda.is_grad_enabled() and (
        src.requires_grad or any(p.requires_grad for p in layer.parameters())
    ):
        return None
    hidden = padding != 0
    if encoder.mask_check:  # rows that are padded at their ends alone
        hidden = hidden & ~(hidden[:, :-1] & ~hidden[:, 1:]).any()
    return hidden
