import pytest

from agentrl.errors import DataError
from agentrl_envs.alfworld.games import Game, Goal

GRAMMAR = '"task": [ { "rhs": "Your task is to: put a mug in desk." } ] template :: "move {o} to {r}";'
OFFICIAL_ID = "valid_seen/pick_and_place_simple-Mug-None-Desk-308/trial_T1"


def test_a_generated_game_says_its_task_and_type(kitchen_document):
    game = Game.parse(kitchen_document, id="any name")
    assert (game.id, game.task, game.task_type) == ("any name", "do it.", "pick_and_place_simple")


def test_a_task_is_one_sentence_with_or_without_its_introduction(kitchen_document):
    assert Game.parse({**kitchen_document, "task": "do it"}, id="any").task == "do it."


def test_an_official_game_has_its_task_in_the_grammar_and_its_type_in_the_id(kitchen_document):
    official = {"pddl_problem": kitchen_document["pddl_problem"], "grammar": GRAMMAR, "walkthrough": ["look"]}
    game = Game.parse(official, id=OFFICIAL_ID)
    assert (game.task, game.task_type, game.walkthrough) == ("put a mug in desk.", "pick_and_place_simple", ("look",))


def test_every_goal_is_understood(kitchens):
    assert {task_type: game.goal for task_type, game in kitchens.items()} == {
        "pick_and_place_simple": Goal("penciltype", 1, "sidetabletype"),
        "pick_clean_then_place_in_recep": Goal("appletype", 1, "fridgetype", trait="cleanable", quality="clean"),
        "pick_heat_then_place_in_recep": Goal("appletype", 1, "fridgetype", trait="heatable", quality="hot"),
        "pick_cool_then_place_in_recep": Goal("appletype", 1, "countertoptype", trait="coolable", quality="cool"),
        "pick_two_obj_and_place": Goal("appletype", 2, "sidetabletype"),
        "look_at_obj_in_light": Goal("bowltype", lamp_type="desklamptype"),
    }


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"pddl_problem": "(define)"}, r"no \(:init"),
        ({"pddl_problem": "(:init (atLocation agent1 loc_0)) (:goal (and))"}, "none of ALFWorld's six"),
        ({"task_type": "pick_and_juggle"}, "pick_and_juggle"),
        ({"grammar": 'template :: "put {o} in/on {r}";'}, "before 0.4"),
        ({"pddl_problem": "(:init (objectType Mug_bar_1)) (:goal (and))"}, "not a playable"),
    ],
)
def test_what_is_no_game_is_refused_by_name(kitchen_document, change, complaint):
    with pytest.raises(DataError, match=f"^broken/game: .*{complaint}"):
        Game.parse({**kitchen_document, **change}, id="broken/game")
