"""Command-line tools: thin faces on the other rooms."""
