"""The front-end: tensors, tracing, transforms, functions and optimizers."""
