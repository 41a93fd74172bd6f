"""WebShop's data files: where they are, what is in them, and the shop that they make."""

import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Literal

from agentrl.errors import DataError
from agentrl_envs.webshop.catalogue import Catalogue, Product, read_products
from agentrl_envs.webshop.goals import human_goals, shuffled, synthetic_goals
from agentrl_envs.webshop.search import Index
from agentrl_envs.webshop.shop import Shop

Requests = Literal["synthetic", "human"]
"""Whose words the goals are: made of attributes and options, or written by people."""

SMALL = "items_shuffle_1000.json"
"""The file of the 1,000 products that WebShop's own set-up script gets."""
_ITEMS = "items_shuffle"
_SHIPPED_NOUNS = Path(__file__).parent / "title_nouns.json.gz"
_CACHED_FROM_PRODUCTS = 5000
"""Smaller catalogues are indexed faster than a file is found."""


@dataclass(frozen=True)
class Files:
    """The contents of WebShop's files."""

    items: Path
    products: list[Product]
    nouns: Mapping[str, Any]

    @classmethod
    def read(cls, items: Path) -> "Files":
        """Reads a file of products and those that belong to it beside it.

        Those are the attributes (`items_ins_v2*.json`, required) and, where they exist, what people asked for
        (`items_human_ins*.json`) and the nouns of titles (`title_nouns*.json`; those of WebShop's 1,000 products ship).

        Raises:
            DataError: A file is missing, no JSON or not of WebShop's form.
        """
        suffix = items.stem.removeprefix(_ITEMS)
        attributes = _beside(items, "items_ins_v2", suffix)
        if attributes is None:
            raise DataError(f"{items.parent}: no items_ins_v2{suffix}.json beside {items.name}; it has the attributes")
        human, nouns = _beside(items, "items_human_ins", suffix), _beside(items, "title_nouns", suffix)
        products = read_products(_json(items), _json(attributes), _json(human) if human else None, where=str(items))
        return cls(items, products, _nouns(_json(nouns), nouns) if nouns else shipped_nouns())


def make_shop(
    products: Sequence[Product],
    nouns: Mapping[str, Any],
    *,
    requests: Requests = "synthetic",
    seed: int = 0,
    cache: Path | None = None,
) -> Shop:
    """Opens a shop.

    Args:
        products: In the order of their file.
        nouns: Of titles, by asin; those of others are guessed.
        requests: Whose words the goals are.
        seed: Of the hidden prices of products in a range, and of the price limits.
        cache: Folder that keeps the search index of large catalogues; None keeps none.
    """
    rng = Random(seed)
    catalogue = Catalogue.of(products, rng, nouns)
    goals = synthetic_goals(catalogue, rng) if requests == "synthetic" else human_goals(catalogue, rng)
    texts = {one.asin: one.text for one in products}
    index = Index.cached(texts, cache) if cache and len(texts) >= _CACHED_FROM_PRODUCTS else Index.build(texts)
    return Shop(catalogue, index, {goal.id: goal for goal in shuffled(goals)})


def find_items(explicit: Path | None, environ: Mapping[str, str]) -> Path:
    """Gives WebShop's file of products.

    Looks at `explicit`, a file or a folder, when it is given, else in $AGENTRL_DATA/webshop and
    ~/.cache/agentrl/webshop. Of several files in a folder it takes `items_shuffle_1000.json`.

    Raises:
        DataError: There is none, or several.
    """
    places = [explicit, explicit / "webshop"] if explicit else _usual_places(environ)
    for place in places:
        if place.is_file():
            return place
        found = sorted(place.glob(f"{_ITEMS}*.json"))
        small = [path for path in found if path.name == SMALL]
        if len(found) == 1 or small:
            return [*small, *found][0]
        if found:
            names = ", ".join(path.name for path in found)
            raise DataError(f"{place}: several files of products ({names}); give one of them as env.options.data")
    raise DataError(
        f"no WebShop products ({_ITEMS}*.json) in {', '.join(map(str, places))}; run 'scripts/get_webshop.py --from "
        "FOLDER' on WebShop's data folder, or make products with 'scripts/make_webshop.py FOLDER'"
    )


def _usual_places(environ: Mapping[str, str]) -> list[Path]:
    places = [Path(environ["AGENTRL_DATA"], "webshop")] if environ.get("AGENTRL_DATA") else []
    return [*places, Path(environ.get("HOME") or Path.home(), ".cache", "agentrl", "webshop")]


def _beside(items: Path, stem: str, suffix: str) -> Path | None:
    """Gives the file that belongs to the products: of the same suffix, else without one, else the only one."""
    for name in (f"{stem}{suffix}.json", f"{stem}.json"):
        if (items.parent / name).is_file():
            return items.parent / name
    found = list(items.parent.glob(f"{stem}*.json"))
    return found[0] if len(found) == 1 else None


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(
            f"{path}: cannot be read as JSON ({error}); get it again with scripts/get_webshop.py"
        ) from error


@cache
def shipped_nouns() -> Mapping[str, Any]:
    """Gives the nouns that spaCy's en_core_web_sm 3.8.0 finds in the titles of WebShop's 1,000 products, by asin."""
    return _nouns(json.loads(gzip.decompress(_SHIPPED_NOUNS.read_bytes())), _SHIPPED_NOUNS)


def _nouns(content: Any, path: Path) -> Mapping[str, Any]:
    nouns = content.get("nouns") if isinstance(content, Mapping) else None
    if not isinstance(nouns, Mapping) or not all(isinstance(words, list) for words in nouns.values()):
        raise DataError(f'{path}: want {{"nouns": {{asin: [words]}}}}; without the file, nouns are guessed')
    return nouns
