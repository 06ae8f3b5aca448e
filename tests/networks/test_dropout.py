"""Dropout is on where it is asked for, in all three libraries, or the call is refused."""

import equinox as eqx
import jax
import numpy as np
import pytest
from flax import linen, nnx

import isotherm as iso
from isotherm.networks import from_equinox, from_linen, from_nnx

RNG = np.random.default_rng(0)
X = RNG.standard_normal((90, 3)).astype(np.float32)
Y = (X[:, 0] * X[:, 1] > 0).astype(np.int32)


def test_dropout_is_off_or_on_by_choice():
    class Net(nnx.Module):
        def __init__(self, rngs):
            self.first, self.dropout = nnx.Linear(3, 50, rngs=rngs), nnx.Dropout(0.5, rngs=rngs)
            self.last = nnx.Linear(50, 2, rngs=rngs)

        def __call__(self, x):
            return self.last(self.dropout(self.first(x)))

    module = Net(nnx.Rngs(0))
    energies = {}
    for choice in ("off", "on"):
        potential = from_nnx(module, "cross_entropy", (X, Y), dropout=choice)
        run = iso.sample(potential, iso.sgd(1e-12), num_steps=4, num_chains=2, init=potential.init, progress=False)
        energies[choice] = np.asarray(run.energies)
    assert np.ptp(energies["off"]) < 1e-3
    # Masks are new in every iteration and every chain.
    assert len(np.unique(energies["on"].round(3))) == 8
    outputs = [potential.outputs(potential.init, X, key=jax.random.key(k)) for k in (0, 0, 1)]
    assert np.array_equal(outputs[0], outputs[1])
    assert not np.array_equal(outputs[0], outputs[2])


class DroppingNnx(nnx.Module):
    def __init__(self, rate, rngs):
        self.dropout, self.last = nnx.Dropout(rate, rngs=rngs), nnx.Linear(3, 2, rngs=rngs)

    def __call__(self, x):
        return self.last(self.dropout(x))


class DroppingLinen(linen.Module):
    rate: float

    @linen.compact
    def __call__(self, x, train=False):
        return linen.Dense(2)(linen.Dropout(self.rate, deterministic=not train)(x))


class DroppingEquinox(eqx.Module):
    dropout: eqx.nn.Dropout
    last: eqx.nn.Linear

    def __call__(self, x, key=None):
        return self.last(self.dropout(x, key=key))


def dropping_equinox(dropout):
    return DroppingEquinox(dropout, eqx.nn.Linear(3, 2, key=jax.random.key(0)))


DROPPING = {
    "nnx": lambda rate, **o: from_nnx(DroppingNnx(rate, nnx.Rngs(0)), "cross_entropy", (X, Y), **o),
    "linen": lambda rate, **o: from_linen(DroppingLinen(rate), "cross_entropy", (X, Y), train_argument="train", **o),
    "equinox": lambda rate, **o: from_equinox(dropping_equinox(eqx.nn.Dropout(rate)), "cross_entropy", (X, Y), **o),
}


@pytest.mark.parametrize("library", DROPPING)
def test_dropout_that_nobody_chose_is_told_to_be_off(library, recwarn):
    make = DROPPING[library]
    with pytest.warns(UserWarning, match='has dropout, which is off while sampling. Pass dropout="off"') as caught:
        unsaid = make(0.5)
    assert caught[0].filename == __file__
    potentials = [unsaid, make(0.5, dropout="off"), make(0.5, dropout="on"), make(0.0)]
    assert not recwarn.list
    energies = [
        np.asarray(iso.sample(potential, iso.sgd(1e-12), num_steps=3, progress=False).energies)
        for potential in potentials
    ]
    assert [np.ptp(energy) > 1e-3 for energy in energies] == [False, False, True, False]


class Fixed(linen.Module):
    """Layers that are told to sleep, to wake, or nothing at all."""

    deterministic: bool | None

    @linen.compact
    def __call__(self, x):
        return linen.Dense(2)(linen.Dropout(0.5, deterministic=self.deterministic)(x))


class Attending(linen.Module):
    """Attention that is told in its field, in its call, or nowhere."""

    field: bool | None = None
    call: bool | None = None

    @linen.compact
    def __call__(self, x):
        layer = linen.MultiHeadDotProductAttention(1, dropout_rate=0.5, deterministic=self.field)
        return linen.Dense(2)(layer(x[:, :, None], deterministic=self.call)[..., 0])


def attending(**told):
    return lambda choice: from_linen(Attending(**told), "cross_entropy", (X, Y), dropout=choice)


ANYHOW = {
    "attention, asleep": attending(field=True),
    "attention, awake": attending(field=False),
    "attention, awake in its call": attending(call=False),
    "attention, not told": attending(),
    "linen, train left at False": lambda choice: from_linen(
        DroppingLinen(0.5), "cross_entropy", (X, Y), dropout=choice
    ),
    "linen, asleep": lambda choice: from_linen(Fixed(True), "cross_entropy", (X, Y), dropout=choice),
    "linen, awake": lambda choice: from_linen(Fixed(False), "cross_entropy", (X, Y), dropout=choice),
    "linen, not told": lambda choice: from_linen(Fixed(None), "cross_entropy", (X, Y), dropout=choice),
    "linen, train_argument": lambda choice: DROPPING["linen"](0.5, dropout=choice),
    "equinox, asleep": lambda choice: from_equinox(
        dropping_equinox(eqx.nn.Dropout(0.5, inference=True)), "cross_entropy", (X, Y), dropout=choice
    ),
}


@pytest.mark.parametrize("how", ANYHOW)
def test_the_choice_counts_and_not_what_layers_are_told(how):
    energies = {
        choice: np.asarray(iso.sample(ANYHOW[how](choice), iso.sgd(1e-12), num_steps=3, progress=False).energies)
        for choice in ("off", "on")
    }
    assert np.ptp(energies["off"]) < 1e-3
    assert np.ptp(energies["on"]) > 1e-3
    # Monte Carlo dropout: a key wakes the layers in predictions too.
    potential = ANYHOW[how]("off")
    start = potential.init(jax.random.key(0)) if callable(potential.init) else potential.init
    outputs = [potential.outputs(start, X, key=key) for key in (None, jax.random.key(0), jax.random.key(1))]
    assert not any(np.array_equal(outputs[one], outputs[two]) for one, two in ((0, 1), (0, 2), (1, 2)))
    # Half of the inputs are left out and the others doubled, so that the mean over masks is that without.
    many = jax.vmap(lambda key: potential.outputs(start, X, key=key))(jax.random.split(jax.random.key(2), 4_000))
    np.testing.assert_allclose(
        np.mean(many, axis=0), outputs[0], atol=6 * float(np.max(np.std(many, axis=0))) / 4_000**0.5
    )


class ToldInNnx(nnx.Module):
    def __init__(self, rngs):
        self.dropout, self.last = nnx.Dropout(0.5, rngs=rngs), nnx.Linear(3, 2, rngs=rngs)

    def __call__(self, x, deterministic=True):
        return self.last(self.dropout(x, deterministic=deterministic))


class ToldInEquinox(DroppingEquinox):
    def __call__(self, x, key=None):
        return self.last(self.dropout(x, key=key, inference=True))


class WithoutKey(DroppingEquinox):
    def __call__(self, x):  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.last(self.dropout(x))


LINEAR = eqx.nn.Linear(3, 2, key=jax.random.key(0))
NOTHING_DROPPED = (
    '`dropout` must be "off" for a network that drops nothing in training; got "on". Enable its dropout layers'
)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda **o: from_nnx(lambda rngs: nnx.Linear(3, 2, rngs=rngs), "cross_entropy", (X, Y), **o), NOTHING_DROPPED),
        (lambda **o: from_nnx(ToldInNnx, "cross_entropy", (X, Y), **o), NOTHING_DROPPED),
        (lambda **o: from_linen(linen.Dense(2), "cross_entropy", (X, Y), **o), NOTHING_DROPPED),
        (
            lambda **o: from_equinox(ToldInEquinox(eqx.nn.Dropout(0.5), LINEAR), "cross_entropy", (X, Y), **o),
            NOTHING_DROPPED,
        ),
        (
            lambda **o: from_equinox(WithoutKey(eqx.nn.Dropout(0.5), LINEAR), "cross_entropy", (X, Y), **o),
            "`dropout` must be \"off\" for a network that fails with a key of masks; got .* argument 'key'.*pass them the `key`",
        ),
    ],
)
def test_dropout_that_would_drop_nothing_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make(dropout="on")
    make(dropout="off")


def test_attention_with_dropout_is_told_of():
    with pytest.warns(UserWarning, match="has dropout, which is off while sampling"):
        from_linen(Attending(), "cross_entropy", (X, Y))

    class InNnx(nnx.Module):
        def __init__(self, rngs):
            self.layer = nnx.MultiHeadAttention(1, 3, dropout_rate=0.5, decode=False, rngs=rngs)
            self.last = nnx.Linear(3, 2, rngs=rngs)

        def __call__(self, x):
            return self.last(self.layer(x[:, None, :])[:, 0])

    with pytest.warns(UserWarning, match="has dropout, which is off while sampling"):
        from_nnx(InNnx, "cross_entropy", (X, Y))
    awake = from_nnx(InNnx, "cross_entropy", (X, Y), dropout="on")
    assert np.ptp(iso.sample(awake, iso.sgd(1e-12), num_steps=3, progress=False).energies) > 1e-3
