"""Every mistake that is a user's to mend, as one tree.

AgentRLError
├── ConfigError      a configuration file, key or combination
├── NotFound         a name that no algorithm, engine, environment, file ... has
├── DataError        a data set that is missing, incomplete or changed
├── MissingExtra     an optional package that is not installed
├── EnvError         an environment that crashed, hung or broke its contract
└── EndpointError    a server of models that refuses, fails or answers nonsense

A message reads "where: what is wrong; what to do". The command line prints it alone, without a traceback.
"""

import difflib
from collections.abc import Iterable


class AgentRLError(Exception):
    """A mistake outside the program: the message says where, what and what to do."""


class ConfigError(AgentRLError):
    """A configuration that cannot run; the message lists every problem found."""


class NotFound(AgentRLError):
    """A name that nothing answers to."""


class DataError(AgentRLError):
    """Data that are missing, incomplete or not what their manifest says."""


class MissingExtra(AgentRLError):
    """An optional package that a chosen feature needs."""

    def __init__(self, feature: str, extra: str, *, or_else: str = "") -> None:
        super().__init__(
            f"{feature} needs an optional package; install it with: pip install 'agentrl-multiturn[{extra}]'{or_else}"
        )


class EnvError(AgentRLError):
    """An environment that crashed, hung or broke its contract."""


class EndpointError(AgentRLError):
    """A server of models that refuses, fails or answers nonsense."""


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Gives " Did you mean 'x'?" for the nearest of `names`, or an empty string when none is near."""
    near = difflib.get_close_matches(name, list(names), n=1, cutoff=0.6)
    return f" Did you mean '{near[0]}'?" if near else ""
