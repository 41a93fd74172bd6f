"""Which requests make up the splits of WebShop's 1,000 products and of the default generated catalogue, with hashes.

A manifest is a file `<products>_<split by>.txt.gz` with a line `<split> <task id> <hash>` for every request.
"""

import gzip
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from agentrl.errors import DataError
from agentrl.tasks import TaskSet, manifest_sha256
from agentrl_envs.webshop.shop import Shop

_FOLDER = Path(__file__).parent / "manifests"
_HASH_CHARS = 16
_SHOWN = 5


def task_sets(shop: Shop, splits: Mapping[str, Sequence[str]]) -> dict[str, TaskSet]:
    """Gives the task set of every split; its hash is over ids and contents."""
    hashes = {id: goal_sha(shop, id) for ids in splits.values() for id in ids}
    return {
        split: TaskSet(split, ids, manifest_sha256(f"{id} {hashes[id]}" for id in ids)) for split, ids in splits.items()
    }


def goal_sha(shop: Shop, id: str) -> str:
    """Gives 64 bits of the sha256 of a request, its product and the price that is charged."""
    goal = shop.goals[id]
    product = shop.catalogue.products[goal.asin]
    known = [goal.record(), goal.attributes, shop.catalogue.prices[goal.asin], product.text, product.attributes]
    known += [product.query, product.product_category, product.pricing, shop.nouns(goal.asin)]
    return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()[:_HASH_CHARS]


def lines(shop: Shop, splits: Mapping[str, Sequence[str]]) -> list[str]:
    """Gives the lines of a manifest."""
    return [f"{split} {id} {goal_sha(shop, id)}" for split, ids in splits.items() for id in ids]


def write(name: str, shop: Shop, splits: Mapping[str, Sequence[str]]) -> Path:
    """Writes the manifest of that name, the same bytes for the same requests, and gives its path."""
    text = "".join(f"{line}\n" for line in lines(shop, splits))
    path = _path(name)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))
    return path


def check(name: str, shop: Shop, splits: Mapping[str, Sequence[str]], where: str) -> None:
    """Passes if the splits are those of the manifest.

    Raises:
        DataError: Requests are missing, changed or not in the manifest; the message names some.
    """
    known = set(gzip.decompress(_path(name).read_bytes()).decode().splitlines())
    found = set(lines(shop, splits))
    if known != found:
        wrong = sorted({line.split()[1] for line in known ^ found})
        shown = ", ".join(wrong[:_SHOWN]) + (", ..." if len(wrong) > _SHOWN else "")
        raise DataError(
            f"{where}: {len(wrong)} requests are not the official ones ({shown}); get WebShop's own files of 1,000 "
            "products, with title_nouns_1000.json and seed 0, or set env.options.products to files"
        )


def _path(name: str) -> Path:
    return _FOLDER / f"{name}.txt.gz"
