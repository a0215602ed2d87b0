"""einops: rearrangement in functions and layers, with gradients."""

import torch
from einops import pack, rearrange, reduce, repeat
from einops.layers.torch import EinMix, Rearrange, Reduce

torch.manual_seed(0)
net = torch.nn.Sequential(
    Rearrange("b c (h p) (w q) -> b (h w) (c p q)", p=2, q=2),
    EinMix("b t i -> b t o", weight_shape="i o", bias_shape="o", i=12, o=8),
    Reduce("b t o -> b o", "mean"),
)
x = torch.randn(2, 3, 8, 8, requires_grad=True)
loss = net(x).square().sum()
loss.backward()
print(f"loss {loss.item():.5g} gradient {x.grad.abs().sum().item():.5g}")
print(reduce(x.detach(), "b c h w -> b c", "max"))
print(repeat(torch.arange(3), "a -> a b", b=2).tolist())
packed, shapes = pack([torch.zeros(2, 3), torch.zeros(2, 4, 5)], "b *")
print(packed.shape, shapes, rearrange(packed, "(a b) c -> a b c", a=2).shape)
