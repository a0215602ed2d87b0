"""Optimizers from packages: steps of nine of them on one layer."""

import prodigyopt
import schedulefree
import torch
import torch_optimizer
from lion_pytorch import Lion

KINDS = {
    "lion": lambda p: Lion(p, lr=0.01),
    "radam": torch_optimizer.RAdam,
    "lamb": torch_optimizer.Lamb,
    "adabound": torch_optimizer.AdaBound,
    "yogi": torch_optimizer.Yogi,
    "shampoo": torch_optimizer.Shampoo,
    "novograd": torch_optimizer.NovoGrad,
    "schedule free": lambda p: schedulefree.AdamWScheduleFree(p, lr=0.01),
    "prodigy": prodigyopt.Prodigy,
}
for name, make in KINDS.items():
    torch.manual_seed(0)
    layer = torch.nn.Linear(4, 3)
    optimizer = make(layer.parameters())
    if hasattr(optimizer, "train"):
        optimizer.train()
    for step in range(4):
        optimizer.zero_grad()
        layer(torch.ones(2, 4) * (step + 1)).pow(2).sum().backward()
        optimizer.step()
    print(name, layer.weight.data)
