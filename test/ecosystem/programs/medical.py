"""monai: a small U-Net over images, its loss, transforms and windows."""

import torch
from monai.inferers import sliding_window_inference
from monai.losses import DiceLoss
from monai.metrics import DiceMetric
from monai.networks.nets import UNet
from monai.transforms import Compose, Resize, ScaleIntensity

torch.manual_seed(0)
net = UNet(
    spatial_dims=2, in_channels=1, out_channels=2, channels=(4, 8, 16), strides=(2, 2)
).eval()
x = torch.rand(1, 1, 32, 32)
labels = torch.randint(2, (1, 1, 32, 32))
scores = net(x)
loss = DiceLoss(softmax=True, to_onehot_y=True)(scores, labels)
loss.backward()
print(f"{loss.item():.4f} {scores.sum().item():.3f}")
prepared = Compose([ScaleIntensity(), Resize((24, 24))])(torch.rand(1, 20, 20))
print(tuple(prepared.shape), f"{prepared.sum().item():.3f}")
print(f"{sliding_window_inference(x, (16, 16), 2, net).sum().item():.3f}")
metric = DiceMetric(include_background=False)
metric(scores.argmax(1, keepdim=True), labels)
print(f"{metric.aggregate().item():.4f}")
