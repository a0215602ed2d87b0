"""neuraloperator: a Fourier neural operator learns to smooth a field."""

import torch
from neuralop.models import FNO

torch.manual_seed(0)
net = FNO(n_modes=(4, 4), hidden_channels=8, in_channels=1, out_channels=1, n_layers=2)
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
field = torch.randn(4, 1, 16, 16)
smooth = torch.nn.functional.avg_pool2d(field, 3, 1, 1)
for _ in range(4):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(net(field), smooth)
    loss.backward()
    optimizer.step()
    print(f"{loss.item():.5f}")
print(tuple(net(torch.randn(1, 1, 24, 24)).shape))
