"""Automatic differentiation as a transform of functions, and the derivative rules of the dialects' ops."""
