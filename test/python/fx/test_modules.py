"""What modules of nn call inside: traced through, their graphs are PyTorch's.

Not in the list since one call differs: Threshold (its function is named so, not
`_threshold`), L1Loss (`weight` is passed on), FractionalMaxPool2d (order of keywords),
convolutions with a padding mode (the weight is read after the padding).
"""

from __future__ import annotations

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from both import LIBRARIES, Library, check

# Constructors, with the number of inputs where it is not one.
MODULES = """
Linear(3, 4); Linear(3, 4, bias=False); Bilinear(3, 3, 2) @2; Identity(); ReLU();
ReLU(True); ReLU6(); ELU(); SELU(); CELU(); GELU(); GELU("tanh"); SiLU(); Mish();
Sigmoid(); Tanh(); LogSigmoid(); Softplus(); Softsign(); Softshrink(); Hardshrink();
Hardtanh(); Hardsigmoid(); Hardswish(); LeakyReLU(0.1); PReLU(); RReLU();
Tanhshrink(); GLU(); Softmax(-1); LogSoftmax(-1); Softmin(-1); Softmax2d();
Conv1d(2, 3, 3); Conv2d(2, 3, 3, padding=1); Conv2d(2, 3, 3, padding="same");
Conv3d(2, 3, 3); ConvTranspose1d(2, 3, 3); ConvTranspose2d(2, 3, 3);
ConvTranspose3d(2, 3, 3); BatchNorm1d(3); BatchNorm2d(3); BatchNorm3d(3);
BatchNorm2d(3, track_running_stats=False); InstanceNorm1d(3);
InstanceNorm2d(3, affine=True); GroupNorm(1, 3); LayerNorm(3); RMSNorm(3);
LocalResponseNorm(2); MaxPool1d(2); MaxPool2d(2); MaxPool3d(2);
MaxPool2d(2, return_indices=True); AvgPool1d(2); AvgPool2d(2); AvgPool3d(2);
AdaptiveAvgPool1d(2); AdaptiveAvgPool2d(2); AdaptiveAvgPool3d(2);
AdaptiveMaxPool1d(2); AdaptiveMaxPool2d(2); AdaptiveMaxPool3d(2); LPPool1d(2, 2);
LPPool2d(2, 2); MaxUnpool2d(2) @2; Dropout(0.3); Dropout1d(); Dropout2d();
Dropout3d(); AlphaDropout(); FeatureAlphaDropout(); Flatten(); Unflatten(1, (1, 3));
Fold((4, 4), 2); Unfold(2); PixelShuffle(2); PixelUnshuffle(2); ChannelShuffle(2);
Upsample(scale_factor=2); UpsamplingNearest2d(scale_factor=2);
UpsamplingBilinear2d(scale_factor=2); ZeroPad1d(1); ZeroPad2d(1);
ConstantPad2d(1, 2.0); ReflectionPad2d(1); ReplicationPad2d(1); CircularPad2d(1);
Embedding(5, 3); EmbeddingBag(5, 3); CosineSimilarity() @2; PairwiseDistance() @2;
MSELoss() @2; CrossEntropyLoss() @2; NLLLoss() @2; BCELoss() @2;
BCEWithLogitsLoss() @2; KLDivLoss() @2; SmoothL1Loss() @2; HuberLoss() @2;
PoissonNLLLoss() @2; GaussianNLLLoss() @3; HingeEmbeddingLoss() @2;
SoftMarginLoss() @2; MultiLabelMarginLoss() @2; MultiLabelSoftMarginLoss() @2;
MultiMarginLoss() @2; CosineEmbeddingLoss() @3; MarginRankingLoss() @3;
TripletMarginLoss() @3; CTCLoss() @4; RNNCell(3, 4); LSTMCell(3, 4); GRUCell(3, 4);
RNN(3, 4); LSTM(3, 4); GRU(3, 4); MultiheadAttention(4, 2) @3;
TransformerEncoderLayer(4, 2); TransformerDecoderLayer(4, 2) @2;
Transformer(4, 2, 1, 1, 8) @2
"""
CASES = [text.strip() for text in MODULES.strip().split(";") if text.strip()]


def around(L, text: str):
    """The module inside of one that takes as many inputs."""
    name, _, count = text.partition("@")
    names = ", ".join("abcd"[: int(count or 1)])
    space: dict = {"L": L}
    exec(f"def forward(self, {names}): return self.inner({names})", space)
    kind = type("Net", (L.nn.Module,), {"forward": space["forward"]})
    net = kind()
    net.inner = eval(f"L.nn.{name}", space)
    return net


def through(L, text: str):
    class Whole(L.fx.Tracer):
        def is_leaf_module(self, m, path):
            return False

    try:
        return str(Whole().trace(around(L, text)))
    except ValueError as error:  # control flow on values: both refuse
        return type(error).__name__


def as_leaf(L, text: str):
    gm = L.fx.symbolic_trace(around(L, text))
    return str(gm.graph), gm.code, repr(gm)


@pytest.mark.parametrize("text", CASES)
def test_modules_are_traced_through_alike(text) -> None:
    check(lambda L: through(L, text))


@pytest.mark.parametrize("text", CASES)
def test_modules_are_leaves_alike(text) -> None:
    check(lambda L: as_leaf(L, text))


def test_the_list_is_whole() -> None:
    assert len(CASES) == 121
    traced = [through(Library(LIBRARIES[0]), text) for text in CASES]
    assert sum(text != "TraceError" for text in traced) >= 100
