"""Functions on tensors, in modules that mirror the dialects."""
