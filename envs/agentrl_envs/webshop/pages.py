"""What a customer reads: the texts of the original's pages, word for word, and a clearer form of our own."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Literal, NamedTuple

from agentrl_envs.webshop.session import Session

Mode = Literal["text", "text_plus", "text_rich", "url"]
"""`text` is the original's usual form. `text_plus` also shows what was chosen, has no "Next >" after the last results
and cuts long descriptions. `text_rich` and `url` are the original's other forms."""

SEPARATOR = " [SEP] "
MAX_CHARS = 1500
"""How much of a description or a feature `text_plus` shows."""
_ADDRESS = "http://127.0.0.1:3000"
_JSON_IN_HTML = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "'": "\\u0027"})
_PURCHASE = ("attrs", "category", "query", "product category")
_TARGET = ("asin", "options", "attrs", "price upper", "instuction text", "category", "product category", "query")
"""Words of the last page, as they are spelled there; the page never fills them in."""


class Node(NamedTuple):
    """A piece of visible text."""

    text: str
    kind: Literal["plain", "button", "option", "product"] = "plain"


def render(session: Session, mode: Mode, *, address: str = "") -> str:
    """Gives the text of the open page; `address` is what the original calls the session, which only URLs show."""
    return _RENDERERS[mode](session, address)


def _text(session: Session, address: str) -> str:
    del address
    return SEPARATOR.join(node.text.strip() for node in _nodes(session))


def _text_plus(session: Session, address: str) -> str:
    del address
    parts = [_cut(node.text.strip()) for node in _nodes(session)]
    if session.page == "item" and session.shop.catalogue.products[session.asin].options:
        chosen = ", ".join(f"{name}: {value}" for name, value in session.options.items())
        parts.insert(len(parts) - len(session.sub_pages) - 1, f"Chosen: {chosen or 'nothing yet'}")
    return SEPARATOR.join(parts)


def _text_rich(session: Session, address: str) -> str:
    url = _url(session, address)
    lines: list[str] = []
    clicked: list[str] = []
    for text, kind in _nodes(session):
        is_clicked = f'"{text}"' in url if kind == "option" else kind == "product" and text in session.seen
        word = "clicked button" if is_clicked else "button"
        if kind == "plain":
            lines.append(text)
        else:
            indent = {"button": "", "option": "  ", "product": "\n"}[kind]
            lines.append(f"{indent}[{word}] {text} [{word}_]")
        if is_clicked and kind == "option":
            clicked.insert(0, f"You have clicked {text}.")
    return "".join(f"{line}\n" for line in [*clicked, *lines])


def _url(session: Session, address: str) -> str:
    words = session.query.replace(" ", "+")
    match session.page:
        case "start":
            return f"{_ADDRESS}/{address}"
        case "results":
            return f"{_ADDRESS}/search_results/{address}/{words}/{session.number}"
        case "item":
            place = f"{address}/{session.asin}/{words}/{session.number}"
            return f"{_ADDRESS}/item_page/{place}/{json.dumps(session.options)}"
        case "sub":
            place = f"{address}/{session.asin}/{words}/{session.number}/{session.sub_page.capitalize()}"
            return f"{_ADDRESS}/item_sub_page/{place}/{session.options}"
        case "done":
            return f"{_ADDRESS}/done/{address}/{session.asin}/{session.options}"


_RENDERERS: Mapping[Mode, Callable[[Session, str], str]] = {
    "text": _text,
    "text_plus": _text_plus,
    "text_rich": _text_rich,
    "url": _url,
}


def _nodes(session: Session) -> list[Node]:
    """Gives what is visible: no empty text, and no white space with a line break in it."""
    pages = {"start": _start, "results": _results, "item": _item, "sub": _sub_page, "done": _done}
    nodes = pages[session.page](session)
    return [node for node in nodes if node.text and not (node.text.isspace() and "\n" in node.text)]


def _start(session: Session) -> Iterator[Node]:
    yield Node("WebShop")
    yield Node("Instruction: ")
    yield Node(session.goal.instruction)
    yield Node("Search", "button")


def _top(session: Session) -> Iterator[Node]:
    yield Node("Instruction:")
    yield Node(session.goal.instruction)
    yield Node("Back to Search", "button")


def _results(session: Session) -> Iterator[Node]:
    yield from _top(session)
    yield Node(f"Page {session.number} (Total results: {len(session.results)})")
    if session.number > 1:
        yield Node("< Prev", "button")
    if session.has_next:
        yield Node("Next >", "button")
    for asin in session.listed:
        product = session.shop.catalogue.products[asin]
        yield Node(asin, "product")
        yield Node(product.title)
        yield Node(product.price_tag)


def _item(session: Session) -> Iterator[Node]:
    product = session.shop.catalogue.products[session.asin]
    yield from _top(session)
    yield Node("< Prev", "button")
    for name, values in product.options.items():
        yield Node(name)
        yield from (Node(value, "option") for value in values)
    yield Node(product.title)
    yield Node(f"Price: {product.price_tag}")
    yield Node("Rating: N.A.")
    yield from (Node(name.capitalize(), "button") for name in session.sub_pages)
    yield Node("Buy Now", "button")


def _sub_page(session: Session) -> Iterator[Node]:
    product = session.shop.catalogue.products[session.asin]
    yield from _top(session)
    yield Node("< Prev", "button")
    match session.sub_page:
        case "description":
            yield Node(product.description)
        case "features":
            yield from (Node(f" {bullet}") for bullet in product.bullets)
        case "attributes":
            yield from (Node(f" {attribute}") for attribute in product.attributes)
            yield from (Node(text) for text in (product.category, product.query, product.product_category))
        case _:  # the original loads no reviews
            return


def _done(session: Session) -> Iterator[Node]:
    assert session.score is not None, "the last page follows a purchase"
    options = json.dumps(session.options, sort_keys=True).translate(_JSON_IN_HTML)
    words = ["Thank you for shopping with us!", "Your code: ", "None", " (Paste it in your MTurk interface.)"]
    words += ["Purchased", "asin", session.asin, "options", options]
    words += [word for name in _PURCHASE for word in (name, "None")]
    words += ["Target", *_TARGET, "Goal ", "None"]
    words += ["Reward", "Your score (min 0.0, max 1.0)", str(session.score.reward), "Reward Details ", "None"]
    yield from map(Node, words)


def _cut(text: str) -> str:
    return text if len(text) <= MAX_CHARS else f"{text[:MAX_CHARS]} ..."
