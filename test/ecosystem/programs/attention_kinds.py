"""Kinds of attention from packages: local, rotary, of low rank; quantized values."""

import torch
from ema_pytorch import EMA
from linformer import Linformer
from local_attention import LocalAttention
from rotary_embedding_torch import RotaryEmbedding
from vector_quantize_pytorch import FSQ, VectorQuantize

torch.manual_seed(0)
q = torch.randn(1, 2, 64, 16)
local = LocalAttention(dim=16, window_size=16, causal=True)
print(local(q, q, q)[0, 0, -1])
print(RotaryEmbedding(16).rotate_queries_or_keys(q)[0, 1, -1])
x = torch.randn(1, 32, 16)
low_rank = Linformer(dim=16, seq_len=32, depth=1, heads=2, k=8)
print(low_rank(x)[0, 0].detach())
quantized, indices, loss = VectorQuantize(dim=16, codebook_size=8)(x)
print(indices[0, :8].tolist(), f"{loss.item():.4f}", f"{quantized.sum().item():.4f}")
print(FSQ([8, 5, 5])(torch.randn(1, 6, 3))[1].tolist())
average = EMA(torch.nn.Linear(2, 2), beta=0.9, update_every=1)
average.update()
print(average(torch.ones(1, 2)).detach())
