import json

import pytest

from agentrl_envs.webshop.pages import render
from agentrl_envs.webshop.replay import main
from agentrl_envs.webshop.session import Session


def goal_record(goal):
    return {
        "asin": goal.asin,
        "instruction_text": goal.instruction,
        "attributes": list(goal.attributes),
        "goal_options": dict(goal.options),
        "price_upper": goal.price_upper,
    }


@pytest.fixture
def recorded(shop):
    """An episode in the form of the recorded trajectories."""
    number, goal = next((n, one) for n, one in enumerate(shop.goals.values()) if one.id == "B0000SHIRT/000")
    session = Session(shop, goal)
    steps = []
    for action in (None, "search[shirt]", "click[nothing]", "click[b0000shirt]", "click[buy now]"):
        if action:
            session.act(action)
        steps.append(
            {
                "action": action,
                "observation": render(session, "text"),
                "reward": session.score.reward if session.score else 0.0,
                "done": session.page == "done",
                "available": {"has_search_bar": session.page == "start", "clickables": session.clickables()},
                "options": dict(session.options),
            }
        )
    return {"episodes": [{"goal_index": number, "goal": goal_record(goal), "steps": steps}]}


@pytest.fixture
def folder(tmp_path, items, attributes):
    (tmp_path / "items_shuffle.json").write_text(json.dumps(items))
    (tmp_path / "items_ins_v2.json").write_text(json.dumps(attributes))
    return tmp_path


def replay(folder, content):
    (folder / "golden_x.json").write_text(json.dumps(content))
    return main([str(folder)])


def test_an_episode_repeats_itself(folder, recorded, capsys):
    assert replay(folder, recorded) == 0
    assert capsys.readouterr().out == "golden_x.json: 6 records, 0 mismatches\n"


@pytest.mark.parametrize(
    ("field", "value"),
    [("observation", "x"), ("reward", 0.5), ("done", True), ("options", {"color": "navy"}), ("available", {})],
)
def test_every_recorded_field_is_compared(folder, recorded, capsys, field, value):
    recorded["episodes"][0]["steps"][2][field] = value
    assert replay(folder, recorded) == 1
    told = capsys.readouterr().out
    assert f"step 2: {field}\n  recorded {value!r}" in told
    assert told.endswith("golden_x.json: 6 records, 1 mismatches\n")


def test_the_goal_is_compared(folder, recorded):
    recorded["episodes"][0]["goal"]["price_upper"] = 5.0
    assert replay(folder, recorded) == 1


def test_searches_and_terms_are_compared(folder, shop, capsys):
    hits = [[id, round(score, 4)] for id, score in shop.index.search("acme shirt", 50)]
    content = {
        "analysis": [{"text": "Red shirts", "tokens": ["red", "shirt"]}],
        "search": [{"query": "acme shirt", "hits": hits}],
    }
    assert replay(folder, content) == 0
    content["analysis"][0]["tokens"] = ["red", "shirts"]
    content["search"][0]["hits"] = hits[::-1]
    assert replay(folder, content) == 1
    content["search"][0]["hits"] = [[hits[0][0], hits[0][1] + 0.01], *hits[1:]]
    assert replay(folder, content) == 1
    assert "2 records, 2 mismatches" in capsys.readouterr().out


@pytest.mark.parametrize("content", [{}, [], {"cases": [{}]}, {"episodes": [{"goal_index": 99}]}, {"unknown": 1}])
def test_a_file_of_no_known_kind_is_an_error_that_names_it(folder, content, capsys):
    assert replay(folder, content) == 1
    assert "golden_x.json: no recording of WebShop" in capsys.readouterr().err


def test_a_folder_without_recordings_is_an_error(tmp_path, capsys):
    assert main([str(tmp_path)]) == 1
    assert "no golden_*.json in it" in capsys.readouterr().err
