"""Numbers of the thesis' image tables, by data set, network and method.

Accuracies are in per cent, likelihoods summed over the test images, and Brier scores in permille.
"""

ACCURACY, NLL, BRIER = "best accuracy, logits", "NLL sum, logits", "SVHN Brier, permille"
BEST_SINGLE = "single accuracy, best"
_NETWORKS = ("resnet20", "resnet32", "resnet56", "wrn-16-8", "wrn-28-10")

Values = dict[tuple[str, str], dict[str, dict[str, float]]]


def _by_network(data_set: str, metrics: tuple[str, ...], rows: dict[str, tuple[tuple[float, ...], ...]]) -> Values:
    """From rows of a table, with one tuple of metrics for each network."""
    found: Values = {}
    for method, cells in rows.items():
        for network, values in zip(_NETWORKS, cells, strict=False):
            found.setdefault((data_set, network), {})[method] = dict(zip(metrics, values, strict=True))
    return found


def _single(values: tuple[float, ...]) -> tuple[tuple[float, ...], ...]:
    return tuple((value,) for value in values)


# Table of chapter 2 (L776), and of batches of 1024 (L805).
RESGHMC: Values = {
    **_by_network(
        "cifar10",
        (ACCURACY,),
        {
            "M-SGD": _single((94.21, 95.15, 96.01, 96.71, 97.33)),
            "SGHMC": _single((94.22, 95.18, 95.95, 96.73, 97.32)),
            "reSGHMC": _single((94.62, 95.35, 96.12, 96.87, 97.42)),
            "M-SGD, batch 1024": _single((94.49,)),
            "SGHMC, batch 1024": _single((94.57,)),
            "reSGHMC, batch 1024": _single((95.01,)),
        },
    ),
    **_by_network(
        "cifar100",
        (ACCURACY,),
        {
            "M-SGD": _single((72.45, 75.01, 78.96, 81.70, 83.79)),
            "SGHMC": _single((72.49, 75.14, 79.04, 82.07, 83.76)),
            "reSGHMC": _single((74.14, 76.55, 80.14, 82.95, 84.38)),
            "M-SGD, batch 1024": _single((73.31,)),
            "SGHMC, batch 1024": _single((73.23,)),
            "reSGHMC, batch 1024": _single((75.11,)),
        },
    ),
}

# Table of chapter 3 (L1074).
VARIANCE_REDUCED: Values = {
    **_by_network(
        "cifar10",
        (ACCURACY,),
        {
            "M-SGD": _single((94.07, 95.11, 96.05)),
            "SGHMC": _single((94.16, 95.17, 96.04)),
            "reSGHMC": _single((94.56, 95.44, 96.15)),
            "VR-reSGHMC": _single((94.84, 95.62, 96.32)),
            "cycSGHMC": _single((94.61, 95.56, 96.19)),
            "cVR-reSGHMC": _single((94.91, 95.64, 96.36)),
        },
    ),
    **_by_network(
        "cifar100",
        (ACCURACY,),
        {
            "M-SGD": _single((71.93, 74.65, 78.76)),
            "SGHMC": _single((72.09, 74.80, 78.95)),
            "reSGHMC": _single((73.94, 76.38, 79.86)),
            "VR-reSGHMC": _single((74.83, 77.40, 80.62)),
            "cycSGHMC": _single((74.21, 76.60, 80.39)),
            "cVR-reSGHMC": _single((75.02, 77.58, 80.50)),
        },
    ),
}

# Entropies on SVHN of networks for CIFAR-10 (L1149): 77 % of cVR-reSGHMC's are above 1.5, 7 and 10 points more than others'.
SVHN_ENTROPY: Values = {
    ("cifar10", "resnet20"): {
        "cVR-reSGHMC": {"SVHN entropy above 1.5, T = 2": 77.0},
        "reSGHMC": {"SVHN entropy above 1.5, T = 2": 70.0},
        "cycSGHMC": {"SVHN entropy above 1.5, T = 2": 67.0},
    }
}

# Table of chapter 4 (L1485), and round trips per 100 epochs (L1499).
LADDERS: Values = _by_network(
    "cifar100",
    (NLL, ACCURACY),
    {
        "cycSGHMC x T10": ((8198, 76.26), (7401, 78.54), (6460, 81.78)),
        "cycSWAG x T10": ((8164, 76.13), (7389, 78.62), (6486, 81.60)),
        "mSGD x P10": ((7902, 76.59), (7204, 79.02), (6553, 81.49)),
        "DEO-mSGD x P10": ((7964, 76.84), (7152, 79.34), (6534, 81.72)),
        "DEO*-mSGD x P10": ((7741, 77.37), (7019, 79.54), (6439, 82.02)),
    },
)
LADDERS["cifar100", "resnet20"]["DEO*-mSGD x P10"]["round trips per 100 epochs, thesis"] = 11.0

# Table of chapter 5 (L1852).
CONTOUR: Values = {
    (data_set, "resnet20"): {
        method: dict(zip((BEST_SINGLE, ACCURACY), values, strict=True)) for method, values in rows.items()
    }
    for data_set, rows in {
        "cifar10": {
            "M-SGD": (90.02, 92.03),
            "SGHMC": (90.01, 91.98),
            "CSGHMC": (90.87, 92.85),
            "saM-SGD": (93.83, 94.25),
            "saSGHMC": (93.80, 94.24),
            "saCSGHMC": (94.06, 94.33),
        },
        "cifar100": {
            "M-SGD": (61.41, 67.04),
            "SGHMC": (61.46, 66.43),
            "CSGHMC": (63.97, 68.94),
            "saM-SGD": (69.18, 71.83),
            "saSGHMC": (69.24, 71.98),
            "saCSGHMC": (70.18, 72.67),
        },
    }.items()
}

# Table of chapter 6 (L2243).
INTERACTING: Values = _by_network(
    "cifar100",
    (ACCURACY, NLL, BRIER),
    {
        "cycSGHMC x T4": ((75.01, 8468, 2.81), (77.64, 7658, 3.29), (81.23, 6770, 3.18), (82.98, 6384, 2.17)),
        "cycSWAG x T4": ((75.12, 8456, 2.78), (77.59, 7656, 3.19), (81.14, 6744, 3.06), (83.05, 6359, 2.04)),
        "M-SGD x P4": ((75.89, 8175, 2.58), (78.12, 7538, 2.82), (80.94, 6847, 2.86), (82.57, 6821, 1.77)),
        "reSGHMC x P4": ((76.15, 8196, 2.73), (78.57, 7454, 3.04), (81.11, 6915, 2.92), (82.72, 6452, 1.92)),
        "ICSGHMC x P4": ((76.39, 8076, 2.52), (78.79, 7384, 2.73), (81.51, 6630, 2.88), (83.21, 6279, 1.81)),
    },
)
