"""The experiments of Wei Deng's thesis "Non-convex Bayesian Learning via Stochastic Gradient MCMC", as commands.

`isotherm reproduce`, `isotherm bench` and `isotherm data` are in this package; so are the ledger of the thesis' claims and the
studies behind the library's defaults.
"""

__version__ = "0.2.0.dev0"
