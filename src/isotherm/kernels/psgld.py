"""Langevin dynamics with the preconditioner of RMSprop."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from isotherm.estimators.estimator import Curvature
from isotherm.foundation import checks
from isotherm.foundation.checks import Check, RunView
from isotherm.foundation.errors import check_integer, check_real
from isotherm.foundation.parts import Static
from isotherm.kernels.kernel import Kernel, Move, StepErrors


class PSGLDState(NamedTuple):
    """A position and V, the running mean of squared gradients."""

    position: Any
    mean_square: Any


@dataclasses.dataclass(frozen=True, eq=False)
class PSGLD(Kernel):
    r"""SGLD with the diagonal preconditioner of RMSprop.

        V_k     = beta * V_{k-1} + (1 - beta) * (s * g_k)^2,        V_{-1} = 1
        G_k     = 1 / (lambda + sqrt(V_k))
        x_{k+1} = x_k - epsilon * G_k * g_k + epsilon * tau * Gamma_k + sqrt(2 * epsilon * tau * G_k) * xi_k

    To sample a distribution, freeze the preconditioner (`freeze_after`): that leaves exp(-U / tau), up to the step size. One that
    adapts does not. If V follows the gradient faster than the chain mixes (epsilon G far below 1 - beta), G is a function of x, and
    without Gamma, its derivative, the distribution is near exp(-U / tau) / G: the variance of a standard normal becomes 1.85. If
    the chain mixes much faster than V, the bias is O(1 - beta). Like the thesis' code, the default leaves Gamma out. With
    `curvature_correction` it is -(1 - beta) * s^2 * g * (v * Hv) / (sqrt(V) * (lambda + sqrt(V))^2), with a probe v of random
    signs, at the cost of about one more gradient per iteration. That is the derivative through the newest gradient alone: all of
    it for beta = 0, and almost nothing if V follows slowly moving chains.

    Attributes:
        decay: beta.
        regularizer: lambda.
        gradient_scale: s, which brings the gradient of a sum over N examples to the scale of a mean (1/N, or 1/n as in the
            thesis' code, which divides by the batch size).
        curvature_correction: whether Gamma is used.
        freeze_after: the iteration from which V is constant, at most the run's `burn_in`; None lets it adapt forever.

    Reference:
        Li et al. 2016; Deng 2021, pICSGLD of section 4.3.

    Differs from the thesis: Gamma and freezing are offered.
    """

    decay: float = 0.99
    regularizer: float = 1e-3
    gradient_scale: float = 1.0
    curvature_correction: Static[bool] = False
    freeze_after: Static[int | None] = None

    is_elementwise = True
    step_errors = StepErrors(1.0, 1.0)

    def __post_init__(self):
        check_real("decay", self.decay, "Give the memory of the running mean, such as 0.99.", minimum=0.0, maximum=1.0)
        check_real("regularizer", self.regularizer, "Give a small number, such as 1e-3.", above=0.0)
        check_real("gradient_scale", self.gradient_scale, "Give 1, or one over the number of examples.", above=0.0)
        if self.freeze_after is not None:
            check_integer("freeze_after", self.freeze_after, 1, "Give the iterations of the burn-in, or None.")

    @property
    def needs_curvature(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.curvature_correction

    def preconditioner(self, state: PSGLDState) -> Any:
        return jax.tree.map(lambda v: 1.0 / (self.regularizer + jnp.sqrt(v)), state.mean_square)

    def step_for(self, bias: float, noise: float, temperature: float = 1.0) -> float:
        # There V is the mean square of the gradient: that of the force, and the noise.
        root = self.gradient_scale * np.sqrt(temperature * (1.0 + noise))
        return super().step_for(bias, noise) * float(self.regularizer + root)

    def init(self, position: Any) -> PSGLDState:
        return PSGLDState(position, jax.tree.map(jnp.ones_like, position))

    def step(
        self, state: PSGLDState, gradient: Any, noise: Any, move: Move, curvature: Curvature | None = None
    ) -> PSGLDState:
        scale, spread = self.gradient_scale, 2.0 * move.step_size * move.temperature
        mean_square = jax.tree.map(
            lambda v, g: (self.decay * v + (1.0 - self.decay) * (scale * g) ** 2).astype(v.dtype),
            state.mean_square,
            gradient,
        )
        if self.freeze_after is not None:
            is_free = move.iteration < self.freeze_after
            mean_square = jax.tree.map(lambda new, old: jnp.where(is_free, new, old), mean_square, state.mean_square)

        def moved(x, v, g, xi):
            preconditioner = 1.0 / (self.regularizer + jnp.sqrt(v))
            drift = move.step_size * preconditioner * g
            return x + (jnp.sqrt(spread * preconditioner) * xi - drift).astype(x.dtype)

        position = jax.tree.map(moved, state.position, mean_square, gradient, noise)
        if curvature is None:
            return PSGLDState(position, mean_square)

        def corrected(x, v, g, probe, product):
            root = jnp.sqrt(v)
            gamma = -(1.0 - self.decay) * scale**2 * g * probe * product / (root * (self.regularizer + root) ** 2)
            if self.freeze_after is not None:
                gamma = jnp.where(move.iteration < self.freeze_after, gamma, 0.0)
            return x + (move.step_size * move.temperature * gamma).astype(x.dtype)

        position = jax.tree.map(corrected, position, mean_square, gradient, curvature.probe, curvature.product)
        return PSGLDState(position, mean_square)

    def statistics(self, state: PSGLDState) -> dict[str, Any]:
        return {"preconditioner_frozen_at": jnp.asarray(-1 if self.freeze_after is None else self.freeze_after)}

    def diagnose(self, run: RunView) -> list[Check]:
        if not run.claims_distribution or (self.freeze_after is not None and self.freeze_after <= run.times[0]):
            return []
        return [
            checks.PRECONDITIONER.found(
                "The preconditioner went on adapting while draws were taken: they do not follow exp(-U / T), and spreads may be "
                "off by tens of percent.",
                "Pass `freeze_after=BURN_IN` to the sampler, and `burn_in=BURN_IN` to `iso.sample`.",
            )
        ]

    def rejected(self, before: PSGLDState, proposed: PSGLDState) -> PSGLDState:
        finite = lambda new, old: jnp.where(jnp.isfinite(new), new, old)  # noqa: E731
        return PSGLDState(before.position, jax.tree.map(finite, proposed.mean_square, before.mean_square))
