"""Runs PyTorch's own tests on this library and on PyTorch; README.md has the how."""
