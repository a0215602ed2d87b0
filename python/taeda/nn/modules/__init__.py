"""The layers. A file is read when one of its classes is first used."""

from __future__ import annotations

_FILES = {
    "module": "Module",
    "linear": "Bilinear Identity LazyLinear Linear",
    "conv": "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d",
    "_lazy_conv": (
        "LazyConv1d LazyConv2d LazyConv3d LazyConvTranspose1d"
        " LazyConvTranspose2d LazyConvTranspose3d"
    ),
    "activation": (
        "CELU ELU GELU GLU Hardshrink Hardsigmoid Hardswish Hardtanh"
        " LeakyReLU LogSigmoid LogSoftmax Mish PReLU RReLU ReLU ReLU6 SELU"
        " SiLU Sigmoid Softmax Softmax2d Softmin Softplus Softshrink"
        " Softsign Tanh Tanhshrink Threshold"
    ),
    "attention": "MultiheadAttention",
    "adaptive": "AdaptiveLogSoftmaxWithLoss",
    "batchnorm": (
        "BatchNorm1d BatchNorm2d BatchNorm3d LazyBatchNorm1d"
        " LazyBatchNorm2d LazyBatchNorm3d SyncBatchNorm"
    ),
    "instancenorm": (
        "InstanceNorm1d InstanceNorm2d InstanceNorm3d LazyInstanceNorm1d"
        " LazyInstanceNorm2d LazyInstanceNorm3d"
    ),
    "channelshuffle": "ChannelShuffle",
    "container": (
        "Container ModuleDict ModuleList ParameterDict ParameterList Sequential"
    ),
    "distance": "CosineSimilarity PairwiseDistance",
    "dropout": "AlphaDropout Dropout Dropout1d Dropout2d Dropout3d FeatureAlphaDropout",
    "flatten": "Flatten Unflatten",
    "fold": "Fold Unfold",
    "linear_cross_entropy_options": "LinearCrossEntropyOptions",
    "loss": (
        "BCELoss BCEWithLogitsLoss CTCLoss CosineEmbeddingLoss"
        " CrossEntropyLoss GaussianNLLLoss HingeEmbeddingLoss HuberLoss"
        " KLDivLoss L1Loss LinearCrossEntropyLoss MSELoss MarginRankingLoss"
        " MultiLabelMarginLoss MultiLabelSoftMarginLoss MultiMarginLoss"
        " NLLLoss NLLLoss2d PoissonNLLLoss SmoothL1Loss SoftMarginLoss"
        " TripletMarginLoss TripletMarginWithDistanceLoss"
    ),
    "normalization": "CrossMapLRN2d GroupNorm LayerNorm LocalResponseNorm RMSNorm",
    "padding": (
        "CircularPad1d CircularPad2d CircularPad3d ConstantPad1d"
        " ConstantPad2d ConstantPad3d ReflectionPad1d ReflectionPad2d"
        " ReflectionPad3d ReplicationPad1d ReplicationPad2d ReplicationPad3d"
        " ZeroPad1d ZeroPad2d ZeroPad3d"
    ),
    "pixelshuffle": "PixelShuffle PixelUnshuffle",
    "pooling": (
        "AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d"
        " AdaptiveMaxPool1d AdaptiveMaxPool2d AdaptiveMaxPool3d AvgPool1d"
        " AvgPool2d AvgPool3d FractionalMaxPool2d FractionalMaxPool3d"
        " LPPool1d LPPool2d LPPool3d MaxPool1d MaxPool2d MaxPool3d"
        " MaxUnpool1d MaxUnpool2d MaxUnpool3d"
    ),
    "rnn": "GRU GRUCell LSTM LSTMCell RNN RNNBase RNNCell RNNCellBase",
    "sparse": "Embedding EmbeddingBag",
    "transformer": (
        "Transformer TransformerDecoder TransformerDecoderLayer"
        " TransformerEncoder TransformerEncoderLayer"
    ),
    "upsampling": "Upsample UpsamplingBilinear2d UpsamplingNearest2d",
}
_WHERE = {name: file for file, names in _FILES.items() for name in names.split()}
__all__ = sorted(_WHERE)


def __getattr__(name: str):
    from importlib import import_module

    file = _WHERE.get(name)
    if file is not None:
        found = getattr(import_module(f"{__name__}.{file}"), name)
        globals()[name] = found
        return found
    if name in _FILES or name in ("lazy", "utils", "linear_cross_entropy"):
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return [*globals(), *__all__, *_FILES]
