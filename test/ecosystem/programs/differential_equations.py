"""torchdiffeq: a spiral is fitted by a neural differential equation."""

import torch
from torchdiffeq import odeint, odeint_adjoint


class Field(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(
            torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2)
        )

    def forward(self, t, y):
        return self.net(y**3)


torch.manual_seed(0)
times = torch.linspace(0, 2, 10)
matrix = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])
start = torch.tensor([[2.0, 0.0]])
with torch.no_grad():
    real = odeint(lambda t, y: y**3 @ matrix, start, times)
print(real.squeeze(1))
field = Field()
optimizer = torch.optim.RMSprop(field.parameters(), lr=1e-3)
for solve in (odeint, odeint_adjoint, odeint_adjoint):
    found = solve(field, start, times, method="dopri5", rtol=1e-4, atol=1e-5)
    loss = (found - real).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"loss {loss.item():.5g}")
for method in ("euler", "rk4", "midpoint"):
    print(method, odeint(field, start, times, method=method)[-1].tolist())
