"""Samplers of clients that hold data of their own."""

from collections.abc import Sequence

from isotherm.foundation.errors import check_real
from isotherm.foundation.schedules import Schedule
from isotherm.kernels import FederatedLangevin
from isotherm.samplers.constructor import constructor
from isotherm.samplers.sampler import Sampler


@constructor(searches=False)
def fald(
    step_size: Schedule,
    *,
    weights: Sequence[float],
    local_steps: int = 10,
    shared_noise: float = FederatedLangevin.shared_noise,
    participation: int | None = FederatedLangevin.participation,
    replacement: bool = FederatedLangevin.is_replaced,
    temperature: Schedule = 1.0,
) -> Sampler:
    """Federated averaging Langevin dynamics: C clients sample on data of their own, and are averaged every K iterations.

        y_c <- x_c - eps g_c / p_c + sqrt(2 eps T rho^2) xi + sqrt(2 eps T (1 - rho^2) / p_c) xi_c
        x_c <- sum_j p_j y_j        if (k + 1) mod K = 0, else x_c <- y_c

    with g_c the gradient of U_c, the client's share of U = sum_c U_c, on a batch of its own rows, and xi, xi_c standard normal. The
    average sum_c p_c x_c follows exp(-U / T): its noise has variance 2 eps T at every rho, and for K = 1 it is `sgld` on U.

    With `participation` S the average is that of S clients, (1 / S) sum_s y_{c_s}, drawn at every averaging: c_s with
    probabilities p_c and replacement, or uniformly without. Both have the full average as their mean.

    `iso.from_clients` makes the potential. Its positions, and so `init`, have a leading axis of clients, and `clients.average` maps
    them to their average. Draws at multiples of K have all clients at one position: take `thinning` and `burn_in` multiples of K.
    One chain of a run holds all clients; chains and runs are spread over devices, the clients of a chain are not. Draws on
    different numbers of devices agree to rounding only.

    Use it to sample a posterior whose data stay with their owners, or to study how rarely clients can communicate; not where the
    data are in one place: use `sgld`.

    Biased by O(eps) as `sgld` is, and between averages by the drift of the clients toward their own minima: O(K eps), more for
    unlike clients. Clients follow U_c / p_c: stable for eps below 2 over the largest curvature of any of these.
    Partial participation heats at every eps: as eps falls, draws follow T (1 + (1 - rho^2) (C - 1) / S) with replacement, and
    T (1 + (1 - rho^2) (C - S) / S) without; rho = 1 leaves T. The bias is not measured: compare with a run at half of eps.

    Args:
        step_size: eps, a number above 0 or a function of the iteration, in units of position^2 / energy.
        weights: p_c, one above 0 per client, with sum 1; `clients.weights` has those of the potential.
        local_steps: K, iterations from one average to the next, at least 1.
        shared_noise: rho in [0, 1]; 0 gives every client noise of its own, 1 the same noise to all. No unit.
        participation: S, clients in an average, at least 1; None averages all of them.
        replacement: whether the S clients are drawn with replacement, by p_c; without it p_c must be equal.

    Example:
        >>> import isotherm as iso, jax.numpy as jnp
        >>> rows = [jnp.array([1.0, 2.0]), jnp.array([6.0])]
        >>> clients = iso.from_clients(lambda m, y: -0.5 * (y - m) ** 2, lambda m: -0.5 * m ** 2, rows)
        >>> sampler = iso.fald(0.01, weights=clients.weights, local_steps=5)
        >>> init, collect = clients.start(0.0), clients.average
        >>> run = iso.sample(clients, sampler, num_steps=200, num_chains=4, thinning=5, init=init, collect=collect)
        >>> run.draws.shape
        (4, 40)

    Reference:
        Deng et al. 2021, arXiv 2112.05120, algorithm FA-LD; named in the last chapter of Deng 2021. Li et al. 2020, "On the
        convergence of FedAvg on non-IID data", for partial participation.

    Differs from the thesis: it names the algorithm as future work.
    """
    if not callable(step_size):
        step_size = check_real("step_size", step_size, "Give one step size for all clients.", above=0.0)
    shares = tuple(float(weight) for weight in weights)
    kernel = FederatedLangevin(shares, local_steps, shared_noise, participation, replacement)
    return Sampler(kernel, step_size, temperature, name="fald")
