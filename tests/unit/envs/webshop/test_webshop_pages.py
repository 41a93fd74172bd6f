import pytest

from agentrl_envs.webshop.pages import MAX_CHARS, Mode, render
from agentrl_envs.webshop.session import Session


@pytest.fixture
def session(shop):
    return Session(shop, shop.goals["B0000SHIRT/000"])


@pytest.fixture
def text(session):
    """What the last page says after actions, without the instruction that all pages have."""

    def after(*actions: str, mode: Mode = "text") -> str:
        for action in actions:
            assert session.act(action)
        return render(session, mode, address="7").replace(session.goal.instruction, "...")

    return after


SHIRT = ("search[shirt]", "click[b0000shirt]")
TOP = "Instruction: [SEP] ... [SEP] Back to Search"


def test_the_start_page(text):
    assert text() == "WebShop [SEP] Instruction: [SEP] ... [SEP] Search"


def test_a_page_of_results_lists_asin_title_and_price(text):
    assert text("search[acme]") == (
        f"{TOP} [SEP] Page 1 (Total results: 2) [SEP] Next > [SEP] B0000TOWEL [SEP] Acme Towel [SEP] $20.0 "
        "[SEP] B0000SHIRT [SEP] Acme Cotton Shirt [SEP] $10.0 to $19.0"
    )


def test_a_later_page_of_results_leads_back(text):
    assert text("search[acme]", "click[next >]") == (f"{TOP} [SEP] Page 2 (Total results: 2) [SEP] < Prev [SEP] Next >")


def test_an_item_shows_options_but_not_what_was_chosen(text):
    item = text(*SHIRT)
    assert item == (
        f"{TOP} [SEP] < Prev [SEP] color [SEP] navy [SEP] red | white [SEP] size [SEP] large [SEP] small "
        "[SEP] Acme Cotton Shirt [SEP] Price: $10.0 to $19.0 [SEP] Rating: N.A. "
        "[SEP] Description [SEP] Features [SEP] Reviews [SEP] Buy Now"
    )
    assert text("click[navy]") == item


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("description", " [SEP] Soft."),
        ("features", " [SEP] Machine wash [SEP] "),  # the empty bullet leaves an empty part
        ("reviews", ""),
        ("attributes", " [SEP] machine wash [SEP] fashion [SEP] shirts [SEP] Clothing \u203a Men \u203a Shirts"),
    ],
)
def test_the_pages_about_an_item(session, text, page, expected):
    session.show_attributes = True
    assert text(*SHIRT, f"click[{page}]") == f"{TOP} [SEP] < Prev{expected}"


def test_the_last_page_tells_what_was_bought_and_the_score(text):
    last = text(*SHIRT, "click[red | white]", "click[buy now]")
    assert ' [SEP] B0000SHIRT [SEP] options [SEP] {"color": "red | white"} [SEP] ' in last
    assert last.endswith("Your score (min 0.0, max 1.0) [SEP] 0.5 [SEP] Reward Details [SEP] None")


def test_options_on_the_last_page_are_sorted_and_safe_in_html(session, text):
    text(*SHIRT)
    session.options = {"b": "<'&'>", "a": "x"}
    expected = '{"a": "x", "b": "\\u003c\\u0027\\u0026\\u0027\\u003e"}'
    assert f" [SEP] options [SEP] {expected} [SEP] " in text("click[buy now]")


def test_text_plus_shows_what_was_chosen(text):
    assert " [SEP] Chosen: nothing yet [SEP] Description" in text(*SHIRT, mode="text_plus")
    chosen = text("click[navy]", "click[large]", mode="text_plus")
    assert " [SEP] Chosen: color: navy, size: large [SEP] Description [SEP] Features [SEP] Reviews [SEP] Buy" in chosen


def test_text_plus_says_nothing_of_choices_where_there_are_none(text):
    assert "Chosen" not in text("search[lamp]", "click[b00000lamp]", mode="text_plus")


def test_text_plus_cuts_long_descriptions(session, text, items, attributes):
    from agentrl_envs.webshop.catalogue import read_products
    from agentrl_envs.webshop.files import make_shop

    items[0]["full_description"] = "x" * 20_000
    session.shop = make_shop(read_products(items, attributes), {})
    assert text(*SHIRT, "click[description]", mode="text_plus").endswith(f"{'x' * MAX_CHARS} ...")
    assert text(mode="text").endswith("x" * 20_000)


def test_text_rich_marks_buttons_and_what_was_clicked(text):
    rich = text(*SHIRT, "click[navy]", "click[large]", mode="text_rich")
    assert rich.startswith(
        "You have clicked large.\nYou have clicked navy.\nInstruction:\n...\n[button] Back to Search"
    )
    assert "color\n  [clicked button] navy [clicked button_]\n  [button] red | white [button_]\nsize\n" in rich


def test_text_rich_marks_products_that_were_opened(text):
    rich = text("search[acme]", "click[b0000towel]", "click[< prev]", mode="text_rich")
    assert "\n\n[clicked button] B0000TOWEL [clicked button_]\nAcme Towel\n$20.0\n" in rich
    assert "\n\n[button] B0000SHIRT [button_]\n" in rich


def test_urls_show_the_state(text):
    assert text(mode="url") == "http://127.0.0.1:3000/7"
    assert text("search[acme shirt]", mode="url").endswith("/search_results/7/acme+shirt/1")
    assert text("click[b0000shirt]", "click[navy]", mode="url").endswith(
        '/item_page/7/B0000SHIRT/acme+shirt/1/{"color": "navy"}'
    )
    assert text("click[features]", mode="url").endswith(
        "/item_sub_page/7/B0000SHIRT/acme+shirt/1/Features/{'color': 'navy'}"
    )
    assert text("click[< prev]", "click[buy now]", mode="url").endswith("/done/7/B0000SHIRT/{'color': 'navy'}")
