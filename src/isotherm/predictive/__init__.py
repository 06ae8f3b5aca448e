"""Predictions of ensembles of networks: weighted averages, scores, uncertainty and SWAG."""

from typing import TYPE_CHECKING

from isotherm.foundation.moved import moved
from isotherm.predictive.average import Draws, Prediction, outputs_of_draws, predict
from isotherm.predictive.classification import (
    Calibration,
    accuracy,
    brier,
    brier_ood,
    calibration,
    ensemble_uncertainty,
    entropy,
    fit_temperature,
    mutual_information,
    nll,
    scaled,
    summarize,
)
from isotherm.predictive.ensembles import Ensemble, joined, trained
from isotherm.predictive.ood import auroc, entropy_cdf, fpr95
from isotherm.predictive.plots import plot_entropies, plot_entropy_cdfs, plot_intervals, plot_reliability
from isotherm.predictive.regression import coverage, crps, gaussian_nll, intervals, predictive_mean, rmse
from isotherm.predictive.swag import Swag, fit_swag, refresh_statistics

__all__ = [
    "Calibration",
    "Draws",
    "Ensemble",
    "Prediction",
    "Swag",
    "accuracy",
    "auroc",
    "brier",
    "brier_ood",
    "calibration",
    "coverage",
    "crps",
    "ensemble_uncertainty",
    "entropy",
    "entropy_cdf",
    "fit_swag",
    "fit_temperature",
    "fpr95",
    "gaussian_nll",
    "intervals",
    "joined",
    "mutual_information",
    "nll",
    "outputs_of_draws",
    "plot_entropies",
    "plot_entropy_cdfs",
    "plot_intervals",
    "plot_reliability",
    "predict",
    "predictive_mean",
    "refresh_statistics",
    "rmse",
    "scaled",
    "summarize",
    "trained",
]

if not TYPE_CHECKING:
    _TO_THESIS = ("Landscape", "plot_landscape", "project")
    __getattr__ = moved(__name__, dict.fromkeys(_TO_THESIS, "isotherm_thesis.landscape"), "isotherm-thesis")
