"""Optimizers, with PyTorch's meaning."""
