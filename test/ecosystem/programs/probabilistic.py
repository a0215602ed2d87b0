"""pyro: stochastic variational inference of a coin, and a sampled chain."""

import pyro
import pyro.distributions as dist
import torch
from pyro.infer import MCMC, NUTS, SVI, Trace_ELBO
from pyro.infer.autoguide import AutoNormal
from pyro.optim import Adam

pyro.set_rng_seed(0)
seen = torch.tensor([1.0] * 7 + [0.0] * 3)


def model(seen):
    bias = pyro.sample("bias", dist.Beta(5.0, 5.0))
    with pyro.plate("throws", len(seen)):
        pyro.sample("throw", dist.Bernoulli(bias), obs=seen)


guide = AutoNormal(model)
svi = SVI(model, guide, Adam({"lr": 0.05}), Trace_ELBO())
for step in range(12):
    loss = svi.step(seen)
    if step % 3 == 0:
        print(f"step {step} loss {loss:.5g}")
print(sorted(pyro.get_param_store().keys()))
print(f"median {guide.median(seen)['bias'].item():.4g}")
chain = MCMC(NUTS(model), num_samples=10, warmup_steps=10, disable_progbar=True)
chain.run(seen)
inside = ((0 < chain.get_samples()["bias"]) & (chain.get_samples()["bias"] < 1)).all()
print("samples", chain.get_samples()["bias"].shape, inside.item())
