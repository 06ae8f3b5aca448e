"""The cyclical methods: cosine step sizes, networks averaged from the end of every cycle.

The largest step size is 2e-6 (a learning rate of 0.1), that of the author's logs and of the thesis' supplement; chapter 3
prints 1e-5. Cycles explore without noise.
"""

import isotherm as iso
from isotherm_thesis.experiments.images.plan import Frame, Plan, Swag


def cycsghmc(
    frame: Frame,
    *,
    learning_rate: float = 0.1,
    epochs: int = 1000,
    cycles: int = 5,
    temperature: float = 0.001,
    sampling_from: float = 0.7,
    hold_from: float = 1.0,
) -> Plan:
    """cycSGHMC: one long chain."""
    clock = frame.clock(epochs, cycles)
    sampler = iso.cycsghmc(
        frame.step_size(learning_rate),
        cycle_length=clock.num_steps // cycles,
        temperature=temperature,
        sampling_from=sampling_from,
        hold_from=hold_from,
    )
    return Plan(sampler, clock, 1, 0, frame.steps_per_epoch)


def cvr_resghmc(
    frame: Frame,
    *,
    learning_rate: float = 0.1,
    epochs: int = 500,
    cycles: int = 2,
    temperature: float = 0.001,
    step_ratio: float = 1.5,
    temperature_ratio: float = 5.0,
    sampling_from: float = 0.7,
    correction_factor: float = 1.5e6,
    refresh_every: int | None = None,
    is_adaptive: bool = True,
    rest_epochs: int = 1,
) -> Plan:
    """cVR-reSGHMC: two chains with corrected swaps late in a cycle. F times the temperature is that of VR-reSGHMC."""
    clock = frame.clock(epochs, cycles)
    sampler = iso.cvr_resghmc(
        frame.step_size(learning_rate),
        cycle_length=clock.num_steps // cycles,
        temperatures=(temperature, temperature_ratio * temperature),
        step_ratio=step_ratio,
        sampling_from=sampling_from,
        refresh_every=refresh_every or 2 * frame.steps_per_epoch,
        is_adaptive=is_adaptive,
        correction_factor=correction_factor,
        smoothing=0.3,
        cooling=rest_epochs * frame.steps_per_epoch,
        ignores_prior=True,
        variance="tracked",
    )
    return Plan(sampler, clock, None, 0, frame.steps_per_epoch, starts_apart=False, records_all=True)


def cycswag(
    frame: Frame,
    *,
    learning_rate: float = 0.1,
    epochs: int = 2000,
    cycles: int = 10,
    sampling_from: float = 0.94,
    num_drawn: int = 10,
    num_fitted: int = 4,
) -> Plan:
    """cycSWAG: Gaussians fitted to the end of every cycle of M-SGD, to `num_fitted` networks or one an epoch, whichever are more.

    Differs from the thesis: its code trains every drawn network for an epoch; here only the BatchNorm statistics are refreshed.
    """
    clock = frame.clock(epochs, cycles)
    length = clock.num_steps // cycles
    sampler = iso.swag(frame.step_size(learning_rate), cycle_length=length, sampling_from=sampling_from)
    window = length - int(sampling_from * length)
    thinning = max(min(frame.steps_per_epoch, window // num_fitted), 1)
    return Plan(sampler, clock, 1, 0, thinning, swag=Swag(length, num_drawn))
