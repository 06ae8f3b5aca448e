"""Sampling and minimizing energies with many wells, when only mini-batch energies and gradients are affordable.

    import isotherm as iso

    run = iso.sample(energy, iso.sgld(step_size=0.01), num_steps=100_000, init=start)

Conventions: U(x) = -log prior(x) - (N/n) * sum of log likelihoods, density exp(-U(x) / temperature), arrays with axes (chain, draw,
...), or (run, chain, draw, ...) where `num_runs` is given.
"""

import importlib
from typing import TYPE_CHECKING, Any

from isotherm.foundation.moved import add_moved_modules

if TYPE_CHECKING:
    from isotherm import (
        bandits,
        contour,
        distributed,
        estimators,
        exchange,
        kernels,
        networks,
        potentials,
        predictive,
        targets,
        transforms,
    )
    from isotherm.adapters import as_optax, to_blackjax
    from isotherm.api import Advice, Resolved, advise, resolve, resume, sample, sweep
    from isotherm.foundation import schedules
    from isotherm.foundation.compilation_cache import use_compilation_cache
    from isotherm.foundation.errors import DivergenceError, DivergenceWarning
    from isotherm.minimization import minimize
    from isotherm.networks import from_equinox, from_linen, from_nnx
    from isotherm.potentials import (
        Potential,
        from_clients,
        from_energy,
        from_likelihood,
        from_log_density,
        per_chain,
        with_noise,
        with_reference,
    )
    from isotherm.run import Run, load
    from isotherm.samplers import (
        Sampler,
        Specification,
        awsgld,
        csghmc,
        csgld,
        cvr_resghmc,
        cycsghmc,
        cycsgld,
        deo_sgd,
        deo_star_msgd,
        deo_star_psgd,
        deo_star_sgd,
        fald,
        ghmc,
        icsghmc,
        icsgld,
        ksgld,
        mala,
        msgd,
        naive_resgld,
        picsgld,
        psgld,
        reghmc,
        resghmc,
        resgld,
        sgd,
        sghmc,
        sgld,
        svgd,
        swag,
        thesis,
        vr_resghmc,
        vr_resgld,
    )

add_moved_modules()

__version__ = "0.2.0.dev0"

__all__ = [
    "Advice",
    "DivergenceError",
    "DivergenceWarning",
    "Potential",
    "Resolved",
    "Run",
    "Sampler",
    "Specification",
    "advise",
    "as_optax",
    "awsgld",
    "bandits",
    "contour",
    "csghmc",
    "csgld",
    "cvr_resghmc",
    "cycsghmc",
    "cycsgld",
    "deo_sgd",
    "deo_star_msgd",
    "deo_star_psgd",
    "deo_star_sgd",
    "distributed",
    "estimators",
    "exchange",
    "fald",
    "from_clients",
    "from_energy",
    "from_equinox",
    "from_likelihood",
    "from_linen",
    "from_log_density",
    "from_nnx",
    "ghmc",
    "icsghmc",
    "icsgld",
    "kernels",
    "ksgld",
    "load",
    "mala",
    "minimize",
    "msgd",
    "naive_resgld",
    "networks",
    "per_chain",
    "picsgld",
    "potentials",
    "predictive",
    "psgld",
    "reghmc",
    "resghmc",
    "resgld",
    "resolve",
    "resume",
    "sample",
    "schedules",
    "sgd",
    "sghmc",
    "sgld",
    "svgd",
    "swag",
    "sweep",
    "targets",
    "thesis",
    "to_blackjax",
    "transforms",
    "use_compilation_cache",
    "vr_resghmc",
    "vr_resgld",
    "with_noise",
    "with_reference",
]

# What is imported when it is first used, so that `isotherm --help` need not wait for JAX. Modules:
_MODULES = {
    "schedules": "foundation.schedules",
    **{name: name for name in ("bandits", "contour", "distributed", "estimators", "exchange", "kernels", "networks")},
    **{name: name for name in ("potentials", "predictive", "run", "samplers", "targets", "transforms")},
}
# And names in modules; all others are samplers.
_HOMES = {
    "foundation.compilation_cache": ("use_compilation_cache",),
    "foundation.errors": ("DivergenceError", "DivergenceWarning"),
    "minimization": ("minimize",),
    "networks": ("from_equinox", "from_linen", "from_nnx"),
    "adapters": ("as_optax", "to_blackjax"),
    "api": ("Advice", "Resolved", "advise", "resolve", "resume", "sample", "sweep"),
    "potentials": (
        "Potential",
        "from_clients",
        "from_energy",
        "from_likelihood",
        "from_log_density",
        "per_chain",
        "with_noise",
        "with_reference",
    ),
    "run": ("Run", "load"),
}
_HOME = dict.fromkeys(__all__, "samplers") | {name: home for home, names in _HOMES.items() for name in names}

# Type checkers read the imports above; with this function they would take every name, misspelled ones too.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            value = importlib.import_module(f"{__name__}.{_MODULES[name]}")
        elif name in _HOME:
            value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}{_meant(name)}", name=name)
        globals()[name] = value
        return value


def _meant(name: str) -> str:
    from isotherm.foundation.errors import closest

    close = closest(name, __all__)
    return f". Did you mean {close!r}?" if close else ""


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
