"""Contractions, reductions, scans, sorting, indexing, convolution and pooling on tensors."""
