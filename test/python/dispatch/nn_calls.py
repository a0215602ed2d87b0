"""A call of every module of `nn`, by the size of its batch.

Each entry is a name, what makes the module and what makes its arguments for a batch of
n: the dims whose size follows n are found by calling it twice.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import taeda
from taeda import nn


class Call(NamedTuple):
    """One call: `module()(*arguments(n))`."""

    name: str
    module: Callable
    arguments: Callable


def floats(*shape):
    """Positive, so that every loss is defined, and a leaf."""
    return (taeda.rand(*shape) * 0.8 + 0.1).requires_grad_()


def classes(high: int, *shape):
    return taeda.randint(0, high, shape)


def signs(*shape):
    return taeda.randint(0, 2, shape) * 2.0 - 1.0


def _image(*rest):
    return lambda n: (floats(n, *rest),)


def _pair(*rest):
    return lambda n: (floats(n, *rest), floats(n, *rest).detach())


def _calls(made: list[Call], arguments: Callable, names: str, *args, **kwargs) -> None:
    for name in names.split():
        cls = getattr(nn, name)
        made.append(Call(name, functools.partial(cls, *args, **kwargs), arguments))


def _activations(made: list[Call]) -> None:
    add = functools.partial(_calls, made, _image(6, 4))
    add(
        "CELU ELU GELU GLU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU "
        "LogSigmoid Mish PReLU RReLU ReLU ReLU6 SELU SiLU Sigmoid Softmin Softplus "
        "Softshrink Softsign Tanh Tanhshrink Identity"
    )
    add("Softmax LogSoftmax", dim=1)
    add("Softmax LogSoftmax", dim=-1)
    add("Threshold", 0.1, 20.0)
    add("AlphaDropout Dropout FeatureAlphaDropout Dropout1d")
    add("Flatten")
    add("Flatten", start_dim=0)
    add("Unflatten", 1, (2, 3))
    _calls(made, _image(4, 5, 5), "Dropout2d Softmax2d")
    _calls(made, _image(4, 3, 3, 3), "Dropout3d")
    _calls(made, _image(6, 5, 5), "ChannelShuffle", 3)
    _calls(made, _image(8, 5, 5), "PixelShuffle", 2)
    _calls(made, _image(2, 6, 6), "PixelUnshuffle", 3)


def _linear(made: list[Call]) -> None:
    _calls(made, _image(6), "Linear", 6, 4)
    _calls(made, _image(3, 6), "Linear", 6, 4, bias=False)
    _calls(made, _image(3, 6), "LazyLinear", 4)
    _calls(made, lambda n: (floats(n, 5), floats(n, 6)), "Bilinear", 5, 6, 4)
    _calls(made, lambda n: (classes(9, n, 3),), "Embedding", 9, 4)
    _calls(made, lambda n: (classes(9, n, 3),), "Embedding", 9, 4, padding_idx=2)
    for mode in ("sum", "mean"):
        _calls(made, lambda n: (classes(9, n, 3),), "EmbeddingBag", 9, 4, mode=mode)
    _calls(made, _pair(6), "CosineSimilarity")
    _calls(made, _pair(6), "PairwiseDistance")


def _convolutions(made: list[Call]) -> None:
    rests = ((3, 9), (3, 9, 8), (3, 6, 5, 4))
    for d, rest in enumerate(rests, 1):
        add = functools.partial(_calls, made, _image(*rest))
        add(f"Conv{d}d ConvTranspose{d}d", 3, 4, 3)
        add(f"Conv{d}d", 3, 6, 3, padding=1, groups=3)
        add(f"Conv{d}d", 3, 4, 3, padding="same")
        add(f"Conv{d}d", 3, 4, 3, padding=1, padding_mode="circular")
        add(f"LazyConv{d}d LazyConvTranspose{d}d", 4, 3)
        add(f"AvgPool{d}d MaxPool{d}d", 2)
        add(f"LPPool{d}d", 2.0, 2)
        add(f"AdaptiveAvgPool{d}d AdaptiveMaxPool{d}d", 3)
        add(f"ReflectionPad{d}d ReplicationPad{d}d CircularPad{d}d ZeroPad{d}d", 2)
        add(f"ConstantPad{d}d", 2, 1.5)
        add(f"BatchNorm{d}d", 3)
        add(f"BatchNorm{d}d", 3, affine=False, track_running_stats=False)
        add(f"InstanceNorm{d}d", 3, affine=True)
        add(f"InstanceNorm{d}d", 3, track_running_stats=True)
        add(f"LazyBatchNorm{d}d LazyInstanceNorm{d}d")
        _calls(made, _unpooled(d, rest), f"MaxUnpool{d}d", 2)
    _calls(made, _image(3, 8, 8), "FractionalMaxPool2d", 2, output_size=4)
    _calls(made, _image(3, 6, 6, 6), "FractionalMaxPool3d", 2, output_size=3)
    _calls(made, _image(3, 8, 8), "Unfold", 3)
    _calls(made, _image(12, 9), "Fold", (4, 4), 2)
    modes = {"nearest": 1, "linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}
    for mode, d in modes.items():
        _calls(made, _image(*rests[d - 1]), "Upsample", scale_factor=2, mode=mode)
    _calls(made, _image(3, 9), "Upsample", size=5)
    _calls(made, _image(3, 9, 8), "UpsamplingBilinear2d UpsamplingNearest2d", None, 2)


def _unpooled(d: int, rest: tuple):
    def arguments(n: int):
        even = [size // 2 * 2 for size in rest[1:]]
        pool = getattr(nn, f"MaxPool{d}d")(2, return_indices=True)
        pooled, places = pool(floats(n, rest[0], *even))
        return pooled.detach().requires_grad_(), places

    return arguments


def _norms(made: list[Call]) -> None:
    _calls(made, _image(6, 5, 4), "GroupNorm", 3, 6)
    _calls(made, _image(6, 5, 4), "GroupNorm", 3, 6, affine=False)
    _calls(made, _image(6, 5), "LayerNorm RMSNorm", 5)
    _calls(made, _image(6, 5), "LayerNorm", (6, 5), elementwise_affine=False)
    _calls(made, _image(6, 5, 4), "LocalResponseNorm CrossMapLRN2d", 2)


def _losses(made: list[Call]) -> None:
    pairs = "BCELoss BCEWithLogitsLoss HuberLoss KLDivLoss L1Loss MSELoss SmoothL1Loss"
    for reduction in ("mean", "sum", "none"):
        add = functools.partial(_calls, made, reduction=reduction)
        add(_pair(5), f"{pairs} PoissonNLLLoss")
        add(
            lambda n: (floats(n, 5), floats(n, 5), signs(n)),
            "CosineEmbeddingLoss",
        )
        add(lambda n: (floats(n), floats(n), signs(n)), "MarginRankingLoss")
        add(lambda n: (floats(n, 5), signs(n, 5)), "SoftMarginLoss HingeEmbeddingLoss")
        add(
            lambda n: (floats(n, 5), classes(5, n)),
            "CrossEntropyLoss MultiMarginLoss NLLLoss NLLLoss2d",
        )
        add(lambda n: (floats(n, 5), classes(5, n, 5)), "MultiLabelMarginLoss")
        add(lambda n: (floats(n, 5, 4), classes(5, n, 4)), "CrossEntropyLoss NLLLoss")
        add(lambda n: (floats(n, 5), floats(n, 5)), "CrossEntropyLoss")
        add(
            lambda n: (floats(n, 5), classes(2, n, 5).float()),
            "MultiLabelSoftMarginLoss",
        )
        add(
            lambda n: tuple(floats(n, 5) for _ in range(3)),
            "TripletMarginLoss TripletMarginWithDistanceLoss",
        )
        add(lambda n: (floats(n, 5), floats(n, 5), floats(n, 5)), "GaussianNLLLoss")
        add(_sequences, "CTCLoss")
    for reduction in ("mean", "sum", "none"):
        _calls(
            made,
            lambda n: (floats(n, 8), classes(5, n)),
            "LinearCrossEntropyLoss",
            8,
            5,
            reduction=reduction,
        )
    _calls(made, _pair(5), "KLDivLoss", reduction="batchmean")
    _calls(made, _pair(5), "KLDivLoss", reduction="batchmean", log_target=True)
    weight = taeda.rand(5)
    for name in ("CrossEntropyLoss", "NLLLoss"):
        _calls(made, lambda n: (floats(n, 5), classes(5, n)), name, weight=weight)
    _calls(made, _pair(5), "BCELoss BCEWithLogitsLoss", weight=weight)
    _calls(
        made,
        lambda n: (floats(n, 5), classes(5, n)),
        "CrossEntropyLoss",
        label_smoothing=0.1,
    )
    _calls(
        made,
        lambda n: (floats(n, 8), classes(12, n)),
        "AdaptiveLogSoftmaxWithLoss",
        8,
        12,
        [4, 8],
    )


def _sequences(n: int):
    lengths = taeda.full((n,), 7), taeda.full((n,), 3)
    return floats(7, n, 5).log_softmax(-1), classes(4, n, 3) + 1, *lengths


def _recurrent(made: list[Call]) -> None:
    for name in ("RNN", "GRU", "LSTM"):
        state = (lambda n: floats(n, 4),) * (2 if name == "LSTM" else 1)
        add = functools.partial(_calls, made)
        add(lambda n: (floats(5, n, 3),), name, 3, 4)
        add(lambda n: (floats(n, 5, 3),), name, 3, 4, 2, batch_first=True)
        add(_image(5, 3), name, 3, 4, batch_first=True, bidirectional=True)
        add(
            lambda n, name=name: (floats(5, n, 3), _state(name, n)),
            name,
            3,
            4,
        )
        add(lambda n: (floats(n, 3),), f"{name}Cell", 3, 4)
        add(
            lambda n, state=state, name=name: (
                floats(n, 3),
                tuple(s(n) for s in state) if name == "LSTM" else state[0](n),
            ),
            f"{name}Cell",
            3,
            4,
        )


def _state(name: str, n: int):
    h = floats(1, n, 4)
    return (h, floats(1, n, 4)) if name == "LSTM" else h


def _transformers(made: list[Call]) -> None:
    def three(n):
        return tuple(floats(n, 5, 8) for _ in range(3))

    add = functools.partial(_calls, made)
    add(three, "MultiheadAttention", 8, 2, batch_first=True)
    add(three, "MultiheadAttention", 8, 2, batch_first=True, add_zero_attn=True)
    add(
        lambda n: tuple(floats(5, n, 8) for _ in range(3)),
        "MultiheadAttention",
        8,
        2,
        bias=False,
    )
    width = {"dim_feedforward": 16, "batch_first": True}
    add(_image(5, 8), "TransformerEncoderLayer", 8, 2, **width)
    add(lambda n: three(n)[:2], "TransformerDecoderLayer", 8, 2, **width)

    def encoder():
        return nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, **width), 2)

    def decoder():
        return nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, **width), 2)

    made.append(Call("TransformerEncoder", encoder, _image(5, 8)))
    made.append(Call("TransformerDecoder", decoder, lambda n: three(n)[:2]))
    whole = functools.partial(nn.Transformer, 8, 2, 1, 1, **width)
    made.append(Call("Transformer", whole, lambda n: three(n)[:2]))


def _containers(made: list[Call]) -> None:
    def stack():
        return nn.Sequential(
            nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.LazyLinear(2)
        )

    made.append(Call("Sequential", stack, _image(3, 6, 6)))


def calls() -> list[Call]:
    """All of them."""
    made: list[Call] = []
    for part in (
        _activations,
        _linear,
        _convolutions,
        _norms,
        _losses,
        _recurrent,
        _transformers,
        _containers,
    ):
        part(made)
    return made
