"""Real data that ship with scikit-learn, for the quick versions of experiments."""

import numpy as np


def digits() -> tuple[np.ndarray, np.ndarray]:
    """1,797 handwritten digits of 8 x 8 pixels in [0, 1], (N, 64), and their labels."""
    from sklearn.datasets import load_digits

    inputs, labels = load_digits(return_X_y=True)
    return np.asarray(inputs, np.float32) / 16, np.asarray(labels, np.int32)


def diabetes() -> tuple[np.ndarray, np.ndarray]:
    """442 patients with 10 features, and the progression of their disease."""
    from sklearn.datasets import load_diabetes

    inputs, targets = load_diabetes(return_X_y=True)
    return np.asarray(inputs), np.asarray(targets)
