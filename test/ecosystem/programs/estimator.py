"""skorch: a network as an estimator of scikit-learn, and a search."""

import numpy as np
import torch
from sklearn.model_selection import GridSearchCV
from skorch import NeuralNetClassifier

torch.manual_seed(0)
x = np.random.RandomState(0).randn(60, 5).astype("float32")
y = (x.sum(1) > 0).astype("int64")


def layers() -> torch.nn.Module:
    torch.manual_seed(1)
    return torch.nn.Sequential(
        torch.nn.Linear(5, 8),
        torch.nn.ReLU(),
        torch.nn.Linear(8, 2),
        torch.nn.Softmax(-1),
    )


net = NeuralNetClassifier(layers, max_epochs=3, lr=0.1, verbose=0)
net.fit(x, y)
for row in net.history:
    print(f"{row['train_loss']:.4f} {row['valid_loss']:.4f} {row['valid_acc']:.3f}")
search = GridSearchCV(net, {"lr": [0.01, 0.1]}, cv=2, scoring="accuracy")
search.fit(x, y)
print(search.best_params_, f"{search.best_score_:.3f}")
