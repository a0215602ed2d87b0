"""tensordict: containers of tensors through operators, vmap, modules and files."""

import tempfile

import torch
from tensordict import LazyStackedTensorDict, TensorDict, cat, stack, tensorclass
from tensordict.nn import (
    NormalParamExtractor,
    ProbabilisticTensorDictModule,
    ProbabilisticTensorDictSequential,
    TensorDictModule,
    TensorDictSequential,
)
from torch.distributions import Normal

torch.manual_seed(0)
td = TensorDict(
    {"a": torch.arange(6).reshape(3, 2), "b": {"c": torch.randn(3, 4)}}, [3]
)
print(td, td[0], td[:2]["b", "c"].shape)
print(td.reshape(1, 3).batch_size, td.unsqueeze(-1).batch_size, td.expand(2, 3).shape)
print(stack([td, td.clone()], 0).batch_size, cat([td, td], 0).batch_size)
print((td + 1)["a"], (td * 2.0)["b", "c"].sum(), td.apply(lambda x: x + 1)["a"])
print(td.to(torch.float64)["a"].dtype, td.flatten_keys(".").unflatten_keys("."))
print(LazyStackedTensorDict.lazy_stack([td, td.clone()], 0))
print(td.split(2)[1].batch_size, td.gather(0, torch.tensor([2, 0]))["a"])
print(td.masked_select(torch.tensor([True, False, True]))["a"], td.numel())

print(torch.vmap(lambda t: TensorDict({"s": t["b", "c"].sum(-1)}, []))(td)["s"])
print(torch.vmap(lambda t, x: t["b", "c"] * x, (0, None))(td, torch.ones(4)).shape)
linear = torch.nn.Linear(4, 2, device="meta")
many = TensorDict.from_modules(
    *[torch.nn.Linear(4, 2) for _ in range(3)], as_module=True
)


def call(x, weights):
    """One layer of the three."""
    with weights.to_module(linear):
        return linear(x)


print(torch.vmap(call, (None, 0))(torch.ones(5, 4), many).shape)
print(len(list(many.parameters())), torch.optim.SGD(many.parameters(), 0.1))

net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
weights = TensorDict.from_module(net)
with weights.data.apply(lambda x: x * 0).to_module(net):
    print(net(torch.ones(4)))
print(net(torch.ones(4)))
chain = TensorDictSequential(
    TensorDictModule(net, ["x"], ["h"]),
    TensorDictModule(torch.nn.Linear(2, 1), ["h"], ["y"]),
)
data = TensorDict({"x": torch.randn(5, 4)}, [5])
chain(data)["y"].sum().backward()
print(data, net[0].weight.grad.norm())
actor = ProbabilisticTensorDictSequential(
    TensorDictModule(
        torch.nn.Sequential(torch.nn.Linear(4, 2), NormalParamExtractor()),
        ["x"],
        ["loc", "scale"],
    ),
    ProbabilisticTensorDictModule(
        ["loc", "scale"], ["act"], distribution_class=Normal, return_log_prob=True
    ),
)
print(actor(data))


@tensorclass
class Point:
    """Two tensors and a word."""

    x: torch.Tensor
    y: torch.Tensor
    word: str = "n"


points = Point(torch.ones(3, 2), torch.zeros(3), batch_size=[3])
print(points, points[0].x)
with tempfile.TemporaryDirectory() as folder:
    print(td.memmap(folder)["b", "c"].sum(), TensorDict.load_memmap(folder)["a"])
    torch.save(td, f"{folder}/td.pt")
    print(torch.load(f"{folder}/td.pt", weights_only=False))
squares = torch.func.grad(lambda q: (q["w"] ** 2).sum())
print(squares(TensorDict({"w": torch.arange(3.0)}, []))["w"])
