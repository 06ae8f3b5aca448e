"""What a long step does to a network, and what its run says.

`python -m isotherm_thesis.studies.network_heat` writes reproduction/results/network-heat.json.

A perceptron of 2,410 weights on scikit-learn's digits at temperature 1, batches of 100 of 1,400 images, SGHMC at four step
sizes. The temperature is that of the gradients at the draws, as the run measures it on batches; the loss is that of all training
images.
"""

import json
from typing import Any

import jax
import numpy as np
from flax import nnx
from sklearn.datasets import load_digits

import isotherm as iso
from isotherm.run.bias import error_of
from isotherm_thesis.paths import RESULTS

NUM_DATA, NUM_CHAINS = 1_400, 4
STEPS = {4e-4: 20_000, 1e-4: 40_000, 4e-5: 80_000, 2e-5: 160_000}


class Perceptron(nnx.Module):
    """One hidden layer."""

    def __init__(self, rngs):
        self.first, self.last = nnx.Linear(64, 32, rngs=rngs), nnx.Linear(32, 10, rngs=rngs)

    def __call__(self, inputs):
        """Logits."""
        return self.last(nnx.relu(self.first(inputs)))


def main() -> None:
    """A row for every step size."""
    inputs, labels = load_digits(return_X_y=True)
    data = ((inputs[:NUM_DATA] / 16.0).astype(np.float32), labels[:NUM_DATA].astype(np.int32))
    potential = iso.from_nnx(Perceptron, "cross_entropy", data, batch_size=100, weight_decay=5.0)

    def loss(position):
        hidden = jax.nn.relu(data[0] @ position["first.kernel"] + position["first.bias"])
        logits = hidden @ position["last.kernel"] + position["last.bias"]
        return -jax.numpy.sum(jax.nn.log_softmax(logits)[np.arange(NUM_DATA), data[1]])

    rows = []
    for step_size, num_steps in STEPS.items():
        settings: dict[str, Any] = {"num_chains": NUM_CHAINS, "burn_in": num_steps // 4, "thinning": num_steps // 400}
        run = iso.sample(potential, iso.sghmc(step_size), num_steps=num_steps, progress=False, **settings)
        assert run.bias is not None
        heats, found = run.bias.leaf_heats, run.estimate(loss)
        rows.append(
            {
                "step": step_size,
                "temperature": 1.0 + float(heats[0, 0]),
                "error": float(error_of(heats)[0]),
                "loss": float(found.mean),
                "loss_error": float(found.std_error),
                "is_named": any("numbers of the position" in note for note in run.summary().notes),
            }
        )
        print(rows[-1], flush=True)
    (RESULTS / "network-heat.json").write_text(json.dumps({"rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
