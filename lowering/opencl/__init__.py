"""Loop level to OpenCL C 1.2."""
