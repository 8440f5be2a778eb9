"""Builders above the dialects: scalar code, tensor-level ops, one point of a kernel, symbolic sizes, masks."""
