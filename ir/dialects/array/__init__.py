"""Creation, shape, slicing and joining of tensors."""
