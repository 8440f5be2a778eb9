"""Elementwise operations on tensors, with NumPy broadcasting implicit in the op."""
