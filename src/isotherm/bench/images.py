"""ResNet-20 on CIFAR-100 with augmentation, as a run of the library: images per second, memory, and a stop and resume.

    python -m isotherm.bench.images --data DIR --out FILE

DIR holds CIFAR-100 in any form that `isotherm.data.load` reads.
"""

import argparse
import json
import pathlib
import shutil
import tempfile
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import isotherm as iso
from isotherm.contour import RegularizedWeights
from isotherm.data import load
from isotherm.data.augment import CIFAR_DEVIATION, CIFAR_MEAN, Normalize, cifar_augmentation
from isotherm.models import resnet
from isotherm.predictive import accuracy, predict
from isotherm.predictive.prior import prior_energies
from isotherm.sampling.describe import environment

BATCH_SIZE = 256
STEP_SIZE, WEIGHT_DECAY, TEMPERATURE = 2e-6, 25.0, 3e-4


def samplers(steps_per_epoch: int) -> dict[str, tuple[Any, int]]:
    """The two samplers and their numbers of chains; ICSGHMC learns from the third epoch on."""
    contour = iso.icsghmc(
        STEP_SIZE,
        partition=(20_000.0, 220_000.0, 1000),
        temperature=TEMPERATURE,
        zeta=3e6,
        **iso.thesis.icsgld(gain=0.003),
        warm_up=2 * steps_per_epoch,
        weight_rule=RegularizedWeights(),
    )
    return {"sghmc": (iso.sghmc(STEP_SIZE, temperature=TEMPERATURE), 1), "icsghmc": (contour, 4)}


def potential_of(data: dict[str, np.ndarray], compute_dtype: Any = jnp.bfloat16) -> Any:
    """ResNet-20 with the thesis' prior and augmentation."""
    return iso.potentials.from_nnx(
        lambda rngs: resnet(20, 100, rngs=rngs),
        "cross_entropy",
        (data["train_inputs"], data["train_labels"]),
        batch_size=BATCH_SIZE,
        weight_decay=WEIGHT_DECAY,
        coupling_includes_prior=False,
        compute_dtype=compute_dtype,
        prepare=Normalize(CIFAR_MEAN, CIFAR_DEVIATION),
        augment=cifar_augmentation(),
    )


def measure(name: str, data: dict[str, np.ndarray], num_epochs: int) -> dict[str, Any]:
    """One sampler for `num_epochs`, stopped half way and resumed, and its record."""
    potential = potential_of(data)
    steps_per_epoch = -(-potential.num_data // BATCH_SIZE)
    sampler, num_chains = samplers(steps_per_epoch)[name]
    folder = pathlib.Path(tempfile.mkdtemp()) / name
    half, whole = num_epochs // 2 * steps_per_epoch, num_epochs * steps_per_epoch
    options: dict[str, Any] = {"thinning": steps_per_epoch // 4, "num_chains": num_chains}
    began = time.perf_counter()
    first = iso.sample(potential, sampler, num_steps=half, init=potential.init, out=folder, progress=False, **options)
    second = iso.resume(folder, potential, sampler, num_steps=whole, progress=False)
    seconds = time.perf_counter() - began
    images = BATCH_SIZE * num_chains
    last, labels = second.select(slice(-4, None)), data["test_labels"].astype(np.int32)
    test = predict(last, potential, data["test_inputs"], labels=labels, batch_size=2000)
    losses = (np.asarray(second.energies) - prior_energies(potential, second)).mean(axis=0) / potential.num_data
    stats = jax.local_devices()[0].memory_stats() or {}
    shutil.rmtree(folder.parent)
    return {
        "sampler": name,
        "num_chains": num_chains,
        "num_epochs": num_epochs,
        "batch_size": BATCH_SIZE,
        "images_per_second": images * half / first.seconds,
        "images_per_second_after_resume": images * (whole - half) / second.seconds,
        "compile_seconds": first.compile_seconds,
        "compile_seconds_after_resume": second.compile_seconds,
        "seconds_in_all": seconds,
        "peak_bytes": stats.get("peak_bytes_in_use"),
        "iterations": second.iterations.tolist(),
        "loss_per_image": losses.tolist(),
        "stopped_at": half,
        "test_accuracy_of_last_epoch": accuracy(test.probabilities, labels),
        "multiplier_negative": int(np.sum(second.stats.get("num_negative", 0))),
    }


def main() -> None:
    """Measure both samplers and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--samplers", nargs="+", default=["sghmc", "icsghmc"])
    given = parser.parse_args()
    data = load("cifar100", given.data)
    record: dict[str, Any] = {"environment": environment(), "rows": []}
    for name in given.samplers:
        record["rows"].append(measure(name, data, given.epochs))
        given.out.write_text(json.dumps(record, indent=1))
        print(json.dumps(record["rows"][-1]), flush=True)


if __name__ == "__main__":
    main()
