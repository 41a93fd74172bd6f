"""Checks of what an environment promises: Gymnasium's interface, its splits, its seeds."""

import warnings
from collections.abc import Iterator
from itertools import zip_longest

from gymnasium.utils.env_checker import check_env

from agentrl.env import text_env
from agentrl.errors import EnvError
from agentrl.evaluation.env_check.findings import Check, Told
from agentrl.evaluation.env_check.subject import Lacking, Stage, Subject, any_action, within
from agentrl.manifests import HEAD, WHOLE, content_sha256, manifest_of, shared

ROLES = {"train", "in_distribution", "out_of_distribution"}
_MAX_TURNS = 60
_TASKS = 4
_SHOWN = 3


def _gymnasium(subject: Subject) -> Told:
    def check() -> str:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            check_env(text_env(subject.stage().env), skip_render_check=True)
        return "; ".join(str(warning.message).strip() for warning in told)

    return Told(within(subject.timeout_s, check) or "spaces, seeds, reset and step")


def _splits(subject: Subject) -> Told:
    env = subject.env
    sizes = {}
    for split, role in env.splits.items():
        tasks = env.task_set(split)
        if role not in ROLES or not len(tasks) or len(tasks.sha256) != 64:
            raise EnvError(f"{split}: role {role!r}, {len(tasks)} tasks, hash {tasks.sha256!r}")
        ids = list(tasks.first(WHOLE).ids)
        if ids != sorted(set(ids)):
            raise EnvError(f"{split}: its ids are not sorted, or some come twice")
        sizes[split] = len(tasks)
    if "train" not in env.splits.values():
        raise EnvError(f"no split has the role 'train'; there are: {', '.join(env.splits) or 'none'}")
    return Told(", ".join(f"{split} {num:,}" for split, num in sizes.items()), {"num_tasks": sizes})


def _leaks(subject: Subject) -> Told:
    env = subject.env
    manifests = {split: manifest_of(env, split) for split in subject.splits()}
    trained = [entry for split, role in env.splits.items() if role == "train" for entry in manifests[split]]
    ids = {entry.id for entry in trained}
    told, wrong, measured = [], [], {}
    for split, role in env.splits.items():
        if role == "train":
            continue
        found = shared(trained, manifests[split])
        measured[split] = {"ids": len(found.ids), "contents": len(found.contents), "families": len(found.families)}
        if {entry.id for entry in manifests[split]} == ids and role == "in_distribution":
            told.append(f"{split} is training itself")
            continue
        matters = {"ids": found.ids, "contents": found.contents}
        matters |= {"families": found.families} if role == "out_of_distribution" else {}
        wrong += [f"{split}: {len(both)} {kind}, such as {both[0]!r}" for kind, both in matters.items() if both]
        kept = f", {len(found.families)} families seen in training" if role == "in_distribution" else ""
        told.append(f"{split} {len(manifests[split]):,} tasks{kept}")
    if wrong:
        raise EnvError(f"also trained on: {'; '.join(wrong)}")
    cut = any(len(env.task_set(split)) > len(manifest) for split, manifest in manifests.items())
    note = f" (of large splits the first {HEAD:,})" * cut
    return Told(f"{len(ids):,} tasks to train on against {', '.join(told)}{note}", measured)


def _recorded(subject: Subject) -> Told:
    env = subject.env
    if not env.recorded:
        raise Lacking("nothing is recorded of these tasks")
    found = {split: content_sha256(manifest_of(env, split)) for split in env.splits}
    changed = [split for split in found if env.recorded.get(split) != found[split]]
    if changed:
        hashes = "; ".join(
            f"{split} {found[split][:12]}, recorded {env.recorded.get(split, 'none')[:12]}" for split in changed
        )
        raise EnvError(f"other tasks or contents than recorded: {hashes}")
    return Told(", ".join(f"{split} {sha256[:12]}" for split, sha256 in found.items()), {"sha256": found})


def _deterministic(subject: Subject) -> Told:
    env = subject.env
    split = subject.splits()[0]
    ids = list(env.task_set(split).first(_TASKS).ids)
    for id in [*ids, None]:
        first, second = (list(_shown(subject.stage(), id)) for _ in range(2))
        if first != second:
            pairs = zip(first, second, strict=False)
            turn = next((turn for turn, pair in enumerate(pairs) if pair[0] != pair[1]), min(len(first), len(second)))
            raise EnvError(f"task {id!r} differs from turn {turn} on")
    return Told(f"{len(ids)} tasks of {split}, and one of the seed's choice")


def _shown(stage: Stage, task_id: str | None) -> Iterator[str]:
    """Gives what an episode of fixed actions shows, turn by turn, with rewards and possible actions."""
    observation, info = stage.reset(task_id, seed=7)
    yield observation
    for turn in range(_MAX_TURNS):
        observation, reward, over, info = stage.step(any_action(info, turn))
        yield f"{observation}\n{reward}\n{info.get('admissible_actions')}"
        if over:
            return


def _independent(subject: Subject) -> Told:
    ids = (subject.chosen() * 2)[:2]
    alone = [list(_shown(subject.stage(), id)) for id in ids]
    in_turn = zip_longest(*(_shown(subject.stage(), id) for id in ids))
    together = [[text for text in texts if text is not None] for texts in zip(*in_turn, strict=True)]
    if mixed := [id for id, one, other in zip(ids, alone, together, strict=True) if one != other]:
        raise EnvError(f"task {mixed[0]!r} goes differently while another instance plays, too")
    return Told(f"{len(ids)} instances, their steps in turn")


CONTRACT = (
    Check("gymnasium's own check", _gymnasium, "see Gymnasium's message; reset and step are as in envs/README.md"),
    Check("splits have roles, tasks and a hash", _splits, "set `splits` and `task_set`, ids sorted: envs/README.md"),
    Check(
        "no task to train on is evaluated",
        _leaks,
        "take these tasks out of training; `fingerprint` and `family` say what counts as the same",
    ),
    Check("manifests are the recorded ones", _recorded, "get the original data; or record the new tasks, if meant"),
    Check(
        "one seed, one task: the same texts twice",
        _deterministic,
        "draw from self.np_random; keep nothing from one episode to the next",
    ),
    Check("instances do not share state", _independent, "keep what changes in the instance, not in class or module"),
)
"""In the order in which they are tried."""
