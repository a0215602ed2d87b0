"""torchsde and torchcde: equations driven by noise and by data."""

import torch
import torchcde
import torchsde


class Noisy(torch.nn.Module):
    noise_type = "diagonal"
    sde_type = "ito"

    def __init__(self) -> None:
        super().__init__()
        self.drift = torch.nn.Linear(3, 3)

    def f(self, t, y):
        return self.drift(y)

    def g(self, t, y):
        return 0.1 * y.sigmoid()


class Driven(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 12)

    def forward(self, t, z):
        return self.layer(z).view(2, 4, 3)


torch.manual_seed(0)
times = torch.linspace(0, 1, 5)
noise = torchsde.BrownianInterval(0.0, 1.0, size=(2, 3), entropy=1)
path = torchsde.sdeint(
    Noisy(), torch.ones(2, 3), times, bm=noise, dt=0.1, method="euler"
)
print(path[-1].detach())
data = torch.randn(2, 6, 3)
pieces = torchcde.hermite_cubic_coefficients_with_backward_differences(data)
spline = torchcde.CubicSpline(pieces)
driven = Driven()
end = torchcde.cdeint(
    X=spline, func=driven, z0=torch.ones(2, 4), t=spline.interval, method="rk4"
)
end[:, -1].sum().backward()
print(end[:, -1].detach(), driven.layer.weight.grad.abs().sum())
