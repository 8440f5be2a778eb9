"""Which schedule a kernel gets, by family of kernel and target."""
