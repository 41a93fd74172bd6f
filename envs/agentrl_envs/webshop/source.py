"""Where a shop comes from, and what is shared by all environments that ask for the same one."""

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Literal, get_args

from agentrl.env import SplitRole
from agentrl.errors import DataError, EnvError
from agentrl.tasks import TaskSet
from agentrl_envs.webshop import manifests
from agentrl_envs.webshop.catalogue import read_products
from agentrl_envs.webshop.files import Files, Requests, find_items, make_shop
from agentrl_envs.webshop.generate import Knobs, generate
from agentrl_envs.webshop.shop import Shop
from agentrl_envs.webshop.splits import ORIGINAL_ROLES, PRODUCT_ROLES, SplitBy, shared_products, split_ids

log = logging.getLogger(__name__)

Products = Literal["generated", "official", "files"]
"""`generated` products need no data; `official` are WebShop's 1,000, checked against manifests; `files` any others."""


@dataclass(frozen=True)
class Source:
    """What decides a shop and its splits."""

    products: Products = "generated"
    data: Path | None = None
    """File or folder of products; None looks where they usually are."""
    requests: Requests = "synthetic"
    split_by: SplitBy = "product"
    seed: int = 0
    """Of hidden prices and price limits."""
    knobs: Knobs = field(default_factory=Knobs)
    """Of generated products."""

    def __post_init__(self) -> None:
        """Refuses unknown words, and settings that would do nothing."""
        choices = {"products": Products, "requests": Requests, "split_by": SplitBy}
        for name, known in choices.items():
            if getattr(self, name) not in get_args(known):
                raise EnvError(f"{name}: {getattr(self, name)!r} is none of {', '.join(get_args(known))}")
        if self.products == "generated" and self.data is not None:
            raise EnvError("data: generated products have no files; set products: files")
        if self.products != "generated" and self.knobs != Knobs():
            raise EnvError("num_products and the like are for generated products only; set products: generated")

    @property
    def recorded_as(self) -> str:
        """What the recorded manifests of its splits are called; empty where there are none."""
        is_default = self.requests == "synthetic" and self.seed == 0 and self.knobs == Knobs()
        return f"{self.products}_{self.split_by}" if is_default and self.products != "files" else ""

    @property
    def roles(self) -> Mapping[str, SplitRole]:
        """Split -> what it is for."""
        return PRODUCT_ROLES if self.split_by == "product" else ORIGINAL_ROLES


@dataclass(frozen=True)
class OpenShop:
    """A shop with its splits."""

    shop: Shop
    tasks: Mapping[str, TaskSet]


def open_shop(source: Source) -> OpenShop:
    """Opens a shop, once in a process for equal sources and the same file of products.

    Raises:
        DataError: Files are missing or wrong, or a split is empty.
    """
    if source.products != "generated":
        source = replace(source, data=find_items(source.data, os.environ))
    return _opened(source)


@cache
def _opened(source: Source) -> OpenShop:
    shop = load_shop(source)
    splits = split_ids(shop.goals, source.split_by)
    if source.products == "official" and source.requests == "synthetic":
        manifests.check(f"official_{source.split_by}", shop, splits, "WebShop's 1,000 products")
    if source.split_by == "original":
        shared, num = shared_products(shop.goals, splits["test"], splits["train"])
        log.warning(
            "split_by: original leaks: %d of the %d products of its test are trained on; split_by: product keeps them "
            "apart",
            *(shared, num),
        )
    return OpenShop(shop, manifests.task_sets(shop, splits))


def load_shop(source: Source) -> Shop:
    """Opens a shop without splitting its requests; prefer `open_shop`.

    Raises:
        DataError: Files are missing or wrong, or nobody asks for anything.
    """
    if source.products == "generated":
        files = generate(source.knobs)
        products, nouns = read_products(files.items, files.attributes, files.human, where="generated products"), {}
    else:
        read = Files.read(find_items(source.data, os.environ))
        products, nouns = read.products, read.nouns
    cache_folder = Path(os.environ.get("HOME") or Path.home(), ".cache", "agentrl")
    shop = make_shop(products, nouns, requests=source.requests, seed=source.seed, cache=cache_folder)
    if not shop.goals:
        raise DataError(f"none of the {len(products)} products has a {source.requests} request, so there is no task")
    return shop
