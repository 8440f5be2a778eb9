"""Loss functions: regression, classification, detection.  Each is an op with an expansion into elementwise ops."""

from .classification import BceWithLogits, CrossEntropy
from .detection import Detection
from .regression import Mse, SmoothL1

__all__ = ["BceWithLogits", "CrossEntropy", "Detection", "Mse", "SmoothL1"]
