"""The section `engine`: what samples the policy's tokens."""

import re
from typing import Annotated, Any, Literal

from pydantic import Field, PositiveFloat, PositiveInt

from agentrl import registry
from agentrl.config.section import Section, found_by

EngineName = Annotated[str, found_by(lambda name: registry.require("engines", name))]


class EngineConfig(Section):
    """What samples the policy's tokens."""

    name: EngineName = "hf"
    """Engine; `hf` is the default as it runs anywhere, on a copy of the trained weights. `vllm` is faster."""
    temperature: PositiveFloat = 1.0
    """Sampling temperature. 1, the default, samples the very distribution that is trained."""
    max_tokens: PositiveInt = 512
    """Tokens a turn may have; 512 by default, room for a short thought and an action."""
    context_tokens: PositiveInt = 8192
    """Tokens a prompt and its turn may have together; an episode that has no room left ends as context_full. 8192 by
    default, some 30 turns of ALFWorld."""
    url: str | None = None
    """A server that `agentrl serve` has started, e.g. http://127.0.0.1:8000, for engine vllm. None, the default,
    samples in this process."""
    dtype: Literal["float32", "bfloat16"] | None = None
    """Type of the engine's weights. None, the default: model.dtype, so that engine and trainer agree."""
    cache_gib: PositiveFloat | None = None
    """Memory of vLLM's keys and values in GiB. None, the default: 1 on a CPU, a quarter of a GPU. For engine vllm."""
    sleep: bool = False
    """Give vLLM's GPU memory to the trainer while it learns; False by default, as it costs seconds a step. For engine
    vllm in this process; vLLM has no sleep on CPUs."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Further engine arguments of vLLM, e.g. {max_num_seqs: 128}. None by default. For engine vllm in this process."""
    canary_tolerance: PositiveFloat | None = None
    """Mean difference in nats between the log-probabilities of engine and trainer that stops a run after weights were
    synced. None, the default: 0.001, or 0.3 where either computes in bfloat16; rounding makes some 0.00001 and 0.06."""

    def problems(self) -> list[tuple[str, str]]:
        """Gives (knob, problem) for what was set without effect; each says what to do."""
        found: list[tuple[str, str]] = []
        if self.url is not None and not re.fullmatch(r"https?://[^/\s]+/?", self.url):
            found.append(("url", f"{self.url!r} is no server's address; write http://HOST:PORT"))
        if self.name == "hf":
            knobs = [name for name in ("url", "cache_gib", "sleep", "options") if getattr(self, name)]
            found += [(knob, "no effect with engine.name: hf; leave it out, or set name: vllm") for knob in knobs]
        elif self.url is not None:
            knobs = [name for name in ("cache_gib", "sleep", "options") if getattr(self, name)]
            problem = "no effect, the server of engine.url has its own; leave it out, and set it where that is started"
            found += [(knob, problem) for knob in knobs]
        return found
