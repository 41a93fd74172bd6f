import threading

import pytest

from agentrl.training.ahead import Ahead
from agentrl.training.experience import Experience


class Stage:
    """Plays empty steps and notes how many had been learned from when each began."""

    def __init__(self, steps: int, max_staleness: int) -> None:
        self.learned = 0
        self.began: dict[int, int] = {}
        self.ahead = Ahead(self.gather, range(steps), max_staleness=max_staleness)

    def gather(self, step: int) -> Experience:
        self.began[step] = self.learned
        return Experience([], [], None, {"step": float(step)}, seconds=1.0)

    def learn(self, steps: int) -> None:
        self.learned = steps
        self.ahead.learned(steps)


@pytest.mark.parametrize("max_staleness", [0, 1, 3])
def test_no_step_begins_before_all_but_the_allowed_number_of_earlier_ones_are_learned(max_staleness: int) -> None:
    stage = Stage(20, max_staleness)
    stage.ahead.start()
    for step in range(20):
        assert stage.ahead.take(step).metrics == {"step": step}
        stage.learn(step + 1)
    assert [*stage.began] == [*range(20)]
    assert all(learned >= step - max_staleness for step, learned in stage.began.items())


def test_as_many_steps_as_allowed_are_played_before_any_is_learned() -> None:
    stage = Stage(5, 2)
    stage.ahead.start()
    assert [stage.ahead.take(step).metrics["step"] for step in (0, 1, 2)] == [0, 1, 2]
    assert stage.began == {0: 0, 1: 0, 2: 0}
    stage.ahead.close()


def test_what_goes_wrong_while_playing_is_raised_where_episodes_are_asked_for() -> None:
    def gather(step: int) -> Experience:
        raise ValueError(f"step {step} is broken")

    ahead = Ahead(gather, range(3), max_staleness=1)
    ahead.start()
    with pytest.raises(ValueError, match="step 0 is broken"):
        ahead.take(0)


def test_during_a_pause_nothing_is_played() -> None:
    playing, go_on = threading.Event(), threading.Event()
    inside: list[int] = []

    def gather(step: int) -> Experience:
        inside.append(step)
        playing.set()
        go_on.wait()
        inside.clear()
        return Experience([], [], None, {}, seconds=1.0)

    ahead = Ahead(gather, range(2), max_staleness=1)
    ahead.start()
    playing.wait()
    go_on.set()
    with ahead.paused():
        assert inside == []
    ahead.take(1)


def test_a_closed_one_plays_no_further_step() -> None:
    stage = Stage(3, 0)
    stage.ahead.start()
    stage.ahead.take(0)
    stage.ahead.close()
    stage.ahead._thread.join()
    assert [*stage.began] == [0]
