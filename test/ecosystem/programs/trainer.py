"""lightning: a module trained and validated by its Trainer."""

import lightning
import torch
from torch.utils.data import DataLoader, TensorDataset


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(4, 2)
        self.losses = []

    def training_step(self, batch, index):
        loss = torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1])
        self.losses.append(loss.item())
        return loss

    def validation_step(self, batch, index):
        right = (self.net(batch[0]).argmax(1) == batch[1]).float().mean()
        self.log("right", right)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.1)


lightning.seed_everything(0, verbose=False)
x = torch.randn(32, 4)
data = TensorDataset(x, (x[:, 0] > 0).long())
module = Module()
trainer = lightning.Trainer(
    max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False,
    enable_progress_bar=False, enable_model_summary=False,
)  # fmt: skip
trainer.fit(module, DataLoader(data, batch_size=8), DataLoader(data, batch_size=16))
print([round(v, 5) for v in module.losses])
print(f"right {trainer.callback_metrics['right'].item():.4g}", trainer.global_step)
