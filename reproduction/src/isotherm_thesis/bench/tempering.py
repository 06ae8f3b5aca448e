"""Exchange among 16 replicas on the 25-mode energy, beside TensorFlow Probability."""

import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from isotherm.api import sample
from isotherm.potentials import from_energy
from isotherm.samplers import naive_resgld
from isotherm.targets.target import modes25_energy
from isotherm_thesis.bench.peers import rows_beside
from isotherm_thesis.bench.timing import Measurement

_STEP_SIZE = 3e-3
_NUM_REPLICAS = 16
_TEMPERATURES = (1.0, 10.0)


def exchange_rows(thinning: int, num_sweeps: int = 500_000) -> list[Measurement]:
    """Sweeps per second of one ladder, beside both loops around TensorFlow Probability's kernel.

    A sweep moves every replica once by a Langevin step and tries the even or the odd pairs in turn. The peer's step is adjusted
    (MALA), ours is not; the proposals are the same. The peer evaluates gradients once more after the swaps.
    """
    steps = (_STEP_SIZE, _STEP_SIZE)
    sampler = naive_resgld(steps, temperatures=_TEMPERATURES, num_replicas=_NUM_REPLICAS)
    potential = from_energy(modes25_energy)

    def ours():
        settings = {"num_steps": num_sweeps, "thinning": thinning, "progress": False}
        return sample(potential, sampler, num_ladders=1, init=jnp.zeros(2), **settings).draws

    kept = "every draw kept" if thinning == 1 else f"thinned by {thinning}"
    work = f"Exchange, {_NUM_REPLICAS} replicas, 25 modes, {kept}, sweeps/s"
    forms = {form: (form, num_sweeps, thinning) for form in _FORMS}
    return rows_beside(work, (num_sweeps, ours), "TensorFlow Probability", tfp_exchange, forms)


def tfp_exchange(form: str, num_sweeps: int, thinning: int) -> Callable[[], Any]:
    """TensorFlow Probability's exchange on the same energy, in one form of a loop."""
    with warnings.catch_warnings():
        # Its import reads deprecated names of JAX, and its swaps ask for 64-bit integers, which JAX makes 32-bit.
        warnings.simplefilter("ignore")
        from tensorflow_probability.substrates import jax as tfp  # pyright: ignore[reportMissingImports]

        kernel = _kernel(tfp.mcmc)
        key = jax.random.PRNGKey(0)
        run = jax.jit(lambda key: _FORMS[form](tfp.mcmc, kernel, key, num_sweeps, thinning)).lower(key).compile()
    return lambda: run(key)


def _kernel(mcmc: Any) -> Any:
    """MALA, as HMC of one leapfrog step of length sqrt(2 epsilon tau): it proposes what SGLD does.

    The peer's own MALA keeps its old drift when replicas swap, and then samples another law; it is no faster.
    """
    temperatures = np.geomspace(*_TEMPERATURES, _NUM_REPLICAS, dtype=np.float32)
    lengths = np.sqrt(2 * np.float32(_STEP_SIZE) * temperatures)[:, None]

    def log_prob(positions):
        return -jax.vmap(modes25_energy)(positions)

    def inner(log_prob):
        return mcmc.HamiltonianMonteCarlo(log_prob, step_size=lengths, num_leapfrog_steps=1)

    swaps = mcmc.even_odd_swap_proposal_fn(1.0)
    return mcmc.ReplicaExchangeMC(log_prob, 1 / temperatures, inner, swap_proposal_fn=swaps)


def _sample_chain(mcmc: Any, kernel: Any, key: Any, num_sweeps: int, thinning: int) -> Any:
    return mcmc.sample_chain(
        num_sweeps // thinning,
        current_state=jnp.zeros(2),
        kernel=kernel,
        num_steps_between_results=thinning - 1,
        trace_fn=None,
        seed=key,
    )


def _scan(_: Any, kernel: Any, key: Any, num_sweeps: int, thinning: int) -> Any:
    """Short scans within a scan, also where every draw is kept: on a CPU more than twice as fast as one long scan."""

    def sweep(carry, key):
        carry = kernel.one_step(*carry, seed=key)
        return carry, carry[0] if thinning == 1 else None

    def stretch(carry, keys):
        carry, kept = lax.scan(sweep, carry, keys)
        return carry, kept if thinning == 1 else carry[0]

    start, length = jnp.zeros(2), 10 if thinning == 1 else thinning
    keys = jax.random.split(key, num_sweeps).reshape(num_sweeps // length, length, 2)
    # Swaps change the shapes of some results for good, so that the first sweep is not part of the scan.
    carry = kernel.one_step(start, kernel.bootstrap_results(start), seed=key)
    return lax.scan(stretch, carry, keys)[1]


_FORMS = {"sample_chain": _sample_chain, "nested scan": _scan}
