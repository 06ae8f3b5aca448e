"""Known answers: closed forms for linear chains, and constants from independent quadrature."""

import numpy as np
from scipy.linalg import solve_discrete_lyapunov

# Masses of the 5 x 5 cells of the 25-mode landscape by distance class, from an independent quadrature.
MODES25 = {(0, 0): 0.0797, (0, 1): 0.0653, (1, 1): 0.0535, (0, 2): 0.0360, (1, 2): 0.0295, (2, 2): 0.0163}
MODES9 = {(0, 0): 0.307, (0, 1): 0.124, (1, 1): 0.0495}


def langevin_variance(step_size: float, precision: float, temperature: float, gradient_variance: float = 0.0) -> float:
    """Stationary variance of x <- x - e (l x + n) + sqrt(2 e t) xi, an AR(1) process."""
    keep = 1.0 - step_size * precision
    return (2.0 * step_size * temperature + step_size**2 * gradient_variance) / (1.0 - keep**2)


def hamiltonian_covariance(step_size: float, precision: float, temperature: float, friction: float) -> np.ndarray:
    """Stationary covariance of (x, v) for v <- (1-a) v - e l x + sqrt(2 e a t) xi, x <- x + v."""
    keep, pull = 1.0 - friction, step_size * precision
    step = np.array([[1.0 - pull, keep], [-pull, keep]])
    noise = 2.0 * step_size * friction * temperature * np.ones((2, 2))
    return solve_discrete_lyapunov(step, noise)
