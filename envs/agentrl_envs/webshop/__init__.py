"""WebShop's simulated shop: real or generated products, with the original's pages, search and reward.

Needs the extra `webshop`; whoever imports the package without it hears how to install it.
"""

from importlib.util import find_spec

from agentrl.errors import MissingExtra

if not (find_spec("rapidfuzz") and find_spec("regex")):
    raise MissingExtra("agentrl/WebShop-v0", "webshop")
