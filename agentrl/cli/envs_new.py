"""Writes a first environment that runs: a module to change, and a prompt beside it."""

from pathlib import Path

from agentrl.cli.terminal import say
from agentrl.errors import AgentRLError

MODULE = '''"""{title}: reach the number that is asked for by saying up or down. Change it into what you need."""

import gymnasium

from agentrl.env import TextEnv
from agentrl.tasks import TaskSet, manifest_sha256

TASKS = {{"train": ["1", "2", "3"], "test": ["4", "5"]}}


class {title}(TextEnv):
    """Count up or down to a number."""

    splits = {{"train": "train", "test": "out_of_distribution"}}
    inline = True  # a step takes microseconds

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.goal = int((options or {{}}).get("task_id") or self.np_random.choice(TASKS["train"]))
        self.at = 0
        return f"You are at 0. Reach {{self.goal}}.", {{"admissible_actions": ["down", "up"]}}

    def step(self, action):
        self.at += {{"up": 1, "down": -1}}.get(action, 0)
        won = self.at == self.goal
        info = {{"admissible_actions": ["down", "up"], "success": won, "inadmissible": action not in ("up", "down")}}
        return f"You are at {{self.at}}.", float(won), won, False, info

    def task_set(self, split):
        self.check_split(split)
        return TaskSet(split, TASKS[split], manifest_sha256(TASKS[split]))

    def expert(self, seed, *, noise=0.0):
        return lambda observation, info: "up"


gymnasium.register("me/{title}-v0", entry_point=f"{{__name__}}:{title}", max_episode_steps=10)
'''

PROMPT = """---
history: append
answer: tag
---
## system
You count. Each turn, answer with <action>up</action> or <action>down</action>.

## turn
{observation}
Your actions: {admissible_actions}
"""


def scaffold(name: str) -> None:
    """Writes NAME.py and NAME.md into the working folder and says how to go on.

    Raises:
        AgentRLError: the name is no module's, or there is such a file.
    """
    if not name.isidentifier() or not name.islower():
        raise AgentRLError(f"envs new {name}: not the name of a module; use lower-case letters and _, such as my_env")
    title = "".join(part.capitalize() for part in name.split("_"))
    files = {Path(f"{name}.py"): MODULE.format(title=title), Path(f"{name}.md"): PROMPT}
    if there := [str(path) for path in files if path.exists()]:
        raise AgentRLError(f"envs new {name}: {' and '.join(there)} exists; choose another name")
    for path, text in files.items():
        path.write_text(text, encoding="utf-8")
    id = f"{name}:me/{title}-v0"
    say(f"Wrote {' and '.join(map(str, files))}. It runs as it is:\n")
    say(f"  agentrl play {id}")
    say(f"  agentrl envs check {id}")
    say(f'\nTo train in it, from this folder:\n\n  env: {{id: "{id}", prompt: {name}.md}}')
