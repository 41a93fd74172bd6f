"""One YAML file to one frozen, fully checked configuration of a run."""

from agentrl.config.load import Loaded, load_config
from agentrl.config.schema import RunConfig, Section
from agentrl.config.show import diff, dump, explain, show

__all__ = ["Loaded", "RunConfig", "Section", "diff", "dump", "explain", "load_config", "show"]
