"""agentrl/WebShop-v0: find, configure and buy the product that a customer asks for."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_args

from agentrl.env import Actor, TextEnv, planned
from agentrl.errors import EnvError, NotFound, did_you_mean
from agentrl.tasks import TaskSet
from agentrl_envs.recorded import recorded
from agentrl_envs.webshop.actions import parse, resolve
from agentrl_envs.webshop.expert import Shopper
from agentrl_envs.webshop.files import Requests
from agentrl_envs.webshop.generate import Knobs
from agentrl_envs.webshop.manifests import goal_sha
from agentrl_envs.webshop.oracle import purchase
from agentrl_envs.webshop.pages import Mode, render
from agentrl_envs.webshop.reward import OptionMatch
from agentrl_envs.webshop.session import SEARCH, Session
from agentrl_envs.webshop.shop import Shop
from agentrl_envs.webshop.source import Products, Source, open_shop
from agentrl_envs.webshop.splits import SplitBy

SEARCH_HINT = "search[<your query>]"
"""How a list of actions shows that a search is possible; any words may stand in the brackets."""


class WebShop(TextEnv):
    """Shopping by text: `search[words]` and `click[button]`. A purchase is rewarded and ends the episode.

    The `info` of a step has `score`, 0 until the purchase and then up to 1, and the last one its parts `r_type`,
    `r_attribute`, `r_option` and `r_price`; success is a score of 1. An action that cannot be read or does nothing
    changes nothing and is `inadmissible`.
    """

    inline = True
    reports = ("score",)
    random_bound = 0.05

    def __init__(
        self,
        *,
        products: Products = "generated",
        data: str | Path | None = None,
        requests: Requests = "synthetic",
        split_by: SplitBy = "product",
        seed: int = 0,
        mode: Mode = "text",
        option_match: OptionMatch = "original",
        reward: Literal["score", "binary"] = "score",
        reward_scale: float = 1.0,
        **knobs: Any,
    ) -> None:
        """Makes an environment; all with the same products share them.

        Args:
            products: `generated` needs no data; `official` are WebShop's 1,000 products, checked against manifests;
                `files` are any files of that form.
            data: file or folder of the products; None looks in AGENTRL_DATA/webshop and ~/.cache/agentrl/webshop.
            requests: `synthetic`, made of attributes and options, or those that `human` customers wrote.
            split_by: `product` never trains on a product of the split unseen_products; `original` cuts by position.
            seed: of hidden prices and price limits.
            mode: `text` is the original's; `text_plus` also shows chosen options and ends the results.
            option_match: `original` keeps a quirk that puts some requests out of reach; `fixed` mends it.
            reward: `score`, from 0 to 1, or `binary`, 1 for a score of 1 and 0 otherwise.
            reward_scale: what the reward is multiplied by.
            knobs: size of generated catalogues: `num_products` and others; see `generate.Knobs`.
        """
        super().__init__()
        choices = {"mode": (mode, Mode), "option_match": (option_match, OptionMatch)}
        for name, (value, known) in choices.items():
            if value not in get_args(known):
                raise EnvError(f"{name}: {value!r} is none of {', '.join(get_args(known))}")
        if reward not in ("score", "binary"):
            raise EnvError(f"reward: {reward!r} is neither score nor binary")
        self.source = Source(products, Path(data) if data else None, requests, split_by, seed, _knobs(knobs))
        """Where the products come from."""
        self.splits = self.source.roles
        self._mode: Mode = mode
        self._option_match: OptionMatch = option_match
        self._is_binary = reward == "binary"
        self._scale = reward_scale
        self._session: Session | None = None

    @property
    def shop(self) -> Shop:
        """The shop, which is opened when it is first asked for."""
        return open_shop(self.source).shop

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Starts the request that `options["task_id"]` names, or a training request of the seed's choice."""
        super().reset(seed=seed)
        task_id = self.asked_task(options)
        goal = self.shop.goals.get(task_id)
        if goal is None:
            near = did_you_mean(str(task_id), list(self.shop.goals)[:1000])
            raise NotFound(f"no request {task_id!r} in this shop.{near} task_set(split).ids has those there are")
        is_plus = self._mode == "text_plus"
        self._session = Session(self.shop, goal, self._option_match, bounded=is_plus)
        return render(self._session, self._mode), self._info(self._session)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Searches or clicks; the episode terminates with a purchase and never otherwise."""
        session = self._session
        assert session is not None, "reset comes before step"
        accepted = session.page != "done" and _carried_out(session, action)
        bought = session.page == "done" and session.score is not None
        value = session.score.reward if accepted and bought and session.score else 0.0
        success = session.score is not None and session.score.reward == 1
        reward = self._scale * (float(value == 1) if self._is_binary else value)
        info = {"score": 0.0} | self._info(session) | {"success": success, "inadmissible": not accepted}
        return render(session, self._mode), reward, bought, False, info

    def task_set(self, split: str) -> TaskSet:
        """Gives the requests of a split."""
        self.check_split(split)
        return open_shop(self.source).tasks[split]

    def expert(self, seed: int, *, noise: float = 0.0) -> Actor:
        """Gives a shopper that reads what a policy reads, in the modes text and text_plus; see `expert.Shopper`."""
        if self._mode not in ("text", "text_plus"):
            raise EnvError(f"mode: the expert cannot read {self._mode}; set text or text_plus")
        return Shopper(seed, noise)

    def oracle(self, seed: int) -> Actor:
        """Gives a shopper that knows which product is meant; see `oracle.purchase`."""
        del seed
        return planned(lambda info: purchase(self.shop, self.shop.goals[info["task_id"]], self._option_match))

    def solvable(self, task_id: str) -> bool:
        """Tells whether buying just what is asked for scores 1, as `option_match: original` may prevent."""
        return self.shop.ceiling(self.shop.goals[task_id], self._option_match) == 1

    def fingerprint(self, task_id: str) -> str:
        """Gives 64 bits of the hash of a request, its product and the price that is charged."""
        return goal_sha(self.shop, task_id)

    def family(self, task_id: str) -> str:
        """Gives the product's asin: no product that is out of distribution may be trained on."""
        return self.shop.goals[task_id].asin

    @property
    def recorded(self) -> Mapping[str, str]:
        """Hashes of the manifests of the official products, and of generated ones of the default size."""
        name = self.source.recorded_as
        return recorded(f"webshop_{name}") if name else {}

    def ceiling(self, split: str) -> dict[str, float]:
        """Gives how good buying just what is asked for would be: mean `score` and share of `success` over a split."""
        shop = self.shop
        scores = [shop.ceiling(shop.goals[id], self._option_match) for id in self.task_set(split).ids]
        return {
            "score": sum(scores) / len(scores),
            "success": sum(score == 1 for score in scores) / len(scores),
        }

    def _info(self, session: Session) -> dict[str, Any]:
        goal = session.goal
        names = [name for name in session.clickables() if name != SEARCH]
        hint = [SEARCH_HINT] if session.page == "start" else []
        info = {
            "task_id": goal.id,
            "task": goal.instruction,
            "task_type": session.shop.catalogue.products[goal.asin].category,
            "admissible_actions": sorted([*hint, *(f"click[{name}]" for name in names)]),
        }
        if session.page == "done" and session.score is not None:
            info |= {"score": session.score.reward, **session.score.parts()}
        return info


def _carried_out(session: Session, answer: str) -> bool:
    """Carries out the action in an answer; gives whether there was one and it did anything."""
    action = parse(answer)
    if action is None:
        return False
    if action.verb == "search":
        session.search(action.argument)
        return True
    name = resolve(action.argument, session.clickables())
    return name is not None and session.click(name)


def _knobs(given: Mapping[str, Any]) -> Knobs:
    try:
        return replace(Knobs(), **given)
    except TypeError as error:
        known = ", ".join(Knobs.__dataclass_fields__)
        raise EnvError(f"agentrl/WebShop-v0: {error}; the knobs of generated catalogues are {known}") from error
