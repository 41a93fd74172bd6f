from agentrl_envs.alfworld.house import FAMILIES, LAMPS, OPENABLE, ROOMS, THINGS, TREATMENTS

PLACES = {place for room in ROOMS.values() for place in (*room.fixed, *room.others)}


def test_everything_has_a_home_in_some_room():
    homeless = [name for name, thing in (THINGS | LAMPS).items() if not thing.homes & PLACES]
    assert homeless == []


def test_homes_and_openable_receptacles_stand_in_some_room():
    assert {home for thing in (THINGS | LAMPS).values() for home in thing.homes} <= PLACES
    assert OPENABLE <= PLACES


def test_lamps_cannot_be_picked_up():
    assert not LAMPS.keys() & THINGS.keys()


def test_what_can_be_done_to_a_thing_is_in_the_game():
    assert {action for thing in THINGS.values() for action in thing.actions} == {"clean", "heat", "cool", "slice"}


def test_every_treatment_has_a_family_a_receptacle_and_things_to_treat():
    assert TREATMENTS.keys() <= set(FAMILIES)
    for verb, station in TREATMENTS.values():
        assert station in PLACES
        assert any(verb in thing.actions for thing in THINGS.values())


def test_no_room_needs_more_receptacles_than_the_smallest_house_has():
    assert max(len(room.fixed) for room in ROOMS.values()) <= 5


def test_no_name_is_another_name_in_different_letters():
    names = [*THINGS, *LAMPS, *PLACES]
    assert len({name.lower() for name in names}) == len(names)
