import gzip
from dataclasses import replace
from pathlib import Path

import pytest

from agentrl.errors import DataError
from agentrl.tasks import manifest_sha256
from agentrl_envs.webshop import manifests
from agentrl_envs.webshop.source import Source, load_shop, open_shop
from agentrl_envs.webshop.splits import split_ids

SPLIT_BYS = ("product", "original")


def manifest(name: str) -> dict[str, list[str]]:
    """The lines of each split, without its name."""
    text = gzip.decompress((Path(manifests.__file__).parent / "manifests" / f"{name}.txt.gz").read_bytes()).decode()
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        split, _, rest = line.partition(" ")
        found.setdefault(split, []).append(rest)
    return found


@pytest.mark.parametrize("split_by", SPLIT_BYS)
def test_the_default_catalogue_is_the_one_of_the_manifest_on_every_machine(split_by):
    opened = open_shop(Source(split_by=split_by))
    known = manifest(f"generated_{split_by}")
    assert {split: tasks.sha256 for split, tasks in opened.tasks.items()} == {
        split: manifest_sha256(lines) for split, lines in known.items()
    }


@pytest.mark.data
@pytest.mark.parametrize("split_by", SPLIT_BYS)
def test_the_real_products_are_those_of_the_manifest(data_dir, split_by):
    opened = open_shop(Source("official", data_dir / "webshop", split_by=split_by))
    known = manifest(f"official_{split_by}")
    assert {split: tasks.sha256 for split, tasks in opened.tasks.items()} == {
        split: manifest_sha256(lines) for split, lines in known.items()
    }


@pytest.mark.parametrize("products", ["official", "generated"])
def test_manifests_do_not_leak(products):
    asins = {
        split: {line.partition("/")[0] for line in lines} for split, lines in manifest(f"{products}_product").items()
    }
    assert (asins["train"] | asins["train_1024"] | asins["seen_products"]) & asins["unseen_products"] == set()
    ids = {split: {line.split()[0] for line in lines} for split, lines in manifest(f"{products}_product").items()}
    assert ids["train"] & ids["seen_products"] == set()
    assert len(ids["train_1024"]) == 1024


def test_the_official_manifest_of_the_originals_splits_has_its_leak():
    asins = {
        split: {line.partition("/")[0] for line in lines} for split, lines in manifest("official_original").items()
    }
    # 127 of the 146 test products are also products of the 6,410 other requests
    assert len(asins["test"]) == 146
    assert len(asins["test"] & (asins["train"] | asins["dev"])) == 127


def test_a_changed_request_is_an_error_that_names_it(shop, tmp_path, monkeypatch):
    monkeypatch.setattr(manifests, "_FOLDER", tmp_path)
    splits = split_ids(shop.goals, "product")
    manifests.write("mine", shop, splits)
    manifests.check("mine", shop, splits, "shop")
    prices = {**shop.catalogue.prices, "B0000SHIRT": 11.0}
    changed = replace(shop, catalogue=replace(shop.catalogue, prices=prices))
    with pytest.raises(DataError, match=r"shop: \d requests are not the official ones \(B0000SHIRT/00"):
        manifests.check("mine", changed, splits, "shop")


def test_the_price_limits_of_another_seed_are_another_manifest():
    shops = [load_shop(Source(seed=seed)) for seed in (0, 1)]
    hashes = [manifests.task_sets(one, split_ids(one.goals, "product"))["train"].sha256 for one in shops]
    assert hashes[0] != hashes[1]
