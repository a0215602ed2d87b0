"""Quantization and sparsity of models: not in this build, and it says so."""
