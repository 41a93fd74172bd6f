"""What an environment is: Gymnasium's, with text in and text out, and named tasks."""

import hashlib
import importlib
import importlib.metadata
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Literal

import gymnasium

from agentrl.errors import EnvError, NotFound, did_you_mean
from agentrl.tasks import TaskSet

SplitRole = Literal["train", "in_distribution", "out_of_distribution"]
Actor = Callable[[str, Mapping[str, Any]], str]
"""A player that is not a language model: (observation, info) -> action."""


class CutAction(str):
    """An action whose end is missing: the policy ran into the token limit while it wrote. Otherwise a string."""


class AnyText(gymnasium.Space[str]):
    """Every string; Gymnasium's own Text space wants a list of allowed characters."""

    def __init__(self) -> None:
        super().__init__((), str)

    def contains(self, x: Any) -> bool:
        """Whether `x` is a string."""
        return isinstance(x, str)

    def sample(self, mask: Any | None = None, probability: Any | None = None) -> str:
        """Gives a short word of lower-case letters."""
        del mask, probability
        letters = self.np_random.integers(97, 123, size=int(self.np_random.integers(1, 9)))
        return "".join(map(chr, letters))

    @property
    def is_np_flattenable(self) -> bool:
        """Text has no array form."""
        return False


class TextEnv(gymnasium.Env[str, str]):
    """A text environment: Gymnasium's `reset` and `step` with strings, and a set of named tasks for each split.

    `reset(options={"task_id": id})` plays that task; without it the seed picks one. The limit on turns is Gymnasium's
    `max_episode_steps`. Standard keys of `info`, all optional: `task_id`, `task` (the goal in words), `task_type`,
    `admissible_actions` (sorted list), `success` (bool), `inadmissible` (bool, the last action was not accepted).

    `step` gets a `CutAction`, which is a string, where the token limit cut the policy's answer off.
    """

    splits: Mapping[str, SplitRole] = MappingProxyType({})
    """Names of the splits and what each is for."""
    task_types: tuple[str, ...] = ()
    """The values that `info["task_type"]` may have, where they are few; none are stated by default."""
    inline: bool = False
    """True when a step takes microseconds and may run on the event loop; otherwise steps run in threads."""
    reports: tuple[str, ...] = ()
    """Keys of a step's `info` that are kept and logged: flags, as `rollout/<key>_frac` of all turns, and numbers of the
    turn, as `rollout/<key>`, their sum over an episode. None by default; a key may be missing where it says nothing."""
    random_bound: float | None = None
    """The largest share of episodes that a random player should win, 0 to 1; `agentrl envs check` holds it against one.
    None, the default, states none."""

    def __init__(self) -> None:
        self.observation_space = AnyText()
        self.action_space = AnyText()

    def task_set(self, split: str) -> TaskSet:
        """Gives the tasks of a split."""
        raise NotImplementedError

    def asked_task(self, options: Mapping[str, Any] | None, *, split: str = "train") -> str:
        """Gives the id that `options["task_id"]` of a reset names, or one one of the split at random."""
        task_id = (options or {}).get("task_id")
        if task_id is None:
            ids = self.task_set(split).ids
            task_id = ids[int(self.np_random.integers(len(ids)))]
        return task_id

    def expert(self, seed: int, *, noise: float = 0.0) -> Actor:
        """Gives a player that knows the rules but sees only what a policy sees; a share `noise` of its acts is random.

        Raises:
            EnvError: the environment has none.
        """
        raise EnvError(f"{type(self).__name__} has no expert; use --policy random or a model")

    @property
    def recorded(self) -> Mapping[str, str]:
        """Split -> hash of its manifest, contents included, as it was when these options' tasks were recorded.

        The default is empty: nothing is recorded. `agentrl envs check` compares it with what is there now.
        """
        return {}

    def oracle(self, seed: int) -> Actor:
        """Gives a player that also knows what the task hides, and so wins whatever can be won; by default the expert.

        Raises:
            EnvError: the environment has none.
        """
        return self.expert(seed)

    def solvable(self, task_id: str) -> bool:
        """Tells whether success can be reached at all, as it can by default; what cannot be caps everybody's rate."""
        del task_id
        return True

    def fingerprint(self, task_id: str) -> str:
        """Gives a hash of what the task consists of: equal ones are one task, whatever its ids. By default the id's."""
        return hashlib.sha256(task_id.encode()).hexdigest()

    def family(self, task_id: str) -> str:
        """Gives what the task shares with its like, such as its product. By default its own fingerprint.

        No family of a task that is out of distribution may occur in training.
        """
        return self.fingerprint(task_id)

    def check_split(self, split: str) -> None:
        """Raises NotFound, naming the splits there are, when `split` is none of them."""
        if split not in self.splits:
            names = ", ".join(self.splits)
            raise NotFound(
                f"{type(self).__name__} has no split {split!r}; it has: {names}.{did_you_mean(split, self.splits)}"
            )


def planned(plan: Callable[[Mapping[str, Any]], Iterable[str]]) -> Actor:
    """Gives a player of one episode that does, in order, what `plan` gives for the info of its first call.

    It raises EnvError when the plan is over and the episode is not.
    """
    left: Iterator[str] | None = None

    def act(observation: str, info: Mapping[str, Any]) -> str:
        nonlocal left
        del observation
        left = iter(plan(info)) if left is None else left
        action = next(left, None)
        if action is None:
            raise EnvError(f"task {info.get('task_id')!r}: its plan is over and the task is not; the plan is wrong")
        return action

    return act


def make(env_id: str, *, max_turns: int | None = None, **options: Any) -> gymnasium.Env[str, str]:
    """Gives the environment `namespace/Name-v0`, or `module:namespace/Name-v0`, with `options` for its constructor.

    Plugins announce themselves under the entry point group `agentrl.envs`, named like their namespace; only the plugin
    that is asked for is imported.

    Raises:
        NotFound: no plugin or no environment of that name.
        EnvError: the plugin failed to import.
    """
    if ":" not in env_id and "/" in env_id:
        load_plugin(env_id.split("/", 1)[0])
    try:
        return gymnasium.make(env_id, max_episode_steps=max_turns, disable_env_checker=True, **options)
    except gymnasium.error.UnregisteredEnv as error:
        raise NotFound(f"{error} 'agentrl envs list' shows every id.") from error
    except ImportError as error:
        raise EnvError(f"{env_id}: {error}") from error
    except TypeError as error:
        raise EnvError(f"{env_id}: {error}; 'agentrl envs show {env_id}' lists its options") from error


def plugins() -> dict[str, importlib.metadata.EntryPoint]:
    """Gives the installed environment plugins by namespace."""
    return {point.name: point for point in importlib.metadata.entry_points(group="agentrl.envs")}


def load_plugin(namespace: str) -> None:
    """Imports the plugin of a namespace, which registers its environments; unknown names are left to Gymnasium.

    Raises:
        NotFound: no such plugin, and nothing registered under that namespace either.
        EnvError: the plugin failed to import.
    """
    registered = {spec.namespace for spec in gymnasium.registry.values()}
    if namespace in registered:
        return
    found = plugins()
    if namespace not in found:
        raise NotFound(
            f"no environment namespace {namespace!r}.{did_you_mean(namespace, found)} "
            f"Installed environment plugins: {', '.join(sorted(found))}. 'agentrl envs list' shows every id."
        )
    try:
        importlib.import_module(found[namespace].module)
    except ImportError as error:
        raise EnvError(
            f"environment plugin {namespace!r} ({found[namespace].value}) failed to import: {error}"
        ) from error


def text_env(env: gymnasium.Env[str, str]) -> TextEnv:
    """Gives the TextEnv inside Gymnasium's wrappers.

    Raises:
        EnvError: the environment is not a TextEnv.
    """
    inner = env.unwrapped
    if not isinstance(inner, TextEnv):
        what_to_do = "subclass agentrl.TextEnv, or wrap it in agentrl.GymTextAdapter, as envs/README.md shows"
        raise EnvError(f"{type(inner).__name__} is no TextEnv; {what_to_do}")
    return inner
