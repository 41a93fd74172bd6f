"""An engine that says what it is told: for tests and for replaying known answers."""

from collections.abc import Callable, Iterable, Sequence

from torch import Tensor
from transformers import PreTrainedModel

from agentrl.config.engine import EngineConfig
from agentrl.engines._base import Completion, SamplingParams
from agentrl.errors import ConfigError


class ScriptedEngine:
    """Answers every prompt with `script(prompt_ids, seed)`, cut as sampling would be, at log-probability `logprob`."""

    def __init__(self, script: Callable[[Sequence[int], int], Sequence[int]], *, logprob: float = -1.0) -> None:
        self._script = script
        self._logprob = logprob
        self._version = 0

    @classmethod
    def start(cls, model: PreTrainedModel, settings: EngineConfig) -> "ScriptedEngine":
        """Refuses: a configuration has no script.

        Raises:
            ConfigError: always.
        """
        del model
        raise ConfigError(f"engine.name: {settings.name} answers from a script, in tests; use hf or vllm")

    async def generate(self, prompt_ids: Sequence[int], params: SamplingParams, *, seed: int) -> Completion:
        """Gives the scripted answer."""
        script = tuple(self._script(prompt_ids, seed))[: params.max_tokens]
        stop = next((place for place, token in enumerate(script) if token in params.stop_ids), None)
        ids = script if stop is None else script[: stop + 1]
        return Completion(ids, (self._logprob,) * len(ids), "length" if stop is None else "stop", self._version)

    def load_weights(self, weights: Iterable[tuple[str, Tensor]], *, version: int) -> None:
        """Takes note of the version only."""
        del weights
        self._version = version

    def score(self, ids: Sequence[int]) -> tuple[float, ...]:
        """Gives `logprob` for each."""
        return (self._logprob,) * (len(ids) - 1)

    def sleep(self) -> None:
        """Holds nothing."""

    def close(self) -> None:
        """Holds nothing."""
