"""Checks of what no well-behaved player does: policies write anything, and an environment has to live with it."""

from typing import Any

from agentrl.env import CutAction
from agentrl.errors import EnvError
from agentrl.evaluation.env_check.findings import Check, Told
from agentrl.evaluation.env_check.players import best_player
from agentrl.evaluation.env_check.subject import Subject, any_action

ODD = {
    "nothing": "",
    "blanks": " \n\t",
    "a megabyte": "go " * 350_000,
    "a long line of brackets": "[" * 20_000,
    "other scripts": "去桌子 1 \u202eقلم \U0001f41f\u0301\x00",
    "half a character": "\ud800",
    "None": "None",
    "JSON": '{"action": null}',
    "a template": "{task} %s \\1 <action></action>",
    "a cut answer": CutAction("go to the"),
}
"""Actions that policies do write, by what they are."""


def _odd_actions(subject: Subject) -> Told:
    stage = subject.stage()
    task_id = subject.chosen()[0]
    refused = 0
    for name, action in ODD.items():
        _, info = stage.reset(task_id)
        try:
            _, _, over, info = stage.step(action)
            refused += bool(info.get("inadmissible"))
            if not over:
                stage.step(any_action(info, 1))
        except Exception as error:
            raise EnvError(f"an action of {name}: {type(error).__name__}: {error}") from error
    stage.reset(task_id)
    took = max(stage.step_s)
    told = f"{len(ODD)} actions, {refused} of them refused, at most {1000 * took:.1f} ms"
    return Told(told, {"num_actions": len(ODD), "num_refused": refused, "longest_s": took})


def _after_the_end(subject: Subject) -> Told:
    stage, task_id = subject.stage(), subject.chosen()[0]
    actor = best_player(subject)
    last: dict[str, Any] = {"action": ""}

    def remembering(observation: str, info: Any) -> str:
        last["action"] = actor(observation, info)
        return last["action"]

    played = stage.play(task_id, remembering)
    try:
        _, reward, _, _ = stage.step(last["action"])
    except EnvError as error:
        if "hangs" in str(error):
            raise
        told = Told(f"refused: {error}")
    except Exception as error:  # any refusal will do
        told = Told(f"refused: {type(error).__name__}: {error}")
    else:
        advice = "raise, or pay nothing, when step comes after the end: other collectors than ours may go on"
        told = Told(f"pays {reward:g} again" if reward else "pays nothing more", advice=advice if reward else "")
    again = stage.play(task_id, best_player(subject))
    if again.texts[0] != played.texts[0]:
        raise EnvError(f"task {task_id!r} starts differently after a step beyond its end")
    return told


ABUSE = (
    Check("odd actions do no harm", _odd_actions, "refuse what is no action, and set info['inadmissible']"),
    Check("a step after the end does no harm", _after_the_end, "reset everything in `reset`"),
)
"""In the order in which they are tried."""
