"""Recomputation of activations, by wrapping modules."""
