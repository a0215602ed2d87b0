"""Transformer encoders and decoders."""

from __future__ import annotations

import copy

import taeda
from taeda import Tensor

from .. import functional as F
from .. import init
from .._types import Flag, MaybeDevice, MaybeDtype, MaybeTensor
from ._encoder_padding import leaves_padding_out, left_out
from .activation import GELU, ReLU
from .attention import MultiheadAttention
from .container import ModuleList
from .dropout import Dropout
from .linear import Linear
from .module import Module
from .normalization import LayerNorm

__all__ = [
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]


def _generate_square_subsequent_mask(
    sz: int, device: MaybeDevice = None, dtype: MaybeDtype = None
) -> Tensor:
    """(sz, sz): -inf above the diagonal, 0 elsewhere."""
    full = taeda.full((sz, sz), float("-inf"), dtype=dtype, device=device)
    return taeda.triu(full, diagonal=1)


def _length(x, batch_first):
    """Sequence length of (L, E), (L, N, E) or (N, L, E)."""
    return x.size(1 if batch_first and x.dim() == 3 else 0)


def _is_causal(mask, is_causal, size) -> bool:
    """Whether a mask is the causal one; looked up where the caller does not say."""
    if is_causal is not None or mask is None:
        return bool(is_causal)
    causal = _generate_square_subsequent_mask(size, mask.device, mask.dtype)
    return mask.size() == causal.size() and bool((mask == causal).all())


def _get_clones(module: Module, count: int) -> ModuleList:
    return ModuleList([copy.deepcopy(module) for _ in range(count)])


def _get_activation_fn(activation):
    if not isinstance(activation, str):
        return activation
    if activation not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    return getattr(F, activation)


class _Layer(Module):
    """What encoder and decoder layers share: feed-forward block and residuals."""

    __constants__ = ["norm_first"]

    _attentions: tuple[str, ...]

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation=F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: MaybeDevice = None,
        dtype: MaybeDtype = None,
    ) -> None:
        super().__init__()
        kind = {"device": device, "dtype": dtype}
        heads = {"dropout": dropout, "bias": bias, "batch_first": batch_first, **kind}
        for name in self._attentions:
            setattr(self, name, MultiheadAttention(d_model, nhead, **heads))
        self.linear1 = Linear(d_model, dim_feedforward, bias, **kind)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **kind)
        self.norm_first = norm_first
        numbers = range(1, len(self._attentions) + 2)
        for i in numbers:
            norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **kind)
            setattr(self, f"norm{i}", norm)
        for i in numbers:
            setattr(self, f"dropout{i}", Dropout(dropout))
        self._activate(_get_activation_fn(activation))

    def _activate(self, activation) -> None:
        self.activation = activation

    def _residual(self, x, norm, block):
        """x + block(norm(x)), or norm(x + block(x))."""
        return x + block(norm(x)) if self.norm_first else norm(x + block(x))

    def _attend(self, attention, x, memory, mask, padding, is_causal):
        return attention(
            x,
            memory,
            memory,
            attn_mask=mask,
            key_padding_mask=padding,
            need_weights=False,
            is_causal=is_causal,
        )[0]

    def _feed_forward(self, x):
        return self.linear2(self.dropout(self.activation(self.linear1(x))))

    def __setstate__(self, state) -> None:
        super().__setstate__(state)
        if "activation" not in self.__dict__ and "activation" not in self._modules:
            self.activation = F.relu


class TransformerEncoderLayer(_Layer):
    """Self-attention and a feed-forward block, each with residual and layer norm.

    Vaswani et al., "Attention Is All You Need", 2017.

    Args:
        d_model: width of input and output.
        nhead: heads of the attention.
        dim_feedforward: width between the two linear layers.
        dropout: everywhere, while training.
        activation: "relu", "gelu" or a function of one tensor.
        layer_norm_eps: of the layer norms.
        batch_first: (N, L, E) rather than (L, N, E).
        norm_first: normalize before each block instead of after its residual.
        bias: whether linear layers and norms have biases.
        device, dtype: of the parameters.

    Example:
        >>> layer = taeda.nn.TransformerEncoderLayer(4, 2, 8)
        >>> tuple(layer(taeda.ones(5, 1, 4)).shape)
        (5, 1, 4)
    """

    _attentions = ("self_attn",)

    def _activate(self, activation) -> None:
        self.activation = activation
        relu = activation is F.relu or isinstance(activation, ReLU)
        gelu = activation is F.gelu or isinstance(activation, GELU)
        self.activation_relu_or_gelu = 1 if relu else 2 if gelu else 0

    def forward(
        self,
        src: Tensor,
        src_mask: MaybeTensor = None,
        src_key_padding_mask: MaybeTensor = None,
        is_causal: bool = False,
    ) -> Tensor:
        """
        Args:
            src (Tensor): (L, N, E).
            src_mask (Tensor): (L, L) or (N * heads, L, L); True or -inf hides.
            src_key_padding_mask (Tensor): (N, L).
            is_causal: `src_mask` is the causal one.
        """
        padding, mask = _masks(
            src_key_padding_mask,
            src_mask,
            src.dtype,
            "src_key_padding_mask",
            "src_mask",
        )

        def attend(x):
            return self._sa_block(x, mask, padding, is_causal)

        x = self._residual(src, self.norm1, attend)
        return self._residual(x, self.norm2, self._ff_block)

    def _sa_block(self, x, attn_mask, key_padding_mask, is_causal=False):
        masks = (attn_mask, key_padding_mask, is_causal)
        return self.dropout1(self._attend(self.self_attn, x, x, *masks))

    def _ff_block(self, x):
        return self.dropout2(self._feed_forward(x))


def _masks(padding, mask, dtype, padding_name, mask_name):
    """Both masks as numbers to add."""
    other = F._none_or_dtype(mask)
    padding = F._canonical_mask(padding, padding_name, other, mask_name, dtype)
    mask = F._canonical_mask(mask, mask_name, None, "", dtype, check_other=False)
    return padding, mask


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to the encoder's output, and a feed-forward block.

    Vaswani et al., "Attention Is All You Need", 2017. Arguments as
    `TransformerEncoderLayer`.

    Example:
        >>> layer = taeda.nn.TransformerDecoderLayer(4, 2, 8)
        >>> tuple(layer(taeda.ones(5, 1, 4), taeda.ones(3, 1, 4)).shape)
        (5, 1, 4)
    """

    _attentions = ("self_attn", "multihead_attn")

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: MaybeTensor = None,
        memory_mask: MaybeTensor = None,
        tgt_key_padding_mask: MaybeTensor = None,
        memory_key_padding_mask: MaybeTensor = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """
        Args:
            tgt, memory (Tensor): (T, N, E) and the encoder's (S, N, E).
            tgt_mask, memory_mask (Tensor): (T, T) and (T, S).
            tgt_key_padding_mask, memory_key_padding_mask (Tensor): (N, T), (N, S).
            tgt_is_causal, memory_is_causal: the masks are the causal ones.
        """

        def attend(x):
            return self._sa_block(x, tgt_mask, tgt_key_padding_mask, tgt_is_causal)

        def look(x):
            masks = (memory_mask, memory_key_padding_mask, memory_is_causal)
            return self._mha_block(x, memory, *masks)

        x = self._residual(tgt, self.norm1, attend)
        x = self._residual(x, self.norm2, look)
        return self._residual(x, self.norm3, self._ff_block)

    def _sa_block(self, x, attn_mask, key_padding_mask, is_causal=False):
        masks = (attn_mask, key_padding_mask, is_causal)
        return self.dropout1(self._attend(self.self_attn, x, x, *masks))

    def _mha_block(self, x, mem, attn_mask, key_padding_mask, is_causal=False):
        masks = (attn_mask, key_padding_mask, is_causal)
        return self.dropout2(self._attend(self.multihead_attn, x, mem, *masks))

    def _ff_block(self, x):
        return self.dropout3(self._feed_forward(x))


class _Stack(Module):
    """Copies of a layer, one after another, and a norm at the end."""

    __constants__ = ["norm"]

    def __init__(self, layer: Module, num_layers: int, norm: Module | None) -> None:
        super().__init__()
        self.layers = _get_clones(layer, num_layers)
        self.num_layers, self.norm = num_layers, norm

    def _finish(self, x):
        return x if self.norm is None else self.norm(x)


class TransformerEncoder(_Stack):
    """A stack of copies of an encoder layer.

    Args:
        encoder_layer: the layer, copied `num_layers` times.
        num_layers: how many.
        norm: applied at the end.
        enable_nested_tensor: without gradients and outside of training, positions
            that `src_key_padding_mask` hides are zero in the last layer's output
            (layers with biases, `batch_first`, an even number of heads and relu or
            gelu that do not say `norm_first`).
        mask_check: do so only where the mask hides nothing but the ends of sequences.

    Example:
        >>> layer = taeda.nn.TransformerEncoderLayer(4, 2, 8)
        >>> tuple(taeda.nn.TransformerEncoder(layer, 2)(taeda.ones(5, 1, 4)).shape)
        (5, 1, 4)
    """

    def __init__(
        self,
        encoder_layer: TransformerEncoderLayer,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__(encoder_layer, num_layers, norm)
        self.mask_check = mask_check
        self.enable_nested_tensor = enable_nested_tensor
        self.use_nested_tensor = leaves_padding_out(
            enable_nested_tensor, encoder_layer, TransformerEncoderLayer
        )

    def forward(
        self,
        src: Tensor,
        mask: MaybeTensor = None,
        src_key_padding_mask: MaybeTensor = None,
        is_causal: Flag = None,
    ) -> Tensor:
        """Arguments as `TransformerEncoderLayer.forward`; None looks at the mask."""
        padding, mask = _masks(
            src_key_padding_mask, mask, src.dtype, "src_key_padding_mask", "mask"
        )
        size = _length(src, self.layers[0].self_attn.batch_first)
        causal = _is_causal(mask, is_causal, size)
        hidden = left_out(self, src, mask, padding)
        for layer in self.layers:
            src = layer(
                src, src_mask=mask, is_causal=causal, src_key_padding_mask=padding
            )
        if hidden is not None:
            src = src.masked_fill(hidden.unsqueeze(2), 0.0)
        return self._finish(src)


class TransformerDecoder(_Stack):
    """A stack of copies of a decoder layer.

    Args:
        decoder_layer: the layer, copied `num_layers` times.
        num_layers: how many.
        norm: applied at the end.

    Example:
        >>> layer = taeda.nn.TransformerDecoderLayer(4, 2, 8)
        >>> decoder = taeda.nn.TransformerDecoder(layer, 2)
        >>> tuple(decoder(taeda.ones(5, 1, 4), taeda.ones(3, 1, 4)).shape)
        (5, 1, 4)
    """

    def __init__(
        self,
        decoder_layer: TransformerDecoderLayer,
        num_layers: int,
        norm: Module | None = None,
    ) -> None:
        super().__init__(decoder_layer, num_layers, norm)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: MaybeTensor = None,
        memory_mask: MaybeTensor = None,
        tgt_key_padding_mask: MaybeTensor = None,
        memory_key_padding_mask: MaybeTensor = None,
        tgt_is_causal: Flag = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Arguments as `TransformerDecoderLayer.forward`; None looks at the mask."""
        size = _length(tgt, self.layers[0].self_attn.batch_first)
        options = {
            "tgt_mask": tgt_mask,
            "memory_mask": memory_mask,
            "tgt_key_padding_mask": tgt_key_padding_mask,
            "memory_key_padding_mask": memory_key_padding_mask,
            "tgt_is_causal": _is_causal(tgt_mask, tgt_is_causal, size),
            "memory_is_causal": memory_is_causal,
        }
        for layer in self.layers:
            tgt = layer(tgt, memory, **options)
        return self._finish(tgt)


class Transformer(Module):
    """An encoder, and a decoder that looks at its output.

    Vaswani et al., "Attention Is All You Need", 2017.

    Args:
        d_model, nhead: width and heads.
        num_encoder_layers, num_decoder_layers: depths.
        dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first,
            bias, device, dtype: as for `TransformerEncoderLayer`.
        custom_encoder, custom_decoder: modules to use instead.

    Raises:
        RuntimeError: in forward, batch or width that does not fit.

    Example:
        >>> net = taeda.nn.Transformer(4, 2, 1, 1, 8)
        >>> tuple(net(taeda.ones(3, 1, 4), taeda.ones(5, 1, 4)).shape)
        (5, 1, 4)
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation=F.relu,
        custom_encoder=None,
        custom_decoder=None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: MaybeDevice = None,
        dtype: MaybeDtype = None,
    ) -> None:
        super().__init__()
        kind = {"device": device, "dtype": dtype}
        options = (d_model, nhead, dim_feedforward, dropout, activation)
        options += (layer_norm_eps, batch_first, norm_first, bias)

        def made(stack, layer, count):
            first = layer(*options, **kind)
            norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **kind)
            return stack(first, count, norm)

        if custom_encoder is None:
            kinds = (TransformerEncoder, TransformerEncoderLayer)
            custom_encoder = made(*kinds, num_encoder_layers)
        if custom_decoder is None:
            kinds = (TransformerDecoder, TransformerDecoderLayer)
            custom_decoder = made(*kinds, num_decoder_layers)
        self.encoder, self.decoder = custom_encoder, custom_decoder
        self._reset_parameters()
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def _reset_parameters(self) -> None:
        for value in self.parameters():
            if value.dim() > 1:
                init.xavier_uniform_(value)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: MaybeTensor = None,
        tgt_mask: MaybeTensor = None,
        memory_mask: MaybeTensor = None,
        src_key_padding_mask: MaybeTensor = None,
        tgt_key_padding_mask: MaybeTensor = None,
        memory_key_padding_mask: MaybeTensor = None,
        src_is_causal: Flag = None,
        tgt_is_causal: Flag = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """
        Args:
            src, tgt (Tensor): (S, N, E) and (T, N, E).
            src_mask ... memory_is_causal: as for encoder and decoder.
        """
        batch = 0 if self.batch_first else 1
        if src.dim() == 3 and src.size(batch) != tgt.size(batch):
            raise RuntimeError("the batch number of src and tgt must be equal")
        if not src.size(-1) == tgt.size(-1) == self.d_model:
            raise RuntimeError(
                "the feature number of src and tgt must be equal to d_model"
            )
        source = {"mask": src_mask, "is_causal": src_is_causal}
        padding = {"src_key_padding_mask": src_key_padding_mask}
        memory = self.encoder(src, **source, **padding)
        masks = {"tgt_mask": tgt_mask, "memory_mask": memory_mask}
        padding = {
            "tgt_key_padding_mask": tgt_key_padding_mask,
            "memory_key_padding_mask": memory_key_padding_mask,
        }
        causal = {"tgt_is_causal": tgt_is_causal, "memory_is_causal": memory_is_causal}
        return self.decoder(tgt, memory, **masks, **padding, **causal)

    @staticmethod
    def generate_square_subsequent_mask(
        sz: int, device: MaybeDevice = None, dtype: MaybeDtype = None
    ) -> Tensor:
        """(sz, sz): -inf above the diagonal, 0 elsewhere."""
        return _generate_square_subsequent_mask(sz, device, dtype)
