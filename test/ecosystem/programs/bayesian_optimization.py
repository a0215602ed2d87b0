"""Bayesian optimization by botorch: one goal, two goals, fantasies, several tasks."""

import warnings

import torch
from botorch.acquisition import (
    LogExpectedImprovement,
    qExpectedImprovement,
    qKnowledgeGradient,
    qLogExpectedImprovement,
    qMaxValueEntropy,
    qNoisyExpectedImprovement,
)
from botorch.acquisition.multi_objective import qExpectedHypervolumeImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import KroneckerMultiTaskGP, ModelListGP, SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from botorch.optim import optimize_acqf
from botorch.sampling import SobolQMCNormalSampler
from botorch.test_functions import Branin, BraninCurrin
from botorch.utils.multi_objective import Hypervolume, is_non_dominated
from botorch.utils.multi_objective.box_decompositions.non_dominated import (
    FastNondominatedPartitioning,
)
from botorch.utils.sampling import draw_sobol_samples
from gpytorch.mlls import ExactMarginalLogLikelihood, SumMarginalLogLikelihood

warnings.filterwarnings("ignore")
torch.set_default_dtype(torch.float64)
torch.manual_seed(0)


def show(name, *values):
    numbers = [x for v in values for x in torch.as_tensor(v).detach().flatten()[:4]]
    print(name, *(f"{float(x):.4f}" for x in numbers))


def fitted(x, y):
    model = SingleTaskGP(
        x, y, input_transform=Normalize(2), outcome_transform=Standardize(1)
    )
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    return model


goal = Branin(negate=True)
x = draw_sobol_samples(goal.bounds, 10, 1, seed=1).squeeze(1)
y = goal(x).unsqueeze(-1)
for step in range(3):
    improvement = LogExpectedImprovement(fitted(x, y), y.max())
    options = {"seed": step}
    candidate, value = optimize_acqf(
        improvement, goal.bounds, 1, num_restarts=3, raw_samples=32, options=options
    )
    show(f"step {step}", candidate, value)
    x, y = torch.cat([x, candidate]), torch.cat([y, goal(candidate).unsqueeze(-1)])

model = fitted(x, y)
sampler = SobolQMCNormalSampler(torch.Size([32]), seed=3)
pair = (x[:2] + 0.05).unsqueeze(0)
for kind in (qExpectedImprovement, qLogExpectedImprovement):
    at = pair.clone().requires_grad_()
    value = kind(model, y.median(), sampler=sampler)(at).sum()
    value.backward()
    show(kind.__name__, value, at.grad)
noisy = qNoisyExpectedImprovement(model, x, sampler=sampler, prune_baseline=True)
show("noisy", noisy(pair))
gradient = qKnowledgeGradient(
    model, 4, sampler=SobolQMCNormalSampler(torch.Size([4]), seed=1)
)
_, value = optimize_acqf(
    gradient,
    goal.bounds,
    1,
    num_restarts=2,
    raw_samples=8,
    options={"seed": 1, "maxiter": 5},
)
show("knowledge", value)
grid = draw_sobol_samples(goal.bounds, 50, 1, seed=5).squeeze(1)
show("entropy", qMaxValueEntropy(model, grid)(pair[:, :1]))

goals = BraninCurrin(negate=True)
x = draw_sobol_samples(goals.bounds, 8, 1, seed=2).squeeze(1)
y = goals(x)
models = ModelListGP(
    *(
        SingleTaskGP(x, y[:, i : i + 1], outcome_transform=Standardize(1))
        for i in range(2)
    )
)
fit_gpytorch_mll(SumMarginalLogLikelihood(models.likelihood, models))
reference = y.amin(0) - 1
show("hypervolume", Hypervolume(reference).compute(y[is_non_dominated(y)]))
growth = qExpectedHypervolumeImprovement(
    models,
    reference.tolist(),
    FastNondominatedPartitioning(reference, y),
    sampler=sampler,
)
show("growth", growth((x[:2] + 0.02).clamp(0, 1).unsqueeze(0)))
tasks = KroneckerMultiTaskGP(x, y)
fit_gpytorch_mll(
    ExactMarginalLogLikelihood(tasks.likelihood, tasks),
    optimizer_kwargs={"options": {"maxiter": 10}},
)
show("tasks", tasks.posterior(x[:2]).mean)
