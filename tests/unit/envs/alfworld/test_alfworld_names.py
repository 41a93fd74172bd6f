from agentrl_envs.alfworld.names import demangle


def test_numbers_count_down_in_the_order_of_the_ids():
    assert demangle(["mug_bar_2", "mug_bar_1", "mug_bar_3"]) == {
        "mug_bar_1": "mug 3",
        "mug_bar_2": "mug 2",
        "mug_bar_3": "mug 1",
    }


def test_every_kind_counts_for_itself():
    assert demangle(["mug_bar_1", "cup_bar_1"]) == {"cup_bar_1": "cup 1", "mug_bar_1": "mug 1"}


def test_a_basin_is_no_sink():
    names = demangle(["sink_bar_1", "sink_bar_1_bar_sinkbasin", "bathtub_bar_1_bar_bathtubbasin"])
    assert list(names.values()) == ["bathtubbasin 1", "sink 1", "sinkbasin 1"]
