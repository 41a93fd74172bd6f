"""What an engine is: it continues token sequences and says how probable each of its tokens was."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from torch import Tensor


@dataclass(frozen=True)
class SamplingParams:
    """How to sample one turn."""

    temperature: float
    """0 takes the most probable token; its log-probability is then the one at temperature 1."""
    max_tokens: int
    """The most tokens of one turn, the stop token included."""
    stop_ids: frozenset[int]
    """Sampling ends with any of these, which stays in the ids."""
    top_p: float = 1.0
    """Sample from the fewest tokens that are together at least this probable, above 0; log-probabilities are then those
    among them. 1, the default, samples from all; training does, its log-probabilities are of the whole distribution."""


@dataclass(frozen=True)
class Completion:
    """What the engine sampled."""

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    """Log-probability of each id at the sampling temperature, in nats."""
    stopped: Literal["stop", "length"]
    version: int
    """Of the weights that sampled it."""


class RolloutEngine(Protocol):
    """A sampler that many episodes wait on at once; equal seeds give equal tokens whatever else is being sampled."""

    async def generate(self, prompt_ids: Sequence[int], params: SamplingParams, *, seed: int) -> Completion:
        """Gives a continuation of `prompt_ids`."""
        ...

    def load_weights(self, weights: Iterable[tuple[str, Tensor]], *, version: int) -> None:
        """Takes the policy's weights; later completions carry `version`."""
        ...

    def close(self) -> None:
        """Frees what the engine holds."""
        ...
