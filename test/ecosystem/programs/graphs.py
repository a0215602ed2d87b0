"""A graph network tells the two halves of a small social graph apart."""

import torch
import torch.nn.functional as F
from torch import nn


class GraphLayer(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.own, self.other = nn.Linear(inner, outer), nn.Linear(inner, outer)

    def forward(self, x, edges):
        source, target = edges
        sums = torch.zeros_like(x).index_add(0, target, x[source])
        degree = torch.bincount(target, minlength=len(x)).clamp(min=1)
        return self.own(x) + self.other(sums / degree.unsqueeze(1))


torch.manual_seed(4)
nodes = 24
labels = (torch.arange(nodes) >= nodes // 2).long()
near = labels[:, None] == labels[None, :]
linked = torch.rand(nodes, nodes) < torch.where(near, 0.4, 0.05)
linked = (linked | linked.T).fill_diagonal_(False)
edges = linked.nonzero().T
print("edges", edges.shape[1])
x = torch.randn(nodes, 5) + 0.3 * labels[:, None]
layers = nn.ModuleList([GraphLayer(5, 5), GraphLayer(5, 2)])
optimizer = torch.optim.Adam(layers.parameters(), lr=0.03, weight_decay=1e-3)
known = torch.tensor([0, 3, 5, 14, 20, 22])
for step in range(20):
    hidden = F.dropout(F.elu(layers[0](x, edges)), 0.1)
    scores = layers[1](hidden, edges).log_softmax(1)
    loss = F.nll_loss(scores[known], labels[known])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 4 == 0:
        print(f"step {step} loss {loss.item():.5g}")
degree = torch.zeros(nodes).scatter_reduce(
    0, edges[1], torch.ones(edges.shape[1]), "sum"
)
print("degrees", degree.int().tolist())
laplace = torch.diag(degree) - linked.float()
print(
    "spectrum",
    [round(v, 3) + 0.0 for v in torch.linalg.eigvalsh(laplace)[1:6].tolist()],
)
