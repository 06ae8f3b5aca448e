"""The argument of a linen module that says whether it trains: given, found by its name, or missing."""

import inspect
from typing import Any

import jax
import numpy as np
import pytest
from flax import linen

import isotherm as iso
from isotherm.networks import from_linen

RNG = np.random.default_rng(0)
X = RNG.standard_normal((90, 3)).astype(np.float32)
Y = (X[:, 0] * X[:, 1] > 0).astype(np.int32)


class Needing(linen.Module):
    @linen.compact
    def __call__(self, x, learns):
        return linen.Dense(2)(linen.Dropout(0.5, deterministic=not learns)(x))


@pytest.mark.parametrize("name", [None, "train"])
def test_a_linen_module_is_called_with_an_argument_that_it_has(name):
    with pytest.raises(
        ValueError, match=rf"`train_argument` must be .* the module, \(x, learns\); got {name!r}. Pass train_argument="
    ):
        from_linen(Needing(), "cross_entropy", (X, Y), train_argument=name, dropout="on")


@pytest.mark.parametrize("name", ["train", "training", "is_training", "deterministic", "use_running_average"])
@pytest.mark.parametrize("default", [True, False])
def test_the_usual_arguments_of_linen_modules_are_found(name, default):
    """Without the argument, statistics of BatchNorm would stay as they were, or predictions would fail."""

    class Norming(linen.Module):
        @linen.compact
        def __call__(self, x, **told):
            rests = told.get(name, default) == name.endswith(("deterministic", "use_running_average"))
            return linen.Dense(2)(linen.BatchNorm(use_running_average=rests)(x))

    parameter = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
    call: Any = Norming.__call__
    call.__signature__ = inspect.Signature(
        [inspect.Parameter(part, inspect.Parameter.POSITIONAL_OR_KEYWORD) for part in ("self", "x")] + [parameter]
    )
    potential = from_linen(Norming(), "cross_entropy", (X, Y))
    run = iso.sample(potential, iso.sgd(1e-12), num_steps=30, progress=False)
    means = np.asarray(jax.tree.leaves(run.model_state)[0])[0, -1]
    # The state at a draw has seen the iterations before it.
    np.testing.assert_allclose(means, X.mean(axis=0) * (1 - 0.99**29), atol=1e-5)
    assert iso.predictive.predict(run, potential, X[:3]).probabilities.shape == (3, 2)
