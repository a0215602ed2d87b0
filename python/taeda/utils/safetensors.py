"""Tensors in safetensors files: save_file, load_file, safe_open, save, load."""

from __future__ import annotations

from taeda._io.safetensors import load, load_file, safe_open, save, save_file

__all__ = ["load", "load_file", "safe_open", "save", "save_file"]
