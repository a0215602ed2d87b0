"""torch-geometric: a graph convolution and attention over a batch of graphs."""

import torch
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GATConv, GCNConv, global_mean_pool
from torch_geometric.utils import add_self_loops, degree, to_dense_adj

torch.manual_seed(0)


def ring(count):
    ids = torch.arange(count)
    edges = torch.stack([ids, (ids + 1) % count])
    edges = torch.cat([edges, edges.flip(0)], 1)
    return Data(x=torch.randn(count, 4), edge_index=edges, y=torch.tensor([count % 2]))


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = GCNConv(4, 8), GATConv(8, 4, heads=2)
        self.out = torch.nn.Linear(8, 2)

    def forward(self, data):
        x = self.first(data.x, data.edge_index).relu()
        x = self.second(x, data.edge_index)
        return self.out(global_mean_pool(x, data.batch))


graphs = [ring(n) for n in range(3, 11)]
print(graphs[0], degree(graphs[0].edge_index[0]).tolist())
print(to_dense_adj(add_self_loops(graphs[0].edge_index)[0]).shape)
net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
for epoch in range(3):
    for batch in DataLoader(graphs, batch_size=4):
        loss = torch.nn.functional.cross_entropy(net(batch), batch.y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.5g}")
print(net)
