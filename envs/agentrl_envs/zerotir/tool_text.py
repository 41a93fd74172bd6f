"""What a policy reads of a call's result: short, and never silent."""

import re

from agentrl_envs.zerotir.sandbox import Limits, Result

NO_OUTPUT = "no output (did you forget print?)"
NO_CALLS_LEFT = "no more code calls; give the final answer"
_PIECE = re.compile(r"[^\W\d_]{1,4}|\d|[^\w\s]|_+|\s+")
"""About a token of a usual vocabulary: up to four letters, one digit, one sign, or the space between."""


def tell(result: Result, limits: Limits, *, max_tokens: int) -> str:
    """Gives the text for a result: what was printed, then what went wrong.

    Args:
        result: of the call.
        limits: within which it ran.
        max_tokens: cut what was printed to about this many tokens.
    """
    printed = result.stdout.rstrip()
    parts = [cut(printed, max_tokens)] if printed else []
    match result.status:
        case "ok" if not printed:
            parts.append(cut(result.stderr.rstrip(), max_tokens) or NO_OUTPUT)
        case "error":
            parts.append(cut(result.stderr.rstrip(), max_tokens) or "the program ended with an error status")
        case "timeout":
            parts.append(f"timed out after {limits.wall_s:g} s")
        case "cpu_limit":
            parts.append(f"stopped after {limits.cpu_s} s of CPU time")
        case "output_limit":
            parts.append(f"stopped: more than {limits.output_bytes} bytes of output")
        case "killed":
            parts.append(result.stderr.strip() if result.signal is None else f"killed by signal {result.signal}")
        case _:
            pass
    return "\n".join(parts)


def cut(text: str, max_tokens: int) -> str:
    """Gives the head and the tail of a text of more than about `max_tokens` tokens, and says how much is missing.

    An environment has no tokenizer; tokens are estimated, for code and numbers rather too many than too few.
    """
    places = [match.start() for match in _PIECE.finditer(text)]
    if len(places) <= max_tokens:
        return text
    head, tail = (max_tokens + 1) // 2, max_tokens // 2
    end = places[len(places) - tail] if tail else len(text)
    return f"{text[: places[head]]}\n... {len(places) - max_tokens} tokens left out ...\n{text[end:]}"
