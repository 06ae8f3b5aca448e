"""The named samplers: compositions of the four parts, with defaults from our studies."""

from collections.abc import Callable

from isotherm.samplers import thesis
from isotherm.samplers.adjusted import ghmc, mala, reghmc
from isotherm.samplers.contour import awsgld, csghmc, csgld, icsghmc, icsgld, ksgld, picsgld
from isotherm.samplers.deo import deo_sgd, deo_star_msgd, deo_star_psgd, deo_star_sgd
from isotherm.samplers.exchange import cvr_resghmc, naive_resgld, resghmc, resgld, vr_resghmc, vr_resgld
from isotherm.samplers.federated import fald
from isotherm.samplers.independent import cycsghmc, cycsgld, msgd, psgld, sgd, sghmc, sgld, svgd, swag
from isotherm.samplers.loop import Info, LoopState
from isotherm.samplers.sampler import AnySampler, Choice, Sampler, Specification, StepSearch

# Those for any energy. `fald` is not one of them: it needs clients, whose positions have an axis of their own.
METHODS: dict[str, Callable[..., AnySampler]] = {
    constructor.__name__: constructor
    for constructor in (
        *(sgd, msgd, sgld, psgld, sghmc, cycsgld, cycsghmc, svgd, swag),
        *(mala, ghmc, reghmc),
        *(naive_resgld, resgld, resghmc, vr_resgld, vr_resghmc, cvr_resghmc),
        *(deo_sgd, deo_star_sgd, deo_star_psgd, deo_star_msgd),
        *(csgld, csghmc, ksgld, icsgld, icsghmc, picsgld, awsgld),
    )
}

__all__ = ["METHODS", "AnySampler", "Choice", "Info", "LoopState", "Sampler", "Specification", "StepSearch", "thesis"]
__all__ += ["fald", "ghmc", "mala", "reghmc"]
__all__ += ["cycsghmc", "cycsgld", "msgd", "psgld", "sgd", "sghmc", "sgld", "svgd", "swag"]
__all__ += ["cvr_resghmc", "naive_resgld", "resghmc", "resgld", "vr_resghmc", "vr_resgld"]
__all__ += ["deo_sgd", "deo_star_msgd", "deo_star_psgd", "deo_star_sgd"]
__all__ += ["awsgld", "csghmc", "csgld", "icsghmc", "icsgld", "ksgld", "picsgld"]
