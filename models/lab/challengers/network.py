"""The network over a drive's film: its parameters, its log odds, and the loss that trains it.

Convolutions of growing reach run over the frames. Their output is pooled (maximum, mean and latest frame). It
is joined with the inputs that are not in the film and with an embedding of the drive's model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from predrain.models.forecast.drive_family import MAKERS
from predrain.models.forecast.hazard import INTERVALS
from predrain.models.lab.challengers.drive_film import CHANNELS

if TYPE_CHECKING:
    import jax

WIDTH: Final = 24
REACH: Final = (1, 2, 4)
"""Distance in frames between the three taps of each convolution."""
STILL: Final = 3 + len(MAKERS)
"""Number of inputs outside the film: age, whether it is known, the family's rate, the maker."""
EMBEDDED: Final = 6
DROPPED: Final = 0.15
"""Share of the units that drop out during training."""

Parameters = dict[str, Any]


def initialize_parameters(rng: np.random.Generator, families: int, hazard: NDArray[np.float64]) -> Parameters:
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


def compute_network_logits(
    p: Parameters, film: jax.Array, still: jax.Array, family: jax.Array, key: jax.Array | None = None
) -> jax.Array:
    """Compute log odds of the hazards: (pairs, INTERVALS). key: random key of the dropout, only during training."""
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


def compute_network_loss(
    p: Parameters,
    key: jax.Array,
    film: jax.Array,
    still: jax.Array,
    family: jax.Array,
    dies: jax.Array,
    weight: jax.Array,
) -> jax.Array:
    import jax.numpy as jnp

    odds = compute_network_logits(p, film, still, family, key)
    each = jnp.maximum(odds, 0.0) - odds * dies + jnp.log1p(jnp.exp(-jnp.abs(odds)))
    return jnp.sum(weight * each) / weight.shape[0]
