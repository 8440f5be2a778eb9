"""What each operation is: one module, or one package by family, for each dialect."""
