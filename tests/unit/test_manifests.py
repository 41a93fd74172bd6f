import gzip
import hashlib
import re
from pathlib import Path
from typing import Any

import pytest

import agentrl_envs
from agentrl.env import TextEnv, make, text_env
from agentrl.errors import DataError
from agentrl.manifests import HEAD, Entry, content_sha256, lines, manifest_of, read_manifest, shared
from agentrl.tasks import TaskSet, manifest_sha256
from agentrl_envs.recorded import FILE, recorded

SHIPPED = Path(agentrl_envs.__file__).parent


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class Words(TextEnv):
    """Its tasks are words; two words of the same letters are one task, and the first letter is the family."""

    def __init__(self, ids: list[str]) -> None:
        super().__init__()
        self._ids = ids

    def task_set(self, split: str) -> TaskSet:
        return TaskSet(split, self._ids, manifest_sha256(self._ids))

    def fingerprint(self, task_id: str) -> str:
        return sha("".join(sorted(task_id)))

    def family(self, task_id: str) -> str:
        return task_id[0]


def test_a_manifest_is_sorted_by_id_whatever_the_order_of_the_tasks():
    manifest = manifest_of(Words(["b", "a"]), "train")
    assert manifest == [Entry("a", sha("a"), "a"), Entry("b", sha("b"), "b")]
    assert lines(manifest) == [f"a\t{sha('a')}\ta", f"b\t{sha('b')}\tb"]
    assert content_sha256(manifest) == sha(f"a\t{sha('a')}\ta\nb\t{sha('b')}\tb\n")


def test_without_more_said_a_task_is_what_its_id_says():
    (entry,) = manifest_of(text_env(make("agentrl/Guess-v0")), "out_of_distribution")[:1]
    assert entry == Entry("3", sha("3"), sha("3"))


def test_of_a_split_that_is_too_large_to_list_the_head_is_listed():
    manifest = manifest_of(text_env(make("agentrl/ZeroTIR-v0")), "train")
    assert len(manifest) == HEAD == 1024
    assert (manifest[0].id, manifest[-1].id) == ("train/000000000", "train/000001023")


def test_ids_contents_and_families_are_compared_apart():
    known, evaluated = (manifest_of(Words(ids), "train") for ids in (["ab", "cd", "x"], ["ba", "ce", "x", "z"]))
    found = shared(known, evaluated)
    assert (found.ids, found.contents, found.families) == (["x"], ["ba", "x"], ["c", "x"])
    assert not shared(known, manifest_of(Words(["z"]), "train"))


def test_what_is_written_is_read_again(tmp_path: Path):
    manifest = manifest_of(Words(["a word", "b"]), "train")
    path = tmp_path / "words.txt"
    path.write_text("\n".join(lines(manifest)))
    assert read_manifest(path) == manifest


def test_what_is_no_manifest_is_refused_with_its_line(tmp_path: Path):
    path = tmp_path / "words.txt"
    path.write_text("a\tb\tc\nd e\n")
    with pytest.raises(DataError, match=r"words.txt:2: not id, sha256 and family"):
        read_manifest(path)
    path.write_text("")
    with pytest.raises(DataError, match=r"words.txt: not id, sha256 and family"):
        read_manifest(path)
    with pytest.raises(DataError, match="cannot be read"):
        read_manifest(tmp_path / "nowhere")


@pytest.mark.parametrize("path", sorted(SHIPPED.rglob("manifests/*_*distribution.txt.gz")), ids=lambda path: path.stem)
def test_the_lists_that_ship_are_what_their_hashes_say(path: Path):
    found = re.fullmatch(r"(\w+?)_((?:in|out_of)_distribution)\.txt\.gz", path.name)
    assert found
    name, split = found.groups()
    written = gzip.decompress(path.read_bytes()).decode().splitlines()
    assert recorded(name)[split] == manifest_sha256(written)
    ids = [line.split("\t")[0] for line in written]
    assert ids == sorted(ids)


def test_every_shipped_environment_with_tasks_of_its_own_has_its_hashes_recorded():
    made = {
        "agentrl/Guess-v0": {},
        "agentrl/ALFWorld-v0": {},
        "agentrl/WebShop-v0": {},
        "agentrl/ZeroTIR-v0": {"source": "knights"},
    }
    for id, options in made.items():
        env = text_env(make(id, **options))
        assert env.recorded.keys() == env.splits.keys()
    assert FILE.is_file()


@pytest.mark.parametrize("options", [{"receptacles": [5, 5]}, {"layouts": 8}])
def test_other_knobs_than_the_recorded_ones_have_none(options: dict[str, Any]):
    assert text_env(make("agentrl/ALFWorld-v0", **options)).recorded == {}
    assert text_env(make("agentrl/WebShop-v0", num_products=50)).recorded == {}
    assert text_env(make("agentrl/ZeroTIR-v0", digits=[2])).recorded == {}
