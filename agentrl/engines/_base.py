"""What an engine is: it continues token sequences and says how probable each of its tokens was."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

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


@runtime_checkable
class RolloutEngine(Protocol):
    """A sampler that many episodes wait on at once; equal seeds give equal tokens whatever else is being sampled.

    A class that a configuration may name also has a classmethod `start(model, settings)`, which gives an engine with a
    copy of the weights of `model`; `settings` are the section `engine` of the configuration.
    """

    async def generate(self, prompt_ids: Sequence[int], params: SamplingParams, *, seed: int) -> Completion:
        """Gives a continuation of `prompt_ids`."""
        ...

    def load_weights(self, weights: Iterable[tuple[str, Tensor]], *, version: int) -> None:
        """Takes the policy's weights; later completions carry `version`.

        They are the whole model's, by the names they have in it: a policy with adapters gives them merged.
        """
        ...

    def score(self, ids: Sequence[int]) -> Sequence[float]:
        """Gives the log-probability, in nats at temperature 1, of each id after the first, given those before it."""
        ...

    def sleep(self) -> None:
        """May give memory to the trainer until the next `load_weights`; nothing is asked of it in between."""
        ...

    def close(self) -> None:
        """Frees what the engine holds."""
        ...
