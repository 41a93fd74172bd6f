import pytest

from agentrl_envs.webshop.session import Session


@pytest.fixture
def session(shop):
    return Session(shop, shop.goals["B0000SHIRT/000"])


def play(session, *actions):
    return [session.act(action) for action in actions]


def state(session):
    return (session.page, session.query, session.results, session.number, session.asin, dict(session.options))


def test_a_visit_leads_from_the_search_to_the_purchase(session):
    actions = ("search[shirt]", "click[b0000shirt]", "click[navy]", "click[large]", "click[buy now]")
    assert play(session, *actions) == [True] * 5
    assert session.page == "done"
    assert session.score is not None
    assert session.score.reward == 1
    assert session.clickables() == []


def test_the_start_page_lists_search_but_a_click_on_it_does_nothing(session):
    assert session.clickables() == ["search"]
    assert play(session, "click[search]") == [False]


def test_results_come_ten_to_a_page_without_end(session):
    play(session, "search[mug]")
    assert len(session.results) == 21
    assert [len(session.listed) for _ in range(4) if session.act("click[next >]")] == [10, 1, 0, 0]
    assert session.clickables() == ["back to search", "< prev", "next >"]


def test_a_bounded_visit_ends_at_the_last_results(session):
    session.bounded = True
    play(session, "search[mug]")
    assert play(session, "click[next >]", "click[next >]", "click[next >]") == [True, True, False]
    assert "next >" not in session.clickables()


def test_the_first_results_have_no_page_before_them(session):
    assert play(session, "search[mug]", "click[< prev]", "click[next >]", "click[< prev]") == [True, False, True, True]
    assert session.number == 1


def test_an_item_offers_its_pages_and_option_values_each_once(session):
    play(session, "search[shirt]", "click[b0000shirt]")
    buttons = ["back to search", "< prev", "description", "features", "reviews", "buy now"]
    assert session.clickables() == [*buttons, "navy", "red | white", "large", "small"]
    session.show_attributes = True
    assert "attributes" in session.clickables()


def test_pages_about_an_item_keep_its_options_and_leaving_it_clears_them(session):
    play(session, "search[shirt]", "click[b0000shirt]", "click[navy]", "click[features]", "click[< prev]")
    assert session.options == {"color": "navy"}
    play(session, "click[< prev]")
    assert (session.page, session.options) == ("results", {})


@pytest.mark.parametrize("leave", ["search[x]", "click[back to search]", "click[< prev]"])
def test_every_way_out_of_an_item_clears_its_options(session, leave):
    play(session, "search[shirt]", "click[b0000shirt]", "click[navy]", leave)
    assert session.options == {}


def test_a_later_choice_of_an_option_replaces_the_earlier(session):
    play(session, "search[shirt]", "click[b0000shirt]", "click[large]", "click[navy]", "click[small]")
    assert session.options == {"size": "small", "color": "navy"}


def test_a_search_is_taken_on_every_page(session):
    for action in ("search[shirt]", "search[shirt]", "click[b0000shirt]", "search[mug]", "click[b00000muga]"):
        assert session.act(action)
    assert play(session, "click[features]", "search[lamp]") == [True, True]
    assert session.results == ("B00000LAMP",)


@pytest.mark.parametrize(
    "action",
    ["", "buy", "search[]", "click[]", "Search[x]", "click[buy now", "click[nothing]", "click[search]", "buy[shirt]"],
)
def test_other_actions_change_nothing(session, action):
    play(session, "search[shirt]", "click[b0000shirt]", "click[navy]")
    before = state(session)
    assert play(session, action) == [False]
    assert state(session) == before


@pytest.mark.parametrize("query", ["<r>", "<c>", "<c> garden", "<a> x", "<q> shirts", "<your query>"])
def test_the_originals_special_searches_are_words_like_any_other(session, query):
    assert session.act(f"search[{query}]")
    plain = "".join(letter for letter in query if letter not in "<>")
    assert session.results == session.shop.search(plain)


def test_sessions_share_nothing_that_changes(shop):
    one, other = (Session(shop, shop.goals["B0000SHIRT/000"]) for _ in range(2))
    play(one, "search[shirt]", "click[b0000shirt]", "click[navy]")
    assert (other.page, other.options, other.seen) == ("start", {}, set())
