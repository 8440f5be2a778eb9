"""What passes on kernels share: the structure of launches, how they are built and simplified."""
