"""A small neural network over a drive's film: temporal convolutions, then the hazard of each interval.

Convolutions of growing reach run over the frames; what they found is pooled (the strongest, the mean and the latest)
and joined with the drive's age, its family's rate, and an embedding of its model. It learns from the recipe's
landmarks, weighted alike, by the likelihood of a censored life. Models that are rare or new share one embedding.
JAX runs it on a CPU; the same seed gives the same network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from data.refusal import Refusal
from features.schema import NAMES_IN_ORDER, POSITION
from models.challengers.crossed import Forecaster
from models.challengers.film import CHANNELS
from models.challengers.lessons import Lessons, Sight, Tell
from models.challengers.periods import JUDGED
from models.family import MAKERS
from models.hazard import INTERVALS, failing, person_periods

if TYPE_CHECKING:
    import jax

WIDTH: Final = 24
REACH: Final = (1, 2, 4)
"""Frames between the taps of each convolution, which has three."""
EMBEDDED: Final = 6
COMMON: Final = 500
"""Landmarks from which on a model has an embedding of its own."""
FORGOTTEN: Final = 0.1
"""Share of landmarks whose model is hidden while learning, so that the shared embedding means something."""
BATCH: Final = 512
EPOCHS: Final = 6
SPEED: Final = 2e-3
DROPPED: Final = 0.15

Parameters = dict[str, Any]


class NoNeuralNetworks(Refusal):
    """JAX and optax are not installed."""


@dataclass(frozen=True, slots=True)
class _Given:
    """What the network is given of each pair."""

    film: NDArray[np.float16]
    still: NDArray[np.float32]
    """(pairs, STILL) age, whether it is known, the family's rate, the maker."""
    family: NDArray[np.int32]
    """(pairs,) embedding of its model; 0 is the shared one."""


STILL: Final = 3 + len(MAKERS)


def sequence(lessons: Lessons, seed: int, _threads: int, tell: Tell) -> Forecaster:
    """Train the network. Raises NoNeuralNetworks."""
    try:
        import jax
        import optax
    except ImportError:
        raise NoNeuralNetworks(
            "The sequence model needs JAX; install predrain[neural] or leave it out."
        ) from None
    names, count = np.unique(lessons.landmarks.model.astype(str), return_counts=True)
    embeddings = {str(name): place + 1 for place, name in enumerate(names[count >= COMMON])}
    given = _given(lessons.sight, embeddings)
    dies, weight = _targets(lessons)
    rng = np.random.default_rng(seed)
    hazard = (dies * weight).sum(axis=0) / np.maximum(weight.sum(axis=0), 1.0)
    parameters = _initial(rng, len(embeddings) + 1, np.clip(hazard, 1e-6, 0.5))
    batches = max(1, len(dies) // BATCH)
    optimiser = optax.chain(
        optax.clip_by_global_norm(1.0),
        optax.adamw(
            optax.warmup_cosine_decay_schedule(0.0, SPEED, batches // 2, batches * EPOCHS), weight_decay=1e-3
        ),
    )
    state = optimiser.init(parameters)

    @jax.jit
    def step(
        parameters: Parameters, state: Any, key: jax.Array, batch: tuple[Any, ...]
    ) -> tuple[Any, Any, Any]:
        loss, slope = jax.value_and_grad(_loss)(parameters, key, *batch)
        change, state = optimiser.update(slope, state, parameters)
        return optax.apply_updates(parameters, change), state, loss

    key = jax.random.key(seed)
    for epoch in range(EPOCHS):
        order = rng.permutation(len(dies))
        hidden = rng.random(len(dies)) < FORGOTTEN
        family = np.where(hidden, 0, given.family)
        total = 0.0
        for number in range(batches):
            rows = order[number * BATCH : (number + 1) * BATCH]
            key, now = jax.random.split(key)
            batch = (given.film[rows], given.still[rows], family[rows], dies[rows], weight[rows])
            parameters, state, loss = step(parameters, state, now, batch)
            total += float(loss)
        tell(f"sequence: epoch {epoch + 1} of {EPOCHS}, loss {total / batches:.4f}")
    forward = jax.jit(_logits)

    def forecast(sight: Sight) -> NDArray[np.float64]:
        seen = _given(sight, embeddings)
        parts = [
            np.asarray(forward(parameters, *_padded(seen, begin)))[: len(sight) - begin]
            for begin in range(0, len(sight), _PASS)
        ]
        logits = np.concatenate(parts) if parts else np.empty((0, INTERVALS))
        return failing(1.0 / (1.0 + np.exp(-logits[:, :JUDGED].astype(np.float64))))

    return forecast


_PASS: Final = 8192
"""Pairs in one forward pass; the last is padded, so that the network is compiled once."""


def _padded(given: _Given, begin: int) -> tuple[NDArray[Any], ...]:
    parts = (array[begin : begin + _PASS] for array in (given.film, given.still, given.family))
    return tuple(np.pad(part, [(0, _PASS - len(part))] + [(0, 0)] * (part.ndim - 1)) for part in parts)


def _given(sight: Sight, embeddings: Mapping[str, int]) -> _Given:
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


def _targets(lessons: Lessons) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """(landmarks, INTERVALS) each: whether it dies in the interval, and how much that is worth as evidence."""
    periods = person_periods(lessons.landmarks)
    dies = np.zeros((len(lessons.landmarks), INTERVALS), dtype=np.float32)
    weight = np.zeros_like(dies)
    dies[periods.landmark, periods.interval] = periods.dies
    weight[periods.landmark, periods.interval] = periods.weight / lessons.landmarks.weight.mean()
    return dies, weight


def _initial(rng: np.random.Generator, families: int, hazard: NDArray[np.float64]) -> Parameters:
    def dense(inward: int, outward: int, scale: float = 1.0) -> NDArray[np.float32]:
        drawn = rng.standard_normal((inward, outward)) * scale * np.sqrt(2.0 / inward)
        return np.asarray(drawn, dtype=np.float32)

    joined = 3 * WIDTH + STILL + EMBEDDED
    return {
        "enter": dense(CHANNELS, WIDTH),
        "enter_bias": np.zeros(WIDTH, np.float32),
        "conv": [dense(3 * WIDTH, WIDTH, 0.5) for _ in REACH],
        "conv_bias": [np.zeros(WIDTH, np.float32) for _ in REACH],
        "family": (0.1 * rng.standard_normal((families, EMBEDDED))).astype(np.float32),
        "join": dense(joined, 2 * WIDTH),
        "join_bias": np.zeros(2 * WIDTH, np.float32),
        "leave": dense(2 * WIDTH, INTERVALS, 0.1),
        "leave_bias": np.log(hazard / (1.0 - hazard)).astype(np.float32),
    }


def _logits(
    p: Parameters, film: jax.Array, still: jax.Array, family: jax.Array, key: jax.Array | None = None
) -> jax.Array:
    """(pairs, INTERVALS) log odds of the hazards. key: of the chance by which units drop out, while learning."""
    import jax
    import jax.numpy as jnp

    def dropped(values: jax.Array, number: int) -> jax.Array:
        if key is None:
            return values
        stays = jax.random.bernoulli(jax.random.fold_in(key, number), 1.0 - DROPPED, values.shape)
        return jnp.where(stays, values / (1.0 - DROPPED), 0.0)

    frames = jax.nn.gelu(film.astype(jnp.float32) @ p["enter"] + p["enter_bias"])
    for reach, weights, bias in zip(REACH, p["conv"], p["conv_bias"], strict=True):
        padded = jnp.pad(frames, ((0, 0), (reach, reach), (0, 0)))
        taps = jnp.concatenate([padded[:, : -2 * reach], frames, padded[:, 2 * reach :]], axis=2)
        frames = frames + jax.nn.gelu(taps @ weights + bias)
    pooled = [frames.max(axis=1), frames.mean(axis=1), frames[:, -1], still, p["family"][family]]
    found = jax.nn.gelu(dropped(jnp.concatenate(pooled, axis=1), 0) @ p["join"] + p["join_bias"])
    return jnp.asarray(dropped(found, 1) @ p["leave"] + p["leave_bias"])


def _loss(
    p: Parameters,
    key: jax.Array,
    film: jax.Array,
    still: jax.Array,
    family: jax.Array,
    dies: jax.Array,
    weight: jax.Array,
) -> jax.Array:
    import jax.numpy as jnp

    logits = _logits(p, film, still, family, key)
    each = jnp.maximum(logits, 0.0) - logits * dies + jnp.log1p(jnp.exp(-jnp.abs(logits)))
    return jnp.sum(weight * each) / weight.shape[0]
