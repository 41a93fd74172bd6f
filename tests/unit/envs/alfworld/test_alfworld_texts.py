import pytest

from agentrl_envs.alfworld import texts


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ([], "nothing"),
        (["cup 1"], "a cup 1"),
        (["cup 1", "mug 2"], "a cup 1, and a mug 2"),
        (["cup 1", "mug 2", "apple 1"], "a cup 1, a mug 2, and a apple 1"),
    ],
)
def test_listings_read_like_the_stock_engine(names, text):
    assert texts.a_listing(names) == text


@pytest.mark.parametrize(
    ("qualities", "text"),
    [
        (set(), "There's nothing special about apple 1."),
        ({"cool"}, "This is a cold apple 1."),
        ({"clean", "hot"}, "This is a hot and clean apple 1."),
        ({"cool", "sliced"}, "This is a cool sliced apple 1."),
        ({"clean", "hot", "sliced"}, "This is a hot and clean sliced apple 1."),
        ({"on"}, "This apple 1 is on."),
    ],
)
def test_an_examined_item_shows_all_its_qualities(qualities, text):
    assert texts.examined("apple 1", qualities) == text
