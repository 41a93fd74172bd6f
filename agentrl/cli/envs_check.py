"""Prints what the checks of an environment found, and what a person should fix."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentrl.cli.terminal import as_json, say
from agentrl.errors import DataError, NotFound

if TYPE_CHECKING:
    from agentrl.env import TextEnv

MARKS = {"ok": "ok  ", "advice": "!   ", "failed": "FAIL", "none": "-   "}
STYLES = {"ok": "green", "advice": "yellow", "failed": "bold red", "none": "dim"}


def check(
    id: str, options: dict[str, Any], *, num_episodes: int, timeout_s: float, tokenizer: str | None, as_data: bool
) -> int:
    """Prints what was tried and what came of it; gives the exit code, 1 when something failed."""
    from agentrl.env import make, text_env
    from agentrl.evaluation.env_check.abuse import ABUSE
    from agentrl.evaluation.env_check.contract import CONTRACT
    from agentrl.evaluation.env_check.findings import all_tried
    from agentrl.evaluation.env_check.players import PLAYERS
    from agentrl.evaluation.env_check.subject import Subject

    _check_data(text_env(make(id, **options)))
    counter = _counter(tokenizer) if tokenizer else None
    subject = Subject(lambda: make(id, **options), num_episodes, timeout_s, counter)
    findings = all_tried([*CONTRACT, *ABUSE, *PLAYERS], subject)
    subject.close()
    failed = any(one.outcome == "failed" for one in findings)
    if as_data:
        as_json({"id": id, "options": options, "passed": not failed, "checks": [asdict(one) for one in findings]})
        return int(failed)
    say(id, style="bold cyan")
    for one in findings:
        say(f"  {MARKS[one.outcome]}  {one.check:<41}  {one.told}", style=STYLES[one.outcome])
        if one.fix:
            say(f"        what to do: {one.fix}", style=STYLES[one.outcome])
    return int(failed)


def _check_data(env: "TextEnv") -> None:
    """Passes if the environment's data is there.

    Raises:
        DataError: it is not, which is the user's to mend and no finding.
    """
    for split in env.splits:
        try:
            env.task_set(split)
        except DataError:
            raise
        except Exception:  # a finding of the checks to come
            return


def _counter(tokenizer: str) -> Callable[[str], int]:
    """Gives what counts the tokens of a text, by the tokenizer of a shipped model, a folder or a hub id."""
    from transformers import AutoTokenizer

    from agentrl import resources

    try:
        place = tokenizer if Path(tokenizer).is_dir() or "/" in tokenizer else resources.model_path(tokenizer)
        loaded = AutoTokenizer.from_pretrained(place)
    except OSError as error:
        raise NotFound(f"--tokenizer {tokenizer}: cannot be loaded: {error}") from error
    return lambda text: len(loaded.encode(text, add_special_tokens=False))
