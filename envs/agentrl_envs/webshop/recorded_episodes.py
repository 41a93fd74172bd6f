"""Episodes of the original, played again: every page, reward and button must be the same."""

from collections.abc import Iterator, Sequence
from typing import Any

from agentrl_envs.webshop.catalogue import Catalogue, read_products
from agentrl_envs.webshop.goals import Goal
from agentrl_envs.webshop.pages import SEPARATOR, Mode, render
from agentrl_envs.webshop.recordings import Differences, Record, Shops, differences, read_goal, write_goal
from agentrl_envs.webshop.session import Session
from agentrl_envs.webshop.shop import Shop


def compare_trajectories(content: Record, shops: Shops) -> Iterator[Differences]:
    """Compares episodes on the real products, an entry for each step and one for each goal."""
    shop = shops("synthetic")
    goals = list(shop.goals.values())
    for episode in content["episodes"]:
        goal = goals[episode["goal_index"]]
        where = f"goal {episode['goal_index']}"
        yield differences(where, episode["goal"], write_goal(goal))
        yield from _play(Session(shop, goal), episode, where, "text")


def compare_pages(content: Record) -> Iterator[Differences]:
    """Compares episodes on the products that the file itself holds, in every mode, an entry for each step."""
    files = content["catalogue"]
    products = read_products(files["items_shuffle"], files["items_ins_v2"], files["items_human_ins"])
    for run in content["runs"]:
        catalogue = Catalogue({one.asin: one for one in products}, run["price"])
        shop = Shop(catalogue, _TitleSearch(catalogue), {})
        for episode in run["episodes"]:
            goal = read_goal(run["goals"][episode["goal_index"]])
            session = Session(shop, goal, show_attributes=run["show_attrs"])
            where = f"{run['observation_mode']}, {episode['title']}"
            yield from _play(session, episode, where, run["observation_mode"])
        if run is content["runs"][0] and "history_mode" in content:
            yield from _history(content["history_mode"], shop, read_goal(run["goals"][0]))


class _TitleSearch:
    """The search of the recorded pages: products whose title has a word of the query, in their order."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._words = {asin: set(one.title.lower().split()) for asin, one in catalogue.products.items()}

    def search(self, query: str, limit: int) -> list[tuple[str, float]]:
        """Gives the products, all with the same score."""
        asked = set(query.split())
        return [(asin, 1.0) for asin, words in self._words.items() if words & asked][:limit]


def _play(session: Session, episode: Record, where: str, mode: Mode) -> Iterator[Differences]:
    for number, step in enumerate(episode["steps"]):
        accepted = number > 0 and session.act(step["action"])
        yield differences(f"{where}, step {number}", step, _answer(session, mode, episode, accepted=accepted))


def _answer(session: Session, mode: Mode, episode: Record, *, accepted: bool) -> dict[str, Any]:
    done = session.page == "done" and accepted
    return {
        "observation": render(session, mode, address=str(episode["goal_index"])),
        "reward": session.score.reward if done and session.score else 0.0,
        "done": done,
        "available": {"has_search_bar": session.page == "start", "clickables": session.clickables()},
        "options": session.options,
    }


def _history(recorded: Record, shop: Shop, goal: Goal) -> Iterator[Differences]:
    """Compares states that join the last observations and actions; the actions are read off the states."""
    session = Session(shop, goal)
    observations, actions = [render(session, "text")], list[str]()
    for number, state in enumerate(recorded["states"]):
        if number:
            known, _, _ = _joined([*observations, ""], [*actions, "\0"], recorded).partition("\0")
            actions.append(state.removeprefix(known).partition(SEPARATOR)[0])
            session.act(actions[-1])
            observations.append(render(session, "text"))
        ours = {"state": _joined(observations, actions, recorded)}
        yield differences(f"history, state {number}", {"state": state}, ours)


def _joined(observations: Sequence[str], actions: Sequence[str], sizes: Record) -> str:
    """Gives the last observation after those before it and their actions, as many as `sizes` says."""
    last = len(actions)
    parts: list[str] = []
    for number, observation in enumerate(observations):
        if number > max(last - sizes["num_prev_actions"], 0):
            parts.append(actions[number - 1])
        if number >= last - sizes["num_prev_obs"]:
            parts.append(observation)
    return SEPARATOR.join(parts)
