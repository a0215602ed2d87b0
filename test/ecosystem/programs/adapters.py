"""peft: low-rank adapters around the linear layers of a plain module."""

import torch
from peft import LoraConfig, get_peft_model

torch.manual_seed(0)
plain = torch.nn.Sequential(
    torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2)
)
model = get_peft_model(plain, LoraConfig(r=2, target_modules=["0", "2"]))
model.print_trainable_parameters()
optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
x, y = torch.randn(16, 6), torch.randint(2, (16,))
for step in range(4):
    loss = torch.nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.5g}")
merged = model.merge_and_unload()
print(merged, torch.isfinite(merged(x)).all().item())
