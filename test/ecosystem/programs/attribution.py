"""captum: what of its input a network's answer comes from."""

import torch
from captum.attr import (
    LRP,
    DeepLift,
    FeatureAblation,
    IntegratedGradients,
    LayerGradCam,
    Occlusion,
    Saliency,
    ShapleyValueSampling,
)

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
x = torch.randn(2, 4)
for kind in (IntegratedGradients, Saliency, DeepLift, FeatureAblation, LRP):
    print(kind.__name__, kind(net).attribute(x, target=1).detach())
print(LayerGradCam(net, net[0]).attribute(x, target=1).detach())
print(Occlusion(net).attribute(x, sliding_window_shapes=(2,), target=0))
print(ShapleyValueSampling(net).attribute(x, target=0, n_samples=3))
