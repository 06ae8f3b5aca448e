"""The demonstration, and one file per table or figure of the thesis.

A file of an experiment has a `TITLE`, two configurations of one frozen class, `QUICK` and `FULL`, whose `num_runs` is the number of
independent repeats, and `run(config, seed, log)`, which returns an `Outcome`.
"""

EXPERIMENTS: dict[str, str] = {
    "mixture-resgld": "mixture_resgld",
    "mixture-vr": "mixture_vr",
    "round-trips": "round_trips",
    "few-rungs": "few_rungs",
    "modes25-deo": "modes25_deo",
    "mixture-csgld": "mixture_csgld",
    "csgld-fields": "csgld_fields",
    "modes9": "modes9",
    "modes25-icsgld": "modes25_icsgld",
    "modes25-resgld": "modes25_resgld",
    "energy-cdf": "energy_cdf",
    "landscapes": "awsgld_landscapes",
    "rugged-paths": "rugged_paths",
    "ten-functions": "ten_functions",
    "ten-functions-limits": "ten_functions_limits",
    "interaction": "interaction",
    "uci": "uci",
    "mushroom": "mushroom",
    "mnist-icsgld": "mnist_icsgld",
    "mnist-awsgld": "mnist_awsgld",
    "cifar-resghmc": "cifar_resghmc",
    "cifar-vr": "cifar_vr",
    "ood-svhn": "ood_svhn",
    "cifar-deo": "cifar_deo",
    "cifar-csghmc": "cifar_csghmc",
    "cifar-icsghmc": "cifar_icsghmc",
    "cifar-hmc-reference": "cifar_hmc_reference",
}
