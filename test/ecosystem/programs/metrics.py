"""torchmetrics: figures gathered over batches, and a collection of them."""

import torch
import torchmetrics
from torchmetrics.classification import MulticlassAUROC, MulticlassConfusionMatrix

torch.manual_seed(0)
figures = torchmetrics.MetricCollection(
    {
        "accuracy": torchmetrics.Accuracy(task="multiclass", num_classes=3),
        "f1": torchmetrics.F1Score(task="multiclass", num_classes=3, average="macro"),
        "auroc": MulticlassAUROC(num_classes=3),
        "confusion": MulticlassConfusionMatrix(num_classes=3),
    }
)
errors = torchmetrics.MeanSquaredError()
for _ in range(4):
    scores, labels = torch.randn(16, 3).softmax(1), torch.randint(3, (16,))
    figures.update(scores, labels)
    errors(scores[:, 0], labels.float())
for name, figure in sorted(figures.compute().items()):
    print(name, figure.tolist())
print("errors", f"{errors.compute().item():.5g}", sorted(errors.state_dict()))
similar = torchmetrics.functional.pairwise_cosine_similarity(torch.randn(3, 5))
print(similar)
