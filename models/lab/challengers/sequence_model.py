"""A sequence model: a small neural network that reads a drive's film, where the recipe reads features.

The network learns from the recipe's landmarks, with the same weights, by the likelihood of a censored life.
Models that are rare or new share one embedding. JAX runs it on a CPU; the same seed gives the same network.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from predrain.data.refusal import Refusal
from predrain.features.feature_schema import NAMES_IN_ORDER, POSITION
from predrain.models.forecast.drive_family import MAKERS
from predrain.models.forecast.hazard import INTERVALS, compute_failure_probabilities, person_periods
from predrain.models.lab.challengers.cross_fitting import Forecaster
from predrain.models.lab.challengers.network import (
    Parameters,
    compute_network_logits,
    compute_network_loss,
    initialize_parameters,
)
from predrain.models.lab.challengers.person_periods import JUDGED
from predrain.models.lab.challengers.training_rows import Tell, TrainingRows, TrainingView

if TYPE_CHECKING:
    import jax

COMMON: Final = 500
"""Number of landmarks from which on a model has an embedding of its own."""
FORGOTTEN: Final = 0.1
"""Share of landmarks whose model is hidden during training, so that the shared embedding is trained, too."""
BATCH: Final = 512
EPOCHS: Final = 4
SMALL_BATCH: Final = 64
STEPS_AT_LEAST: Final = 240
"""Smallest number of training steps. Small fleets reach it by smaller batches and more epochs."""
SPEED: Final = 2e-3
"""Highest learning rate."""
DECAY: Final = 1e-3
PASS: Final = 8192
"""Pairs in one forward pass. The last pass is padded, so that the network is compiled once."""


class NoNeuralNetworks(Refusal):
    """JAX and optax are not installed."""


@dataclass(frozen=True, slots=True)
class _Given:
    """The inputs of the network for each pair."""

    film: NDArray[np.float16]
    still: NDArray[np.float32]
    """(pairs, STILL) age, whether it is known, the family's rate, the maker."""
    family: NDArray[np.int32]
    """(pairs,) number of the embedding of the drive's model; 0 is the shared one."""


@dataclass(frozen=True, slots=True)
class _Engine:
    """The functions of the network, compiled once in a process."""

    begin: Callable[[Parameters], Any]
    step: Callable[..., tuple[Parameters, Any, Any]]
    """(parameters, state, key, rate, batch) -> parameters, state, loss"""
    forward: Callable[..., Any]


@cache
def _compile_engine() -> _Engine:
    import jax
    import optax

    adam = optax.chain(
        optax.clip_by_global_norm(1.0), optax.scale_by_adam(), optax.add_decayed_weights(DECAY)
    )

    @jax.jit
    def step(
        parameters: Parameters, state: Any, key: jax.Array, rate: jax.Array, batch: tuple[Any, ...]
    ) -> tuple[Parameters, Any, Any]:
        lost, slope = jax.value_and_grad(compute_network_loss)(parameters, key, *batch)
        change, state = adam.update(slope, state, parameters)
        return jax.tree.map(lambda old, by: old - rate * by, parameters, change), state, lost

    return _Engine(adam.init, step, jax.jit(compute_network_logits))


def require_jax() -> None:
    """Check that JAX and optax are installed, before any work is done. Raises NoNeuralNetworks."""
    try:
        importlib.import_module("jax")
        importlib.import_module("optax")
    except ImportError:
        raise NoNeuralNetworks(
            "The sequence model needs JAX; pip install 'predrain[neural]', or leave it out."
        ) from None


def train_sequence_model(lessons: TrainingRows, seed: int, _threads: int, tell: Tell) -> Forecaster:
    """Train the network. Raises NoNeuralNetworks."""
    require_jax()
    import jax
    import optax

    names, count = np.unique(lessons.landmarks.model.astype(str), return_counts=True)
    embeddings = {str(name): place + 1 for place, name in enumerate(names[count >= COMMON])}
    given = _build_network_input(lessons.sight, embeddings)
    dies, weight = _build_targets(lessons)
    rng = np.random.default_rng(seed)
    hazard = (dies * weight).sum(axis=0) / np.maximum(weight.sum(axis=0), 1.0)
    parameters = initialize_parameters(rng, len(embeddings) + 1, np.clip(hazard, 1e-6, 0.5))
    size = BATCH if len(dies) >= 8 * BATCH else SMALL_BATCH
    batches = max(1, len(dies) // size)
    epochs = max(EPOCHS, STEPS_AT_LEAST // batches)
    speed = optax.warmup_cosine_decay_schedule(0.0, SPEED, batches // 2, batches * epochs)
    engine = _compile_engine()
    state = engine.begin(parameters)
    key = jax.random.key(seed)
    for epoch in range(epochs):
        order = rng.permutation(len(dies))
        hidden = rng.random(len(dies)) < FORGOTTEN
        family = np.where(hidden, 0, given.family)
        total = 0.0
        for number in range(batches):
            rows = order[number * size : (number + 1) * size]
            key, now = jax.random.split(key)
            batch = (given.film[rows], given.still[rows], family[rows], dies[rows], weight[rows])
            rate = speed(epoch * batches + number)
            parameters, state, lost = engine.step(parameters, state, now, rate, batch)
            total += float(lost)
        tell(f"sequence: epoch {epoch + 1} of {epochs}, loss {total / batches:.4f}")

    def forecast(sight: TrainingView) -> NDArray[np.float64]:
        seen = _build_network_input(sight, embeddings)
        parts = [
            np.asarray(engine.forward(parameters, *_pad_batch(seen, begin)))[: len(sight) - begin]
            for begin in range(0, len(sight), PASS)
        ]
        odds = np.concatenate(parts)[:, :JUDGED].astype(np.float64)
        return compute_failure_probabilities(1.0 / (1.0 + np.exp(-odds)))

    return forecast


def _pad_batch(given: _Given, begin: int) -> tuple[NDArray[Any], ...]:
    parts = (array[begin : begin + PASS] for array in (given.film, given.still, given.family))
    return tuple(np.concatenate([part, _make_zero_rows(part, PASS - len(part))]) for part in parts)


def _make_zero_rows(array: NDArray[Any], rows: int) -> NDArray[Any]:
    """Return `rows` rows of zeros with the shape and type of the rows of `array`."""
    return np.zeros((rows, *array.shape[1:]), dtype=array.dtype)


def _build_network_input(sight: TrainingView, embeddings: Mapping[str, int]) -> _Given:
    hours = sight.x[:, POSITION["hours"]]
    rate, maker = sight.x[:, len(NAMES_IN_ORDER)], sight.x[:, len(NAMES_IN_ORDER) + 1]
    still = np.column_stack(
        [
            np.nan_to_num(hours) / 20_000.0,
            np.isfinite(hours),
            rate + 3.0,
            maker[:, None] == np.arange(len(MAKERS)),
        ]
    )
    names, at = np.unique(sight.model.astype(str), return_inverse=True)
    family = np.array([embeddings.get(str(name), 0) for name in names], dtype=np.int32)
    return _Given(sight.film, still.astype(np.float32), family[at])


def _build_targets(lessons: TrainingRows) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return two arrays (landmarks, INTERVALS): whether a drive dies in the interval, and the weight of that
    as evidence."""
    periods = person_periods(lessons.landmarks)
    dies = np.zeros((len(lessons.landmarks), INTERVALS), dtype=np.float32)
    weight = np.zeros_like(dies)
    dies[periods.landmark, periods.interval] = periods.dies
    weight[periods.landmark, periods.interval] = periods.weight / lessons.landmarks.weight.mean()
    return dies, weight
