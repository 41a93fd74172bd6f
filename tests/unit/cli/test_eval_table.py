from agentrl.cli.eval_table import Progress
from agentrl.tally import Outcome
from tests.episodes import episode

WON, LOST = (Outcome.of(episode(0, [1], episode_return=reward)) for reward in (1.0, 0.0))


def told(capsys, *, silent: bool) -> list[str]:
    """What is said of five episodes, one each 20 s."""
    clock = iter(range(0, 1000, 20))
    hear = Progress("valid_seen", 5, silent=silent, now=lambda: float(next(clock)))
    for outcome in (WON, LOST, WON, WON, LOST):
        hear(outcome)
    return capsys.readouterr().out.splitlines()


def test_a_long_evaluation_says_how_far_it_is_but_for_its_end(capsys):
    # A look at the clock takes 20 s here, and telling takes a look of its own.
    assert told(capsys, silent=False) == [
        "  valid_seen: 2 of 5 episodes, 1 won",
        "  valid_seen: 4 of 5 episodes, 3 won",
    ]


def test_a_program_that_reads_json_is_told_nothing_else(capsys):
    assert told(capsys, silent=True) == []
