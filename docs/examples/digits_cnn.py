"""Trains a convolutional network on scikit-learn's bundled digits (8 x 8 images).

python docs/examples/digits_cnn.py       # 98 % of the test images in a minute
"""

from __future__ import annotations

import argparse
import time

import taeda as T
from sklearn.datasets import load_digits
from tqdm import tqdm

nn, F = T.nn, T.nn.functional


class DigitsCNN(nn.Module):
    """[batch, 1, 8, 8] images to [batch, 10] logits."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            *self.stage(1, 32),
            *self.stage(32, 32),
            nn.MaxPool2d(2),
            *self.stage(32, 64),
            nn.MaxPool2d(2),
            nn.Flatten(),
        )
        self.classifier = nn.Sequential(nn.Dropout(0.3), nn.Linear(256, 10))

    @staticmethod
    def stage(channels: int, width: int) -> list:
        conv = nn.Conv2d(channels, width, 3, padding=1, bias=False)
        return [conv, nn.BatchNorm2d(width), nn.ReLU()]

    def forward(self, x):
        return self.classifier(self.features(x))


def load(test_share: float = 0.2) -> tuple:
    """Training and test sets: images scaled to [0, 1], shuffled with a fixed seed."""
    digits = load_digits()
    images = T.from_numpy(digits.images).float().unsqueeze(1) / 16
    labels = T.from_numpy(digits.target).long()
    order = T.randperm(len(labels), generator=T.Generator().manual_seed(0))
    cut = int(len(labels) * (1 - test_share))
    return tuple(
        T.utils.data.TensorDataset(images[part], labels[part])
        for part in (order[:cut], order[cut:])
    )


def shifted(images):
    """The images moved by up to one pixel each way, the same for a whole batch."""
    dy, dx = T.randint(-1, 2, (2,)).tolist()
    padded = F.pad(images, (1, 1, 1, 1))
    return padded[:, :, 1 + dy : 9 + dy, 1 + dx : 9 + dx]


def accuracy(model, dataset) -> float:
    """Share of the dataset that the model labels right."""
    model.eval()
    images, labels = dataset.tensors
    with T.no_grad():
        right = (model(images).argmax(dim=1) == labels).sum().item()
    model.train()
    return right / len(labels)


def main(arguments: list[str] | None = None) -> float:
    """Trains; returns the test accuracy."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    T.manual_seed(options.seed)
    train_set, test_set = load()
    loader = T.utils.data.DataLoader(train_set, batch_size=64, shuffle=True)
    model = DigitsCNN()
    optimizer = T.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
    schedule = T.optim.lr_scheduler.CosineAnnealingLR(
        optimizer, options.epochs * len(loader)
    )
    begin = time.perf_counter()
    bar = tqdm(range(options.epochs), unit="epoch")
    for _ in bar:
        for images, labels in loader:
            loss = F.cross_entropy(model(shifted(images)), labels, label_smoothing=0.1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        bar.set_postfix(loss=f"{loss.item():.3f}")
    found = accuracy(model, test_set)
    print(f"test accuracy {found:.2%} after {time.perf_counter() - begin:.1f} s")
    return found


if __name__ == "__main__":
    main()
