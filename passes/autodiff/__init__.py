"""Differentiation: the transform, and derivative rules in modules that mirror the dialects."""
