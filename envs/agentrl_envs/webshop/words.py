"""Words of our own that generated products are made of; none is from a real shop."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

BRANDS = (
    *(
        "Alvora",
        "Bendix",
        "Corvale",
        "Dunmere",
        "Elvano",
        "Fenwick",
        "Galdor",
        "Hartlin",
        "Ivoria",
        "Jorvik",
        "Kestrel",
    ),
    *("Lumora", "Marwen", "Norvo", "Ostara", "Pellam", "Quillon", "Rovena", "Selwick", "Tarlow", "Umbrel", "Velmont"),
    *("Wexford", "Yarrow", "Zephra"),
)
SYLLABLES = tuple(consonant + vowel for consonant in "bcdfghjklmnpqrstvwxz" for vowel in "aeiou")
COLORS = ("black", "white", "navy", "green", "purple", "orange", "pink", "yellow", "brown", "beige", "teal", "maroon")
STYLES = ("classic", "modern", "simple", "bold", "cozy", "slim", "sturdy", "compact", "elegant", "casual")
OPENERS = (
    "Made for your day.",
    "A good choice for your family.",
    "It lasts for years.",
    "Your friends will ask where it is from.",
    "Tested by our own team.",
    "It fits your life.",
)


@dataclass(frozen=True)
class Kind:
    """A kind of product."""

    query: str
    noun: str
    """In titles."""
    path: str
    """The last two parts of the product's category."""
    options: Mapping[str, Sequence[str]]
    """Every value of every option that such a product may have."""
    prices: tuple[int, int]
    """Cheapest and dearest, in dollars."""


@dataclass(frozen=True)
class Department:
    """Products that share what can be said of them."""

    category: str
    root: str
    attributes: Sequence[str]
    kinds: Sequence[Kind]


_CLOTHES = {"color": COLORS, "size": ("small", "medium", "large", "x large", "xx large")}
_SHOES = {"color": COLORS, "size": ("6", "7", "8", "9", "10", "11", "12")}
_BOTTLES = {"scent": ("lavender", "mint", "rose", "lemon", "vanilla"), "size": ("4 ounce", "8 ounce", "16 ounce")}
_SNACKS = {"flavor": ("honey", "cocoa", "berry", "salted", "maple"), "size": ("pack of 1", "pack of 4", "pack of 12")}
_CABLES = {"color": COLORS, "size": ("3 feet", "6 feet", "10 feet")}
_FURNITURE = {"color": COLORS, "size": ("30 inch", "40 inch", "50 inch", "60 inch")}

DEPARTMENTS = (
    Department(
        "fashion",
        "Clothing",
        (
            *("machine wash", "long sleeve", "short sleeve", "quick drying", "water resistant", "elastic waist"),
            *("slim fit", "relaxed fit", "rubber sole", "button closure", "day comfort", "arch support"),
        ),
        (
            Kind("men's shirts", "Shirt", "Men / Shirts", _CLOTHES, (12, 60)),
            Kind("women's dresses", "Dress", "Women / Dresses", _CLOTHES, (15, 90)),
            Kind("winter jackets", "Jacket", "Outdoor / Jackets", _CLOTHES, (30, 180)),
            Kind("running shoes", "Shoes", "Sport / Shoes", _SHOES, (25, 150)),
            Kind("yoga pants", "Pants", "Sport / Pants", _CLOTHES, (12, 70)),
        ),
    ),
    Department(
        "beauty",
        "Beauty",
        (
            *("sulfate free", "cruelty free", "dry skin", "sensitive skin", "long lasting", "natural ingredients"),
            *("hair growth", "tea tree", "argan oil", "travel size", "alcohol free", "easy use"),
        ),
        (
            Kind("shampoos", "Shampoo", "Hair Care / Shampoos", _BOTTLES, (5, 40)),
            Kind("body lotions", "Lotion", "Skin Care / Lotions", _BOTTLES, (5, 45)),
            Kind("face creams", "Cream", "Skin Care / Creams", _BOTTLES, (8, 80)),
            Kind("hand soaps", "Soap", "Bath / Soaps", _BOTTLES, (3, 25)),
        ),
    ),
    Department(
        "electronics",
        "Electronics",
        (
            *("fast charging", "high speed", "easy install", "noise canceling", "hands free", "wireless charging"),
            *("heavy duty", "gold plated", "plug play", "high definition", "battery included", "light weight"),
        ),
        (
            Kind("usb cables", "Cable", "Computers / Cables", _CABLES, (4, 35)),
            Kind("headphones", "Headphones", "Audio / Headphones", {"color": COLORS}, (15, 320)),
            Kind("phone cases", "Case", "Phones / Cases", {"color": COLORS, "style": STYLES[:5]}, (6, 45)),
            Kind("desk lamps", "Lamp", "Lighting / Lamps", {"color": COLORS, "style": STYLES[:4]}, (15, 110)),
        ),
    ),
    Department(
        "garden",
        "Home",
        (
            *("easy clean", "easy assemble", "solid wood", "double sided", "eco friendly", "machine washable"),
            *("space saving", "stainless steel", "non slip", "living room", "dining room", "storage space"),
        ),
        (
            Kind("coffee tables", "Table", "Furniture / Tables", _FURNITURE, (60, 400)),
            Kind(
                "throw pillows",
                "Pillow",
                "Bedding / Pillows",
                {"color": COLORS, "size": ("16 inch", "20 inch")},
                (8, 40),
            ),
            Kind("area rugs", "Rug", "Floor / Rugs", _FURNITURE, (30, 250)),
            Kind("wall shelves", "Shelf", "Furniture / Shelves", _FURNITURE, (20, 130)),
        ),
    ),
    Department(
        "grocery",
        "Grocery",
        (
            *("gluten free", "non gmo", "low sugar", "high protein", "dairy free", "certified organic"),
            *("keto friendly", "plant based", "soy free", "low carb", "high fiber", "nut free"),
        ),
        (
            Kind("granola bars", "Bars", "Snacks / Bars", _SNACKS, (4, 40)),
            Kind("trail mixes", "Mix", "Snacks / Mixes", _SNACKS, (5, 45)),
            Kind("crackers", "Crackers", "Snacks / Crackers", _SNACKS, (3, 25)),
            Kind("protein shakes", "Shake", "Drinks / Shakes", _SNACKS, (10, 60)),
        ),
    ),
)
