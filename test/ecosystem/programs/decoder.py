"""x-transformers: a decoder trains, generates and keeps its memory of keys."""

import torch
from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper

torch.manual_seed(0)
model = TransformerWrapper(
    num_tokens=12,
    max_seq_len=16,
    attn_layers=Decoder(dim=24, depth=2, heads=2, rotary_pos_emb=True),
)
model = AutoregressiveWrapper(model)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(6):
    ids = (torch.randint(12, (4, 1)) + torch.arange(12)) % 12
    loss = model(ids)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.5g}")
print(model.generate(torch.tensor([[1, 2, 3]]), 6, temperature=0.0))
print(sum(p.numel() for p in model.parameters()))
