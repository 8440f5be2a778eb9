"""Running compiled code: buffers, devices, executables, cache, threads."""
