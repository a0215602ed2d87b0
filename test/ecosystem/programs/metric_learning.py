"""pytorch-metric-learning: losses and miners over embeddings."""

import torch
from pytorch_metric_learning import losses, miners

torch.manual_seed(0)
embeddings = torch.randn(12, 8, requires_grad=True)
labels = torch.arange(12) % 4
for loss in (
    losses.TripletMarginLoss(),
    losses.ContrastiveLoss(),
    losses.NTXentLoss(),
    losses.ArcFaceLoss(4, 8),
    losses.ProxyAnchorLoss(4, 8),
    losses.MultiSimilarityLoss(),
    losses.SupConLoss(),
    losses.CircleLoss(),
):
    value = loss(embeddings, labels)
    value.backward()
    print(type(loss).__name__, f"{value.item():.4f}")
miner = miners.TripletMarginMiner(0.2, type_of_triplets="semihard")
print([len(each) for each in miner(embeddings, labels)])
print(f"{embeddings.grad.abs().sum().item():.3f}")
