"""A small transformer learns to count modulo ten, and generates by sampling."""

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width)
        self.wide = nn.Sequential(
            nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, width)
        )

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.qkv(self.before(x)).view(batch, length, 3, self.heads, -1)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.wide(self.between(x))


class Model(nn.Module):
    def __init__(self, words=10, width=32, length=16):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.places = nn.Parameter(0.02 * torch.randn(length, width))
        self.blocks = nn.ModuleList(Block(width, 4) for _ in range(2))

    def forward(self, ids):
        x = self.words(ids) + self.places[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        return x @ self.words.weight.T

    @torch.inference_mode()
    def generate(self, ids, count, temperature=1.0, top=3):
        for _ in range(count):
            scores = self(ids[:, -16:])[:, -1] / temperature
            least = scores.topk(top).values[:, -1:]
            scores = scores.masked_fill(scores < least, -torch.inf)
            drawn = torch.multinomial(scores.softmax(-1), 1)
            ids = torch.cat([ids, drawn], dim=1)
        return ids


torch.manual_seed(2)
model = Model()
print("parameters", sum(p.numel() for p in model.parameters()))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, betas=(0.9, 0.95))
for step in range(40):
    start = torch.randint(10, (16, 1))
    ids = (start + torch.arange(16)) % 10
    loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 5 == 0:
        print(f"step {step} loss {loss.item():.4g}")
print(model.generate(torch.tensor([[3], [8]]), 12, temperature=0.5))
