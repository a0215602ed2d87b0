"""Measures of images and maps onto sets: pytorch-msssim, geotorch, entmax."""

import entmax
import geotorch
import pytorch_msssim
import torch
import torchinfo

torch.manual_seed(0)
x, y = torch.rand(2, 3, 64, 64), torch.rand(2, 3, 64, 64)
print(f"{pytorch_msssim.ssim(x, y, data_range=1.0).item():.4f}")
print(f"{pytorch_msssim.ssim(x, x * 0.9, data_range=1.0).item():.4f}")
large = torch.rand(1, 3, 180, 180)
print(f"{pytorch_msssim.ms_ssim(large, large.sqrt(), data_range=1.0).item():.4f}")
scores = torch.randn(3, 5)
print(entmax.entmax15(scores), entmax.sparsemax(scores))
layer = torch.nn.Linear(4, 4)
geotorch.orthogonal(layer, "weight")
print(f"{(layer.weight @ layer.weight.T - torch.eye(4)).abs().max().item():.2f}")
net = torch.nn.Sequential(
    torch.nn.Conv2d(3, 4, 3),
    torch.nn.ReLU(),
    torch.nn.Flatten(),
    torch.nn.Linear(144, 2),
)
told = torchinfo.summary(net, (1, 3, 8, 8), verbose=0)
print(told.total_params, told.total_mult_adds)
