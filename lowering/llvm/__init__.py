"""Loop level to LLVM IR."""
