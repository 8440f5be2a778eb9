"""Transforms from IR to IR: pass manager, pipelines, and a module for each pass."""
