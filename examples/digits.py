"""Four ensembles of a Flax classifier on scikit-learn's digits 0 to 4, with digits 5 to 9 out of distribution.

python examples/digits.py            # about a minute on two cores
"""

import argparse
import pathlib
import time

import numpy as np
from flax import nnx
from sklearn.datasets import load_digits

import isotherm as iso
from isotherm.contour import RegularizedWeights
from isotherm.demo.result import Row, write_result
from isotherm.predictive import auroc, predict, summarize


class Classifier(nnx.Module):
    """Two hidden layers."""

    def __init__(self, rngs: nnx.Rngs):
        self.first = nnx.Linear(64, 64, rngs=rngs)
        self.second = nnx.Linear(64, 64, rngs=rngs)
        self.outputs = nnx.Linear(64, 5, rngs=rngs)

    def __call__(self, x):
        """Logits."""
        return self.outputs(nnx.relu(self.second(nnx.relu(self.first(x)))))


def main(num_steps: int = 4_000, out: pathlib.Path | None = None) -> list[Row]:
    """Sample, predict, and print the table."""
    began = time.perf_counter()
    inputs, labels = load_digits(return_X_y=True)
    inputs, labels = np.asarray(inputs, np.float32) / 16, np.asarray(labels, np.int32)
    known = np.random.default_rng(0).permutation(np.flatnonzero(labels < 5))
    train, test, unknown = known[300:], known[:300], np.flatnonzero(labels >= 5)

    potential = iso.networks.from_nnx(
        Classifier,
        "cross_entropy",
        (inputs[train], labels[train]),
        batch_size=100,
        weight_decay=1.0,
        coupling_includes_prior=False,
    )
    # A cold posterior, for which short runs suffice. docs/networks.md samples at temperature 1, with twice as many steps.
    step_size, temperature = 1e-4, 0.03
    ladder = tuple(temperature * 1.2**rung for rung in range(4))
    ensembles = {
        "M-SGD": iso.msgd(step_size),
        "SGHMC": iso.sghmc(step_size, temperature=temperature),
        "reSGHMC": iso.resghmc(step_size, temperatures=ladder, correction_factor=30.0, ignores_prior=True),
        "ICSGHMC": iso.icsghmc(
            step_size,
            temperature=temperature,
            partition=(2.0, 102.0, 102),
            zeta=1 / temperature,
            gain=0.01,
            field="theta",
            bounds=(-5.0, 5.0),
            empty_step=None,
            warm_up=num_steps // 4,
            weight_rule=RegularizedWeights(),
        ),
    }
    rows = []
    for name, sampler in ensembles.items():
        run = iso.sample(
            potential,
            sampler,
            num_steps=num_steps,
            num_chains=4,
            burn_in=num_steps // 2,
            thinning=max(num_steps // 100, 1),
            num_ladders=1,
            init=potential.init,
        )
        inside, outside = predict(run, potential, inputs[test]), predict(run, potential, inputs[unknown])
        scores = summarize(inside.probabilities, labels[test])
        scores["auroc"] = auroc(inside.entropy, outside.entropy)
        rows += [Row(name, metric, None, score, None, 1) for metric, score in scores.items()]
    if out is not None:
        write_result(out, "digits-example", "full", rows, {"num_steps": num_steps}, 0, time.perf_counter() - began)
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--num-steps", type=int, default=4_000)
    parser.add_argument("--out", type=pathlib.Path, help="a result.json")
    given = parser.parse_args()
    print("Digits 0 to 4; AUROC against 5 to 9")
    for row in main(given.num_steps, given.out):
        print(f"{row.method:8} {row.metric:12} {row.text}")
