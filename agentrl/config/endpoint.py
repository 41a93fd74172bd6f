"""A server of models that is evaluated and never trained."""

from typing import Annotated, Literal

from pydantic import Field, PositiveFloat, PositiveInt

from agentrl.config.section import Section


class EndpointConfig(Section):
    """A server of OpenAI's chat completions that `agentrl eval --policy endpoint` plays with. Nothing trains on it."""

    url: str
    """Base of the server, e.g. http://localhost:8000/v1. Required; --url sets it too."""
    model: str
    """The server's name of the model. Required; --model sets it too."""
    key_env: str = "OPENAI_API_KEY"
    """Environment variable that holds the key; OPENAI_API_KEY by default. Unset, no key is sent. Keys stand nowhere
    else: neither in files nor in what is printed."""
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Smallest share of probability that is sampled from; 1, all of it, by default."""
    stop: tuple[str, ...] = ()
    """Texts at which an answer ends. None by default."""
    limit_key: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """What the server calls engine.max_tokens; max_tokens by default. Newer models of OpenAI take the longer name."""
    concurrency: PositiveInt = 16
    """Requests at a time; 16 by default, within the limits of most servers."""
    timeout_s: PositiveFloat = 120.0
    """Seconds of silence after which a request is lost and made again; 120 by default, room for a long answer."""
    max_tries: PositiveInt = 6
    """How often a request is made that fails in a way that may pass; 6 by default, waiting half a minute in all."""
