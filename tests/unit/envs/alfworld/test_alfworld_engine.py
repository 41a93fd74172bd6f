import random

import pytest

from agentrl_envs.alfworld.engine import Played, PythonEngine

NOTHING = "Nothing happens."


def play(game, *commands, **options) -> Played:
    """The last answer; every command but the last must be possible."""
    engine = PythonEngine(**options)
    played = engine.reset(game)
    for command in commands:
        assert played.accepted
        played = engine.step(command)
    return played


def test_the_welcome_shows_the_room_and_the_task(kitchen):
    assert play(kitchen) == Played(
        "-= Welcome to TextWorld, ALFRED! =-\n\nYou are in the middle of a room. Looking quickly around you, you see "
        "a countertop 1, a drawer 2, a drawer 1, a fridge 1, a microwave 1, a sidetable 1, and a sinkbasin 1.\n\n"
        "Your task is to: do it.",
        (
            "go to countertop 1",
            "go to drawer 1",
            "go to drawer 2",
            "go to fridge 1",
            "go to microwave 1",
            "go to sidetable 1",
            "go to sinkbasin 1",
            "help",
            "inventory",
            "look",
        ),
        won=False,
        accepted=True,
    )


def test_looking_before_walking_sees_nothing(kitchen):
    text = "You are in the middle of a room. Looking quickly around you, you see nothing."
    assert play(kitchen, "look").observation == text


@pytest.mark.parametrize(
    ("commands", "observation"),
    [
        (
            ["go to countertop 1"],
            "You arrive at countertop 1. On the countertop 1, you see a apple 2, a knife 1, and a potato 1.",
        ),
        (["go to fridge 1"], "You arrive at fridge 1. The fridge 1 is closed."),
        (["go to fridge 1", "open fridge 1"], "You open the fridge 1. The fridge 1 is open. In it, you see a apple 1."),
        (["go to fridge 1", "open fridge 1", "close fridge 1"], "You close the fridge 1."),
        (
            ["go to microwave 1", "open microwave 1", "examine microwave 1"],
            "The microwave 1 is open. In it, you see nothing.",
        ),
        (["go to sinkbasin 1", "examine sinkbasin 1"], "On the sinkbasin 1, you see nothing."),
        (["go to sinkbasin 1", "look"], "You are facing the sinkbasin 1. Next to it, you see nothing."),
        (["go to drawer 1", "look"], "You are facing the drawer 2, and drawer 1. Next to it, you see nothing."),
        (["inventory"], "You are not carrying anything."),
        (["go to countertop 1", "take apple 2 from countertop 1"], "You pick up the apple 2 from the countertop 1."),
        (["go to countertop 1", "take apple 2 from countertop 1", "inventory"], "You are carrying: a apple 2."),
    ],
)
def test_answers_read_like_the_stock_engine(kitchen, commands, observation):
    assert play(kitchen, *commands).observation == observation


@pytest.mark.parametrize("command", ["", "jump", "Look", "go to mars 1", "go to", "take apple 2 from countertop 1"])
def test_what_is_not_possible_changes_nothing(kitchen, command):
    before = play(kitchen)
    assert play(kitchen, command) == Played(NOTHING, before.admissible, won=False, accepted=False)


def test_spaces_around_a_command_do_not_matter(kitchen):
    assert play(kitchen, "  inventory\n").accepted


def test_walking_on_the_spot_is_not_possible(kitchen):
    assert play(kitchen, "go to drawer 2", "go to drawer 1").observation == NOTHING
    assert play(kitchen, "go to drawer 2", "open drawer 1").accepted


def test_a_closed_receptacle_gives_and_takes_nothing(kitchen):
    closed = play(kitchen, "go to countertop 1", "take apple 2 from countertop 1", "go to fridge 1")
    assert "move apple 2 to fridge 1" not in closed.admissible
    assert "take apple 1 from fridge 1" not in play(kitchen, "go to fridge 1").admissible
    assert "take apple 1 from fridge 1" in play(kitchen, "go to fridge 1", "open fridge 1").admissible


def test_a_receptacle_takes_only_what_it_can_contain(kitchen):
    held = play(kitchen, "go to countertop 1", "take potato 1 from countertop 1")
    assert "move potato 1 to countertop 1" not in held.admissible


def test_one_hand_holds_one_item(kitchen):
    held = play(kitchen, "go to countertop 1", "take apple 2 from countertop 1")
    assert not [command for command in held.admissible if command.startswith("take ")]


def test_only_the_item_in_hand_can_be_examined(kitchen):
    assert "examine apple 2" not in play(kitchen, "go to countertop 1").admissible
    held = play(kitchen, "go to countertop 1", "take apple 2 from countertop 1", "examine apple 2")
    assert held.observation == "There's nothing special about apple 2."


def test_a_container_shows_what_is_in_it(kitchen):
    held = play(kitchen, "go to sidetable 1", "take bowl 1 from sidetable 1", "examine bowl 1")
    assert held.observation == "This is a normal bowl 1. In it, you see a keychain 1."


def test_treatments_work_through_closed_doors_and_undo_each_other(kitchen):
    apple = [
        "go to countertop 1",
        "take apple 2 from countertop 1",
        "go to microwave 1",
        "heat apple 2 with microwave 1",
    ]
    assert play(kitchen, *apple).observation == "You heat the apple 2 using the microwave 1."
    cooled = play(kitchen, *apple, "go to fridge 1", "cool apple 2 with fridge 1", "examine apple 2")
    assert cooled.observation == "This is a cold apple 2."


def test_an_item_may_be_cool_from_the_start(kitchen):
    potato = play(kitchen, "go to countertop 1", "take potato 1 from countertop 1", "examine potato 1")
    assert potato.observation == "This is a cold potato 1."


def test_only_what_has_the_trait_is_treated(kitchen):
    knife = play(kitchen, "go to countertop 1", "take knife 1 from countertop 1", "go to sinkbasin 1")
    assert "clean knife 1 with sinkbasin 1" not in knife.admissible


def test_a_knife_in_hand_slices_what_is_near(kitchen):
    sliced = play(kitchen, "go to countertop 1", "take knife 1 from countertop 1", "slice apple 2 with knife 1")
    assert sliced.observation == "You sliced the apple 2 with the knife 1."
    assert "slice potato 1 with knife 1" not in sliced.admissible


def test_a_lamp_never_goes_off(kitchen):
    again = play(kitchen, "go to sidetable 1", "use desklamp 1", "use desklamp 1")
    assert again.observation == "You turn on the desklamp 1."


def test_an_item_taken_out_of_one_of_its_two_receptacles_stays_in_the_other(kitchen):
    start = ["go to drawer 1", "open drawer 1", "open drawer 2"]
    taken = play(kitchen, *start, "take pencil 1 from drawer 1", "examine drawer 2")
    assert taken.observation == "The drawer 2 is open. In it, you see a pencil 1."


def test_an_item_moved_to_the_neighboring_receptacle_lies_next_to_the_old_one(kitchen):
    start = ["go to drawer 1", "open drawer 1", "open drawer 2", "take pencil 1 from drawer 1"]
    moved = play(kitchen, *start, "move pencil 1 to drawer 2", "look")
    assert moved.observation == "You are facing the drawer 2, and drawer 1. Next to it, you see a pencil 1."


def test_the_old_spelling_of_move_is_an_option(kitchen):
    held = ["go to countertop 1", "take apple 2 from countertop 1"]
    assert play(kitchen, *held, "put apple 2 in/on countertop 1").observation == NOTHING
    moved = play(kitchen, *held, "put apple 2 in/on countertop 1", accept_put=True)
    assert moved.observation == "You move the apple 2 to the countertop 1."
    assert not [command for command in moved.admissible if command.startswith("put ")]


APPLE = ("go to countertop 1", "take apple 2 from countertop 1")
INTO_FRIDGE = ("go to fridge 1", "open fridge 1", "move apple 2 to fridge 1")
WINS = {
    "pick_clean_then_place_in_recep": (*APPLE, "go to sinkbasin 1", "clean apple 2 with sinkbasin 1", *INTO_FRIDGE),
    "pick_heat_then_place_in_recep": (*APPLE, "go to microwave 1", "heat apple 2 with microwave 1", *INTO_FRIDGE),
    "pick_cool_then_place_in_recep": (
        *APPLE,
        "go to fridge 1",
        "cool apple 2 with fridge 1",
        "go to countertop 1",
        "move apple 2 to countertop 1",
    ),
    "pick_two_obj_and_place": (
        *APPLE,
        "go to sidetable 1",
        "move apple 2 to sidetable 1",
        "go to fridge 1",
        "open fridge 1",
        "take apple 1 from fridge 1",
        "go to sidetable 1",
        "move apple 1 to sidetable 1",
    ),
    "look_at_obj_in_light": ("go to sidetable 1", "use desklamp 1", "take bowl 1 from sidetable 1"),
}


@pytest.mark.parametrize("task_type", WINS)
def test_a_game_is_won_by_its_last_action_and_not_before(kitchens, task_type):
    engine = PythonEngine()
    engine.reset(kitchens[task_type])
    assert [engine.step(command).won for command in WINS[task_type]] == [False] * (len(WINS[task_type]) - 1) + [True]


def test_untreated_items_do_not_win(kitchens):
    assert not play(kitchens["pick_clean_then_place_in_recep"], *APPLE, *INTO_FRIDGE).won


def test_an_item_lit_by_a_lamp_elsewhere_does_not_win(kitchens):
    commands = ("go to sidetable 1", "use desklamp 1", "take bowl 1 from sidetable 1", "go to sinkbasin 1")
    assert not play(kitchens["look_at_obj_in_light"], *commands).won


def test_a_win_can_be_undone(kitchens):
    game = kitchens["pick_heat_then_place_in_recep"]
    assert not play(game, *WINS["pick_heat_then_place_in_recep"], "take apple 2 from fridge 1").won


def test_engines_that_share_a_game_do_not_disturb_each_other(kitchen):
    first, second = PythonEngine(), PythonEngine()
    for engine in (first, second):
        engine.reset(kitchen)
        engine.step("go to countertop 1")
    first.step("take apple 2 from countertop 1")
    assert second.step("take apple 2 from countertop 1").accepted


def test_every_admissible_command_is_accepted_and_they_are_sorted(kitchen):
    rng = random.Random(0)
    engine = PythonEngine()
    played = engine.reset(kitchen)
    for _ in range(500):
        assert list(played.admissible) == sorted(set(played.admissible))
        played = engine.step(rng.choice(played.admissible))
        assert played.accepted
