"""Forecasts of a noisy wave by a convolution over time and a GRU."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(1, 6, 3, padding="same", padding_mode="replicate")
        self.gru = nn.GRU(6, 12, batch_first=True, bidirectional=True)
        self.out = nn.Linear(24, 3)

    def forward(self, past):
        found = torch.relu(self.conv(past.unsqueeze(1))).transpose(1, 2)
        return self.out(self.gru(found)[0][:, -1])


torch.manual_seed(5)
time = torch.linspace(0, 20, 160)
wave = torch.sin(time) + 0.5 * torch.cos(3 * time) + 0.05 * torch.randn(160)
windows = wave.unfold(0, 19, 1)
print("power", [round(v, 2) for v in torch.fft.rfft(wave).abs()[:6].tolist()])
data = TensorDataset(windows[:, :16], windows[:, 16:])
train, test = random_split(data, [0.8, 0.2])
model = Forecaster()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(4):
    total = 0.0
    for past, future in DataLoader(train, batch_size=16, shuffle=True):
        loss = nn.functional.huber_loss(model(past), future)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(past)
    print(f"epoch {epoch} loss {total / len(train):.5g}")
past, future = next(iter(DataLoader(test, batch_size=len(test))))
with torch.no_grad():
    error = (model(past) - future).abs().mean(0)
print(len(train), len(test), "errors", [round(v, 4) for v in error.tolist()])
