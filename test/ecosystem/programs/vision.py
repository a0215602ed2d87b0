"""A small convolutional network learns which quarter of a picture is bright."""

import io

import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1, groups=2),
            nn.GroupNorm(4, 16),
            nn.GELU(),
            nn.AdaptiveAvgPool2d(2),
        )
        self.head = nn.Linear(64, 4)

    def forward(self, pictures):
        return self.head(self.features(pictures).flatten(1))


def pictures(count):
    labels = torch.randint(0, 4, (count,))
    found = 0.3 * torch.randn(count, 1, 12, 12)
    for picture, label in zip(found, labels.tolist(), strict=True):
        row, column = 6 * (label // 2), 6 * (label % 2)
        picture[0, row : row + 6, column : column + 6] += 0.5
    return found, labels


torch.manual_seed(0)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=12)
for step in range(12):
    images, labels = pictures(32)
    loss = F.cross_entropy(net(images), labels, label_smoothing=0.1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    print(f"step {step} loss {loss.item():.6g} lr {schedule.get_last_lr()[0]:.6g}")

file = io.BytesIO()
torch.save(net.state_dict(), file)
file.seek(0)
again = Net()
print(again.load_state_dict(torch.load(file)))
net.eval(), again.eval()
images, labels = pictures(64)
with torch.no_grad():
    print("same", torch.equal(net(images), again(images)))
    print("right", (again(images).argmax(1) == labels).sum().item())
print(net)
