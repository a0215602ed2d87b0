"""A recurrent network learns to continue a sentence, letter by letter."""

import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

TEXT = "the small brown mouse ran over the old brown house and under the mouse"


class Model(nn.Module):
    def __init__(self, letters):
        super().__init__()
        self.embedding = nn.Embedding(letters, 12, padding_idx=0)
        self.lstm = nn.LSTM(12, 24, num_layers=2, batch_first=True)
        self.norm = nn.LayerNorm(24)
        self.out = nn.Linear(24, letters)

    def forward(self, words, lengths):
        packed = pack_padded_sequence(
            self.embedding(words), lengths, batch_first=True, enforce_sorted=False
        )
        found, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        return self.out(self.norm(found))


torch.manual_seed(1)
letters = ["_", *sorted(set(TEXT))]
lines = [
    torch.tensor([letters.index(c) for c in TEXT[i : i + n]])
    for i, n in ((0, 20), (10, 14), (25, 30), (40, 25))
]
lengths = torch.tensor([len(line) - 1 for line in lines])
inputs = pad_sequence([line[:-1] for line in lines], batch_first=True)
targets = pad_sequence([line[1:] for line in lines], batch_first=True)
model = Model(len(letters))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
lossy = nn.CrossEntropyLoss(ignore_index=0)
for step in range(12):
    optimizer.zero_grad(set_to_none=True)
    scores = model(inputs, lengths)
    loss = lossy(scores.transpose(1, 2), targets)
    loss.backward()
    norm = clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    print(f"step {step} loss {loss.item():.5g} norm {norm.item():.4g}")
print("perplexity", f"{loss.exp().item():.4g}")
print(sorted(name for name, _ in model.named_parameters()))
