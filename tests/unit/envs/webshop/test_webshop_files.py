import json

import pytest

from agentrl.errors import DataError
from agentrl_envs.webshop.files import SMALL, Files, find_items, shipped_nouns


@pytest.fixture
def write(tmp_path):
    def to(name, content):
        (tmp_path / name).write_text(content if isinstance(content, str) else json.dumps(content))
        return tmp_path / name

    return to


def test_files_that_belong_together_are_read(write, items, attributes, human):
    path = write("items_shuffle_x.json", items)
    write("items_ins_v2_x.json", attributes)
    write("items_ins_v2.json", {})
    write("items_human_ins.json", human)
    write("title_nouns_x.json", {"nouns": {"B0000SHIRT": ["shirt"]}})
    files = Files.read(path)
    shirt = files.products[0]
    assert (shirt.attributes, shirt.human[0].options) == (("machine wash",), ("navy",))
    assert files.nouns == {"B0000SHIRT": ["shirt"]}


def test_without_a_file_of_nouns_those_that_ship_are_known(write, items, attributes):
    path = write("items_shuffle.json", items)
    write("items_ins_v2.json", attributes)
    assert Files.read(path).nouns == shipped_nouns()
    assert len(shipped_nouns()) == 1000


@pytest.mark.data
def test_the_nouns_that_ship_are_the_taggers(data_dir):
    assert shipped_nouns() == json.loads((data_dir / "webshop" / "title_nouns_1000.json").read_text())["nouns"]


def test_attributes_must_be_there(write, items):
    with pytest.raises(DataError, match=r"no items_ins_v2_x.json beside items_shuffle_x.json"):
        Files.read(write("items_shuffle_x.json", items))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("items_shuffle.json", "{"),
        ("items_shuffle.json", "5"),
        ("items_ins_v2.json", "\0"),
        ("items_ins_v2.json", "[]"),
        ("items_human_ins.json", "[1]"),
        ("title_nouns.json", "{}"),
        ("title_nouns.json", '{"nouns": {"B": 5}}'),
    ],
)
def test_a_broken_file_is_an_error_that_names_it(write, items, attributes, name, content):
    path = write("items_shuffle.json", items)
    write("items_ins_v2.json", attributes)
    write(name, content)
    with pytest.raises(DataError, match=r"items_shuffle.json|" + name):
        Files.read(path)


def test_files_are_looked_for_where_they_usually_are(tmp_path):
    found = []
    for folder in (tmp_path / "a" / "webshop", tmp_path / "h" / ".cache" / "agentrl" / "webshop"):
        folder.mkdir(parents=True)
        (folder / SMALL).touch()
        found.append(folder / SMALL)
    assert find_items(None, {"AGENTRL_DATA": str(tmp_path / "a"), "HOME": str(tmp_path / "h")}) == found[0]
    assert find_items(None, {"HOME": str(tmp_path / "h")}) == found[1]
    assert find_items(tmp_path / "a", {}) == found[0]
    assert find_items(found[1], {}) == found[1]


def test_of_several_files_the_small_one_is_taken_and_else_it_is_asked(tmp_path):
    for name in ("items_shuffle.json", "items_shuffle_x.json"):
        (tmp_path / name).touch()
    with pytest.raises(DataError, match=r"several files of products \(items_shuffle.json, items_shuffle_x.json\)"):
        find_items(tmp_path, {})
    (tmp_path / SMALL).touch()
    assert find_items(tmp_path, {}) == tmp_path / SMALL
