"""transformers: a small GPT-2 with random weights trains and generates."""

import tempfile

import torch
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
config = GPT2Config(
    vocab_size=20, n_positions=16, n_embd=24, n_layer=2, n_head=2,
    bos_token_id=0, eos_token_id=None, pad_token_id=0,
    resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
)  # fmt: skip
model = GPT2LMHeadModel(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
ids = torch.randint(1, 20, (2, 12))
for step in range(4):
    found = model(input_ids=ids, labels=ids)
    optimizer.zero_grad()
    found.loss.backward()
    optimizer.step()
    print(f"step {step} loss {found.loss.item():.5g}")
model.eval()
print(model.generate(ids[:, :4], max_new_tokens=5, do_sample=False))
with tempfile.TemporaryDirectory() as folder:
    model.save_pretrained(folder)
    again = GPT2LMHeadModel.from_pretrained(folder).eval()
with torch.no_grad():
    print(torch.equal(again(ids).logits, model(ids).logits))
