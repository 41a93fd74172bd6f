"""The entry point: finds the verb, reads its arguments, and turns mistakes into messages."""

import importlib
import logging
import os
import shlex
import sys
import traceback
import warnings
from collections.abc import Sequence
from itertools import takewhile

from agentrl import __version__
from agentrl.cli.parser import Parser
from agentrl.errors import AgentRLError, did_you_mean

VERBS = {
    "train": "train a policy by reinforcement learning",
    "sft": "warm a policy up on demonstrations",
    "eval": "measure a policy, an expert or a random player",
    "compare": "pair two evaluations, task by task",
    "rollout": "play episodes and keep them, without learning",
    "serve": "start a vLLM server for engine.url",
    "play": "be the policy yourself",
    "view": "read what a policy saw and did",
    "report": "write one HTML file about a run, or a comparison of several",
    "envs": "list, show, check and scaffold environments",
    "algorithms": "list and show algorithms",
    "config": "show, validate, compare and explain configurations",
    "bench": "measure speed on fixed workloads",
    "doctor": "show what is installed, found and missing",
}
"""Every verb and what it does; its code is in the file of its name."""

ENVIRONMENT = {
    # OpenMP's threads spin while they wait for work. When another process takes a core, two spinning threads are three
    # times slower than one; threads that sleep cost nothing. Read once, when torch is imported.
    "OMP_WAIT_POLICY": "PASSIVE",
    # Progress bars and advice of others do not belong in our output.
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_VERBOSITY": "error",
    "TRANSFORMERS_NO_ADVISORY_WARNINGS": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    "KINETO_LOG_LEVEL": "99",
    "TRL_EXPERIMENTAL_SILENCE": "1",
    "TORCH_CPP_LOG_LEVEL": "ERROR",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
    # Set, or else tokenizers warns at every fork.
    "TOKENIZERS_PARALLELISM": "false",
}
"""Variables that libraries read, set here alone and only where the user has not."""

HELP = f"""agentrl {__version__}: multi-turn reinforcement learning of language-model agents

usage: agentrl VERB ... [--debug]

{chr(10).join(f"  {verb:<11} {does}" for verb, does in VERBS.items())}

'agentrl VERB --help' tells more. A mistake is told in a line; --debug adds the traceback.

example:
  agentrl train quickstart
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Gives the exit code: 0, 2 for a user's mistake, 130 for Ctrl-C."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    _prepare_process()
    try:
        return _run(arguments)
    except AgentRLError as error:
        if "--debug" in arguments:
            traceback.print_exc()
        print(f"agentrl: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read our output has enough. Python flushes at exit and must not fail there again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141


def _prepare_process() -> None:
    """Sets what is the process's: environment variables, the module path, what is said beside the output."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())  # `env: {id: "my_env:me/MyEnv-v0"}` means a module of the working folder
    warnings.filterwarnings("ignore", category=FutureWarning)  # what libraries tell one another
    logging.getLogger("torch._library.triton").setLevel(logging.ERROR)
    for package in ("agentrl", "agentrl_envs"):
        log = logging.getLogger(package)
        log.setLevel(logging.INFO)
        log.handlers[:] = [logging.StreamHandler()]


def _run(arguments: list[str]) -> int:
    options = list(takewhile(lambda argument: argument.startswith("-"), arguments))
    if "--version" in options:
        print(f"agentrl {__version__}")
        return 0
    if "--help" in options or "-h" in options or not arguments:
        print(HELP, end="")
        return 0 if arguments else 2
    if unknown := [option for option in options if option != "--debug"]:
        raise AgentRLError(f"no option {unknown[0]} before the verb; 'agentrl --help' lists the verbs")
    verb, *rest = [argument for argument in arguments if argument != "--debug"] or ["(none)"]
    if verb not in VERBS:
        hint = did_you_mean(verb, VERBS)
        raise AgentRLError(f"no verb '{verb}'.{hint} There are: {', '.join(VERBS)}; 'agentrl --help' says what they do")
    module = importlib.import_module(f"agentrl.cli.{verb}")
    parser = Parser(prog=f"agentrl {verb}", description=module.__doc__, example=module.EXAMPLE)
    parser.add_argument("--debug", action="store_true", help="show the traceback of a mistake")
    module.add_arguments(parser)
    parsed = parser.parse(rest)
    parsed.command = shlex.join(["agentrl", *arguments])
    code: int = module.run(parsed)
    sys.stdout.flush()  # a broken pipe must show here, not at exit
    return code
