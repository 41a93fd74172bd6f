import logging

import pytest

from agentrl.errors import DataError
from agentrl_envs.webshop.catalogue import read_products


def test_a_product_is_read_as_the_original_reads_it(items, attributes):
    shirt = read_products(items, attributes)[0]
    assert (shirt.title, shirt.query, shirt.price_tag) == ("Acme Cotton Shirt", "shirts", "$10.0 to $19.0")
    assert dict(shirt.options) == {"color": ("navy", "red | white"), "size": ("large", "small")}
    assert shirt.bullets == ("Machine wash", "")
    assert shirt.text == "acme cotton shirt soft. machine wash color: navy, red | white, and size: large, small"


def test_what_is_missing_has_the_originals_values(items, attributes):
    products = {one.asin: one for one in read_products(items, attributes)}
    lamp = products["B00000LAMP"]
    assert (lamp.pricing, lamp.price_tag, lamp.attributes) == ((100.0,), "$100.0", ("DUMMY_ATTR",))
    assert (lamp.bullets, dict(lamp.options), lamp.instruction) == (("",), {}, None)
    assert products["B0000TOWEL"].bullets == ("Cotton",)


def test_products_without_an_asin_of_their_own_are_left_out_and_counted(items, attributes, caplog):
    more = [{**items[0], "name": "Second"}, {**items[0], "asin": "nan"}, {**items[0], "asin": "B0000000000"}]
    with caplog.at_level(logging.WARNING):
        products = read_products([*items, *more], attributes)
    assert [one.title for one in products] == [one["name"] for one in items]
    assert "left out 3 products" in caplog.text


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"asin": None}, "product 1: has no asin"),
        ({"asin": ""}, "product 1: has no asin"),
        ({"name": 5}, "product 1 (B0000TOWEL): name is int, not text"),
        ({"pricing": "dear"}, "pricing 'dear' is no price in dollars"),
        ({"pricing": "$"}, "pricing '$' is no price in dollars"),
        ({"pricing": "$1.2.3"}, "pricing '$1.2.3' is no price in dollars"),
        ({"pricing": 5}, "pricing is int, not text"),
        ({"customization_options": ["x"]}, "customization_options is list, not an object"),
        ({"customization_options": {"Color": [{}]}}, "no 'value'"),
        ({"customization_options": {"Color": [5]}}, "product 1 (B0000TOWEL)"),
        ({"small_description": [5]}, "small_description is not a list of texts"),
        ({"full_description": None}, "full_description is NoneType, not text"),
    ],
)
def test_a_malformed_product_is_an_error_that_says_where_and_what(items, attributes, change, told):
    items[1] |= change
    with pytest.raises(DataError) as error:
        read_products(items, attributes, where="shop.json")
    assert str(error.value).startswith("shop.json: product 1")
    assert told in str(error.value)


def test_all_problems_are_told_at_once_but_no_more_than_five(items, attributes):
    for one in items:
        one["pricing"] = "dear"
    with pytest.raises(DataError, match=r"(product \d+.*){5}; and 19 more; mend or remove"):
        read_products(items, attributes)


@pytest.mark.parametrize("content", [None, {}, "text", 5, [], [{"asin": "nan", "name": "x"}]])
def test_a_file_without_products_is_an_error(content):
    with pytest.raises(DataError):
        read_products(content, {})


@pytest.mark.parametrize("entry", [5, {}, {"instruction": "x"}, {"instruction": 5, "instruction_attributes": []}])
def test_a_malformed_request_of_a_person_is_an_error(items, attributes, entry):
    with pytest.raises(DataError, match="B0000SHIRT"):
        read_products(items, attributes, {"B0000SHIRT": [entry]})
