"""Cuts an action's text into its tokens, so that each can be shown with its log-probability."""

from pathlib import Path

from agentrl.trajectory import Turn


class TokenTexts:
    """Knows the text of every token id of one tokenizer.json."""

    def __init__(self, path: Path) -> None:
        from tokenizers import Tokenizer  # comes with transformers; loads in milliseconds, without torch

        self.tokenizer = Tokenizer.from_file(str(path))

    def cut(self, turn: Turn) -> list[tuple[str, float]] | None:
        """Gives (text, log-prob in nats) pieces that join to the action; None if the ids do not spell its text.

        White space belongs to the token after it. A token without text of its own, such as the end of turn or half of
        a character, is left out, and its text, if any, goes to the next one.
        """
        pieces: list[tuple[str, float]] = []
        start = 0
        for token, logprob in zip(turn.action_ids, turn.action_logprobs, strict=False):  # demonstrations have none
            text = self.tokenizer.decode([token], skip_special_tokens=True).strip()
            at = turn.action.find(text, start) if text else -1
            if at >= 0:
                pieces.append((turn.action[start : at + len(text)], logprob))
                start = at + len(text)
        if not pieces or turn.action[start:].strip():
            return None
        last, logprob = pieces[-1]
        return [*pieces[:-1], (last + turn.action[start:], logprob)]
