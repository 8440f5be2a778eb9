"""Facts about IR that passes share and never change."""
