"""diffusers: a small U-Net, an autoencoder, a transformer, and four samplers."""

import torch
from diffusers import (
    AutoencoderKL,
    DDIMScheduler,
    DDPMScheduler,
    DPMSolverMultistepScheduler,
    EulerDiscreteScheduler,
    UNet2DConditionModel,
    UNet2DModel,
)

torch.manual_seed(0)
net = UNet2DModel(
    sample_size=16,
    layers_per_block=1,
    block_out_channels=(32, 32),
    down_block_types=("DownBlock2D", "AttnDownBlock2D"),
    up_block_types=("AttnUpBlock2D", "UpBlock2D"),
)
noise = net(torch.randn(2, 3, 16, 16), torch.tensor([3, 7])).sample
noise.pow(2).mean().backward()
print([f"{v:.4f}" for v in noise.flatten()[:4].tolist()])
print(f"{sum(p.grad.abs().sum().item() for p in net.parameters()):.3f}")
conditional = UNet2DConditionModel(
    sample_size=16,
    layers_per_block=1,
    block_out_channels=(32, 64),
    cross_attention_dim=32,
    down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
    up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
    attention_head_dim=8,
)
words = torch.randn(1, 6, 32)
found = conditional(torch.randn(1, 4, 16, 16), 5, encoder_hidden_states=words).sample
print([f"{v:.4f}" for v in found.flatten()[:4].tolist()])
coder = AutoencoderKL(block_out_channels=(32,), norm_num_groups=8)
latent = coder.encode(torch.randn(1, 3, 16, 16)).latent_dist
print(f"{latent.kl().item():.3f}", f"{coder.decode(latent.mode()).sample.sum():.3f}")
for kind in (
    DDPMScheduler,
    DDIMScheduler,
    DPMSolverMultistepScheduler,
    EulerDiscreteScheduler,
):
    sampler = kind(num_train_timesteps=100)
    sampler.set_timesteps(5)
    torch.manual_seed(1)
    x = torch.randn(1, 3, 8, 8) * sampler.init_noise_sigma
    for step in sampler.timesteps:
        error = sampler.scale_model_input(x, step).sin()
        x = sampler.step(error, step, x).prev_sample
    print(kind.__name__, [f"{v:.4f}" for v in x.flatten()[:3].tolist()])
