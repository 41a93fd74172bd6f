"""The state of one play and what every action does to it."""

from operator import attrgetter

from agentrl_envs.alfworld import texts
from agentrl_envs.alfworld.games import Game, Item, Receptacle

_id = attrgetter("id")


class World:
    """A game in progress. Each action changes the state and gives the sentence the player reads.

    An action does what it says without asking whether it may: which ones are possible is the engine's business.
    """

    def __init__(self, game: Game) -> None:
        self.game = game
        self.location = game.start
        self.held: Item | None = None
        self.opened = set(game.opened)
        self.contents = {receptacle: set(items) for receptacle, items in game.contents.items()}
        self.places = {item: set(locations) for item, locations in game.places.items()}
        self._qualities = {item: set(words) for item, words in game.qualities.items()}
        self._taken: set[tuple[Item, Receptacle]] = set()

    def here(self) -> tuple[Receptacle, ...]:
        """Gives the receptacles at the agent's location, sorted by id."""
        return self.game.at.get(self.location, ())

    def is_accessible(self, receptacle: Receptacle) -> bool:
        """Whether things can be taken out of it and put into it."""
        return not receptacle.is_openable or receptacle in self.opened

    def won(self) -> bool:
        """Whether the goal holds now."""
        goal = self.game.goal
        if goal.lamp_type:
            return self.held is not None and self.held.type == goal.item_type and self._lamp_shines(goal.lamp_type)
        return any(
            sum(self._is_wanted(item) for item in self.contents[receptacle]) >= goal.count
            for receptacle in self.game.targets
        )

    def _lamp_shines(self, lamp_type: str) -> bool:
        lamps = (item for receptacle in self.here() for item in self.contents[receptacle] if item.type == lamp_type)
        return any("on" in self._qualities[lamp] for lamp in lamps)

    def _is_wanted(self, item: Item) -> bool:
        goal = self.game.goal
        return item.type == goal.item_type and (
            not goal.quality or (goal.trait in item.traits and goal.quality in self._qualities[item])
        )

    def start(self) -> str:
        """Gives the first thing the player reads."""
        view = self.look() if self.here() else texts.room([r.name for r in self.game.receptacles])
        return f"{texts.WELCOME}\n\n{view}\n\nYour task is to: {self.game.task}"

    def look(self) -> str:
        """Looks around. Away from every receptacle the stock engine sees nothing, unlike in its welcome."""
        here = self.here()
        if not here:
            return texts.room([])
        near = [pair for pair in self._taken if pair[1] in here and self.location in self.places[pair[0]]]
        seen = texts.a_listing([item.name for item, _ in sorted(near, key=lambda pair: (pair[0].id, pair[1].id))])
        return f"You are facing the {texts.listing([r.name for r in here])}. Next to it, you see {seen}."

    def inventory(self) -> str:
        """Tells what is in hand."""
        return f"You are carrying: a {self.held.name}." if self.held else "You are not carrying anything."

    def help(self) -> str:
        """Lists the commands."""
        return texts.HELP

    def examine_receptacle(self, receptacle: Receptacle) -> str:
        """Looks on or into a receptacle."""
        if receptacle.is_openable and receptacle not in self.opened:
            return f"The {receptacle.name} is closed."
        seen = texts.a_listing([item.name for item in sorted(self.contents[receptacle], key=_id)])
        if receptacle.is_openable:
            return f"The {receptacle.name} is open. In it, you see {seen}."
        return f"On the {receptacle.name}, you see {seen}."

    def examine_item(self, item: Item) -> str:
        """Looks at an item. Only the one in hand can be: a comma too many in alfred.pddl hides the others."""
        if item.inside is not None:
            return f"This is a normal {item.name}. In it, you see {texts.a_listing(item.inside)}."
        return texts.examined(item.name, self._qualities[item])

    def go(self, receptacle: Receptacle) -> str:
        """Walks to a receptacle."""
        self.location = receptacle.location
        return f"You arrive at {receptacle.name}. {self.examine_receptacle(receptacle)}"

    def open(self, receptacle: Receptacle) -> str:
        """Opens a receptacle and looks into it."""
        self.opened.add(receptacle)
        return f"You open the {receptacle.name}. {self.examine_receptacle(receptacle)}"

    def close(self, receptacle: Receptacle) -> str:
        """Closes a receptacle."""
        self.opened.discard(receptacle)
        return f"You close the {receptacle.name}."

    def take(self, item: Item, receptacle: Receptacle) -> str:
        """Takes an item into the hand. An item that was in two receptacles stays in the other one as well."""
        self.contents[receptacle].discard(item)
        self.places[item].discard(self.location)
        self._taken.add((item, receptacle))
        self.held = item
        return f"You pick up the {item.name} from the {receptacle.name}."

    def move(self, item: Item, receptacle: Receptacle) -> str:
        """Puts the item in hand into a receptacle."""
        self.contents[receptacle].add(item)
        self.places[item].add(self.location)
        self._taken.discard((item, receptacle))
        self.held = None
        return f"You move the {item.name} to the {receptacle.name}."

    def clean(self, item: Item, receptacle: Receptacle) -> str:
        """Cleans the item in hand in a sink."""
        self._qualities[item].add("clean")
        return f"You clean the {item.name} using the {receptacle.name}."

    def heat(self, item: Item, receptacle: Receptacle) -> str:
        """Heats the item in hand; the microwave's door does not matter."""
        self._qualities[item].add("hot")
        self._qualities[item].discard("cool")
        return f"You heat the {item.name} using the {receptacle.name}."

    def cool(self, item: Item, receptacle: Receptacle) -> str:
        """Cools the item in hand; the fridge's door does not matter."""
        self._qualities[item].add("cool")
        self._qualities[item].discard("hot")
        return f"You cool the {item.name} using the {receptacle.name}."

    def use(self, item: Item) -> str:
        """Turns on a lamp, for good."""
        self._qualities[item].add("on")
        return f"You turn on the {item.name}."

    def slice(self, item: Item, knife: Item) -> str:
        """Slices an item with the knife in hand."""
        self._qualities[item].add("sliced")
        return f"You sliced the {item.name} with the {knife.name}."
