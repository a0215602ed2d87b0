"""File formats: PyTorch's checkpoints and safetensors. Nothing is imported here."""
