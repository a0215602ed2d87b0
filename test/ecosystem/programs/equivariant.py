"""e3nn: layers that turn with what they are given."""

import torch
from e3nn import o3

torch.manual_seed(0)
kinds = o3.Irreps("2x0e+1x1o")
x = kinds.randn(3, -1)
layer = o3.Linear(kinds, kinds)
product = o3.FullyConnectedTensorProduct(kinds, kinds, kinds)
print(layer(x).detach())
print(product(x, x).detach())
turn = o3.rand_matrix()
turned = kinds.D_from_matrix(turn)
apart = product(x @ turned.T, x @ turned.T) - product(x, x) @ turned.T
print(f"{apart.abs().max():.2f}")
print(o3.spherical_harmonics(2, torch.randn(2, 3), True))
