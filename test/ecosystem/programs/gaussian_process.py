"""gpytorch: hyperparameters of an exact Gaussian process, and its forecast."""

import gpytorch
import torch


class Model(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.mean = gpytorch.means.ConstantMean()
        self.kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))


torch.manual_seed(0)
x = torch.linspace(0, 1, 20, dtype=torch.float64)
y = torch.sin(6 * x) + 0.1 * torch.randn(20, dtype=torch.float64)
likelihood = gpytorch.likelihoods.GaussianLikelihood()
model = Model(x, y, likelihood).double()
model.train(), likelihood.train()
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
for step in range(8):
    optimizer.zero_grad()
    loss = -objective(model(x), y)
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.6g}")
model.eval(), likelihood.eval()
with torch.no_grad(), gpytorch.settings.fast_pred_var():
    found = likelihood(model(torch.linspace(0, 1, 5, dtype=torch.float64)))
print(found.mean, found.variance)
