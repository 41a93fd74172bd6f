r"""Is a mathematical answer right? Exact text and integers at once, everything else in the sandbox, remembered."""

import json
import re
import threading
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from agentrl.errors import EnvError, MissingExtra
from agentrl_envs.zerotir.boxes import as_integer
from agentrl_envs.zerotir.sandbox import CodeRunner, Result

PRELOAD = ("sympy", "math_verify")
"""What the sandbox of a judge loads."""
_WALL_S = 3.0  # a verdict takes 0.1 s at most, unless it never ends
_MAX_REMEMBERED = 1 << 16
_SAME = (
    (re.compile(r"\\(?:left|right|displaystyle|!|,|;|:)(?![a-zA-Z])|\\ |[\s$]"), ""),
    (re.compile(r"\\[dt]frac(?![a-zA-Z])"), r"\\frac"),
    (re.compile(r"\.$"), ""),
)


class GradingFailed(EnvError):
    """The verifier broke: the episode gets no reward at all, and is not trained on."""


class MathJudge:
    """Compares answers. Safe to share between threads."""

    def __init__(self, runner: CodeRunner) -> None:
        """Makes a judge.

        Args:
            runner: a sandbox that has loaded `PRELOAD`.
        """
        self._runner = runner
        self._lock = threading.Lock()
        self._remembered: dict[tuple[str, str], bool] = {}

    def is_right(self, gold: str, answer: str) -> bool:
        """Tells whether an answer equals the right one; both as they stand in a box.

        Raises:
            GradingFailed: the verifier broke, twice.
            SandboxDied: the sandbox did.
        """
        if (quick := quick_verdict(gold, answer)) is not None:
            return quick
        with self._lock:
            known = self._remembered.get((gold, answer))
        if known is None:
            known = self._verify(gold, answer)
            with self._lock:
                if len(self._remembered) >= _MAX_REMEMBERED:
                    self._remembered.pop(next(iter(self._remembered)))
                self._remembered[gold, answer] = known
        return known

    def _verify(self, gold: str, answer: str) -> bool:
        code = f"{_verifier()}\nimport json\nprint(json.dumps(verdict({gold!r}, {answer!r})))"
        result = self._runner.run(code, wall_s=_WALL_S)
        if result.status != "ok":
            result = self._runner.run(code, wall_s=2 * _WALL_S)  # perhaps the machine was busy
        return _read(result)


def quick_verdict(gold: str, answer: str) -> bool | None:
    """Tells whether an answer is right where no algebra is needed; None where it is."""
    if _plain(gold) == _plain(answer):
        return True
    integers = as_integer(gold), as_integer(answer)
    return None if None in integers else integers[0] == integers[1]


def _read(result: Result) -> bool:
    if result.status in ("timeout", "cpu_limit", "killed"):
        return False  # an answer that cannot be evaluated within the limits is not the right one
    told = result.stdout.splitlines()
    if result.status != "ok" or not told:
        raise GradingFailed(f"the verifier ended with {result.status}: {result.stderr.strip()[-500:]}")
    return json.loads(told[-1]) is True


def _plain(text: str) -> str:
    for pattern, replacement in _SAME:
        text = pattern.sub(replacement, text)
    return text


@cache
def _verifier() -> str:
    if find_spec("math_verify") is None:
        raise MissingExtra("grading by math-verify", "zerotir")
    return Path(__file__).with_name("verdict.py").read_text(encoding="utf-8")
