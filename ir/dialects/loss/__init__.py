"""Loss functions: regression, classification, detection."""
