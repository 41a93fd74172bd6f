"""Checks by playing: how a random player, the expert and the oracle do, how long texts are, how fast steps are."""

from collections.abc import Callable, Sequence
from statistics import fmean, quantiles
from typing import Any

from agentrl.env import Actor
from agentrl.errors import EnvError
from agentrl.evaluation.env_check.findings import Check, Told
from agentrl.evaluation.env_check.subject import Lacking, Played, Subject, any_action
from agentrl.evaluation.players import random_player
from agentrl.tally import wilson_interval


def best_player(subject: Subject) -> Actor:
    """Gives a player of one episode: the oracle, or where there is none, one that does anything."""
    try:
        return subject.env.oracle(0)
    except EnvError:
        counted = iter(range(1_000_000))
        return lambda observation, info: any_action(dict(info), next(counted))


def _random(subject: Subject) -> Told:
    def player(seed: int) -> Actor:
        act = random_player(seed)

        def checked(observation: str, info: Any) -> str:
            if "admissible_actions" not in info:
                raise Lacking("info has no 'admissible_actions' to choose from")
            return act(observation, info)

        return checked

    bound = subject.env.random_bound
    played, steps = _episodes(subject, player)
    told = _summary(played, steps)
    low, _ = wilson_interval(sum(one.success for one in played), len(played))
    if bound is None:
        return Told(f"{told.text}; no bound is stated", told.measured)
    if low > bound:
        raise EnvError(f"{told.text}: more than the bound of {100 * bound:g} %")
    return Told(f"{told.text}; bound {100 * bound:g} %", {**told.measured, "bound": bound})


def _expert(subject: Subject) -> Told:
    env = subject.env
    return _summary(*_episodes(subject, _offered(lambda seed: env.expert(seed))))


def _oracle(subject: Subject) -> Told:
    env = subject.env
    played, steps = _episodes(subject, _offered(env.oracle))
    told = _summary(played, steps)
    solvable = {one.task_id: env.solvable(one.task_id) for one in played}
    ceiling = sum(solvable[one.task_id] for one in played) / len(played)
    if lost := [one.task_id for one in played if solvable[one.task_id] and not one.success]:
        raise EnvError(f"{told.text}: it loses {len(lost)} tasks that can be won, such as {lost[0]!r}")
    if beyond := [one.task_id for one in played if one.success and not solvable[one.task_id]]:
        raise EnvError(
            f"{told.text}: it wins {len(beyond)} tasks that are said to be out of reach, such as {beyond[0]!r}"
        )
    return Told(f"{told.text}; ceiling {100 * ceiling:.1f} %", {**told.measured, "ceiling": ceiling})


def _offered(make: Callable[[int], Actor]) -> Callable[[int], Actor]:
    def player(seed: int) -> Actor:
        try:
            return make(seed)
        except EnvError as error:
            raise Lacking(str(error)) from error

    return player


def _episodes(subject: Subject, player: Callable[[int], Actor]) -> tuple[list[Played], list[float]]:
    stage = subject.stage()
    played = [stage.play(id, player(number), seed=number) for number, id in enumerate(subject.chosen())]
    return played, stage.step_s


def _summary(played: Sequence[Played], step_s: Sequence[float]) -> Told:
    rate = fmean(one.success for one in played)
    turns = len(step_s) / len(played)
    measured = {"success_rate": rate, "mean_return": fmean(one.total for one in played), "mean_turns": turns}
    told = (
        f"success {100 * rate:.1f} % of {len(played)} episodes, return {measured['mean_return']:.2f}, {turns:.1f} turns"
    )
    return Told(told, {"num_episodes": len(played), **measured})


def _lengths(subject: Subject) -> Told:
    stage = subject.stage()
    played = [stage.play(id, _anything(number), seed=number) for number, id in enumerate(subject.chosen())]
    texts = [text for one in played for text in one.texts]
    told, measured = _spread("characters", [len(text) for text in texts])
    if subject.count_tokens:
        in_tokens, more = _spread("tokens", [subject.count_tokens(text) for text in texts])
        told, measured = f"{told}; {in_tokens}", measured | more
        whole = max(sum(map(subject.count_tokens, one.texts)) for one in played)
        told, measured = f"{told}, an episode's at most {whole:,}", measured | {"max_episode_tokens": whole}
    return Told(told, measured)


def _spread(unit: str, lengths: Sequence[int]) -> tuple[str, dict[str, Any]]:
    measured = {f"mean_{unit}": fmean(lengths), f"max_{unit}": max(lengths)}
    return f"{fmean(lengths):,.0f} {unit} on average, at most {max(lengths):,}", measured


def _latency(subject: Subject) -> Told:
    stage = subject.stage()
    for number, id in enumerate(subject.chosen()):
        stage.play(id, _anything(number), seed=number)
    if len(stage.step_s) < 2:
        raise Lacking("too few steps to tell; play more with --episodes")
    cuts = quantiles(stage.step_s, n=100, method="inclusive")
    told = f"p50 {1000 * cuts[49]:.3f} ms, p99 {1000 * cuts[98]:.3f} ms of {len(stage.step_s)} steps"
    measured = {"p50_s": cuts[49], "p99_s": cuts[98], "num_steps": len(stage.step_s)}
    slow = cuts[49] > 0.001 and subject.env.inline
    return Told(told, measured, "set `inline = False`: steps of more than a millisecond hold up the event loop" * slow)


def _anything(seed: int) -> Actor:
    counted = iter(range(seed, 1_000_000))
    return lambda observation, info: any_action(dict(info), next(counted))


PLAYERS = (
    Check("a random player", _random, "make tasks that chance does not solve, or state another `random_bound`"),
    Check("the expert", _expert, "see what it raises"),
    Check("the oracle reaches the ceiling", _oracle, "mend `oracle`, or say in `solvable` what cannot be won"),
    Check("lengths of observations", _lengths, "see what it raises"),
    Check("time of a step", _latency, "see what it raises"),
)
"""In the order in which they are tried."""
