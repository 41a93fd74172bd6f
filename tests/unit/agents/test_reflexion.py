from collections.abc import Callable
from pathlib import Path

import pytest

import agentrl
from agentrl.agents.chat_agent import ChatAgent
from agentrl.agents.reflexion import Reflexion, ReflexionPrompt
from agentrl.chat import ChatFormat, load_tokenizer
from agentrl.engines.hf import HFEngine
from agentrl.env import TextEnv
from agentrl.errors import ConfigError
from agentrl.policy import load_model
from agentrl.prompts import Prompt
from agentrl.resources import prompt_path
from agentrl.rollout import Collector
from agentrl.tasks import Task
from agentrl.trajectory import Ending, Trajectory
from tests.unit.agents.players import endpoint_agent, engine_agent
from tests.unit.agents.server import Body, Reply, serving

STEPS = Prompt(system="Find it.", answer="steps")
WORDS = ReflexionPrompt(system="Reflect.", reflect="Of {task}:\n{transcript}", memory="Notes:\n{reflections}")


def collector(max_turns: int = 2) -> Collector:
    return Collector(
        lambda: agentrl.make("agentrl/Guess-v0", max_turns=max_turns), env_id="agentrl/Guess-v0", concurrency=4
    )


def is_reflection(body: Body) -> bool:
    return body["messages"][0]["content"] == "Reflect."


def learner(body: Body) -> str:
    """Says 0 again and again; asked to reflect, it notes the next digit; with notes, it says the digit of the last."""
    system = body["messages"][0]["content"]
    if is_reflection(body):
        last = body["messages"][1]["content"].rpartition("Action: ")[2]
        return f"not {last}, say {int(last) + 1}"
    return f"act: {system[-1]}" if "Notes:" in system else "act: 0"


def play(
    speak: Callable[[Body], Reply | str], tasks: str, *, max_turns: int = 2, **settings: int
) -> tuple[list[Trajectory], list[Body]]:
    with serving(speak) as server:
        reflexion = Reflexion(collector(max_turns), WORDS, **settings)
        chosen = [Task(id, 50 + number, number) for number, id in enumerate(tasks)]
        played = reflexion.play(endpoint_agent(server.url, prompt=STEPS), chosen)
        reflexion.close()
    return played, server.asked


def test_a_task_is_tried_until_it_is_won_and_the_last_trial_is_given() -> None:
    (first, third, never), _ = play(learner, "029", trials=4)
    assert [one.success for one in (first, third, never)] == [True, True, False]
    assert [one.info["trials"] for one in (first, third, never)] == [1, 3, 4]
    assert [one.info["first_success"] for one in (first, third, never)] == [True, False, False]
    assert first.info["reflections"] == []
    assert third.info["reflections"] == ["not 0, say 1", "not 1, say 2"]
    assert [turn.action for turn in third.turns] == ["act: 2"]
    assert [(one.task_id, one.seed) for one in (first, third, never)] == [("0", 50), ("2", 51), ("9", 52)]


def test_the_last_reflections_are_remembered_in_order_and_no_more() -> None:
    _, asked = play(learner, "9", trials=5, memory=2)
    systems = [body["messages"][0]["content"] for body in asked if not is_reflection(body)]
    notes = [[line for line in system.splitlines() if line.startswith("- ")] for system in dict.fromkeys(systems)]
    said = [f"- not {n}, say {n + 1}" for n in range(4)]
    assert notes == [[], said[:1], said[:2], said[1:3], said[2:4]]


def test_a_reflection_is_about_the_trial_that_failed() -> None:
    _, asked = play(learner, "9", trials=2)
    (reflection,) = filter(is_reflection, asked)
    assert reflection["messages"][1]["content"] == (
        "Of Find the digit.:\nObservation: I think of a digit.\nAction: 0\nObservation: higher\nAction: 0"
    )


def test_thoughts_are_part_of_what_is_reflected_on() -> None:
    _, asked = play(lambda body: "done" if is_reflection(body) else "think: high?\nact: 0", "9", trials=2, max_turns=1)
    (reflection,) = filter(is_reflection, asked)
    assert "\nObservation: I think of a digit.\nThought: high?\nAction: 0" in reflection["messages"][1]["content"]


def test_the_first_trial_is_what_the_agent_does_without_reflexion_and_later_ones_have_seeds_of_their_own() -> None:
    _, asked = play(learner, "9", trials=3, max_turns=1)
    with serving(learner) as server:
        collector(1).play(endpoint_agent(server.url, prompt=STEPS), [Task("9", 50, 0)])
    assert asked[0] == server.asked[0]
    assert len({body["seed"] for body in asked}) == len(asked) == 5


def test_tokens_of_all_trials_and_reflections_are_counted() -> None:
    (played,), asked = play(learner, "1", trials=2, max_turns=1)
    assert played.info["usage"]["action_tokens"] == 2 + 4 + 2  # "act: 0", "not 0, say 1", "act: 1"
    words = [sum(len(message["content"].split()) for message in body["messages"]) for body in asked]
    assert played.info["usage"]["prompt_tokens"] == sum(words)


def test_whoever_listens_hears_of_each_task_once_after_its_last_trial() -> None:
    heard: list[tuple[str, int]] = []
    with serving(learner) as server:
        reflexion = Reflexion(collector(), WORDS, trials=3)
        tasks = [Task("0", 1, 0), Task("9", 2, 1), Task("1", 3, 2)]
        agent = endpoint_agent(server.url, prompt=STEPS)
        played = reflexion.play(agent, tasks, on_finished=lambda task, one: heard.append((task.id, one.info["trials"])))
    assert heard == [("0", 1), ("1", 2), ("9", 3)]
    assert [one.task_id for one in played] == ["0", "9", "1"]


def test_a_task_that_is_won_is_told_before_the_trials_of_others_are_over() -> None:
    events: list[str] = []

    def speak(body: Body) -> str:
        events.append("asked")
        return learner(body)

    with serving(speak) as server:
        alone = Collector(lambda: agentrl.make("agentrl/Guess-v0", max_turns=1), env_id="g", concurrency=1)
        tasks = [Task("0", 1, 0), Task("9", 2, 1)]
        reflexion = Reflexion(alone, WORDS, trials=2)
        agent = endpoint_agent(server.url, prompt=STEPS)
        reflexion.play(agent, tasks, on_finished=lambda task, one: events.append(task.id))
    assert events == ["asked", "0", "asked", "asked", "asked", "9"]  # of 9 two trials and a reflection between them


class Broken(TextEnv):
    def reset(self, *, seed=None, options=None):
        raise OSError("no house")


def test_a_broken_environment_is_no_failure_to_reflect_on() -> None:
    with serving(learner) as server:
        reflexion = Reflexion(Collector(Broken, env_id="test/Broken-v0", concurrency=1), WORDS, trials=3)
        (played,) = reflexion.play(endpoint_agent(server.url, prompt=STEPS), [Task("x", 1, 0)])
    assert (played.ending, played.info["trials"], server.asked) == (Ending.ENV_ERROR, 1, [])


def test_of_a_transcript_that_does_not_fit_the_end_is_read() -> None:
    full = Reply(status=400, body={"error": {"message": "maximum context length is 40 words"}})

    def speak(body: Body) -> Reply | str:
        if not is_reflection(body):
            return "act: 0"
        return full if body["messages"][1]["content"].count("Action") > 2 else "noted"

    (played,), asked = play(speak, "9", trials=2, max_turns=6)
    assert played.info["reflections"] == ["noted"]
    told = [body["messages"][1]["content"].count("Action") for body in asked if is_reflection(body)]
    assert told == [6, 2]


def test_where_not_even_an_empty_transcript_fits_there_is_no_reflection_and_the_trial_goes_on() -> None:
    full = Reply(status=400, body={"error": {"message": "maximum context length is 4 words"}})
    (played,), _ = play(lambda body: full if is_reflection(body) else "act: 0", "9", trials=2)
    assert (played.info["trials"], played.info["reflections"]) == (2, [])


def test_it_runs_over_an_engine_of_ours(tiny_model_dir: Path) -> None:
    chat = ChatFormat(load_tokenizer(tiny_model_dir))
    agent = engine_agent(chat, HFEngine(load_model(tiny_model_dir, "float32")), STEPS, context_tokens=300)
    reflexion = Reflexion(collector(), WORDS, trials=3)
    played = reflexion.play(agent, [Task(str(n), n, n) for n in range(10)])
    lost = [one for one in played if not one.success]
    assert lost
    assert {one.info["trials"] for one in lost} == {3}
    assert all(len(one.info["reflections"]) == 2 for one in lost)
    assert all(one.info["usage"]["action_tokens"] > 0 for one in played)


@pytest.mark.parametrize("name", ["alfworld/reflexion", "webshop/reflexion"])
def test_the_shipped_prompts_are_filled(name: str) -> None:
    prompt = ReflexionPrompt.load(prompt_path(name))
    system, user = prompt.asked("put a mug in a fridge", "Observation: {task}")
    assert system.content
    assert "put a mug in a fridge" in user.content
    assert "Observation: {task}" in user.content  # what is filled in is not filled again
    assert "- go left\n- go right" in prompt.remembered(["go left", "go right"])
    assert prompt.remembered([]) == ""


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("## reflect\n{transcript}\n## memory\n{reflections}\n", "'## system'"),
        ("## system\nx\n## reflect\nx\n## memory\n{reflections}\n", "'## reflect' section with {transcript}"),
        ("## system\nx\n## reflect\n{transcript}\n## memory\nx\n", "'## memory' section with {reflections}"),
    ],
)
def test_a_file_that_lacks_something_is_refused(text: str, missing: str, tmp_path: Path) -> None:
    path = tmp_path / "reflexion.md"
    path.write_text(text)
    with pytest.raises(ConfigError, match=missing):
        ReflexionPrompt.load(path)


def test_only_agents_that_can_be_told_what_to_remember_learn() -> None:
    assert isinstance(endpoint_agent("http://localhost/v1"), ChatAgent)
    with pytest.raises(AssertionError, match="only a ChatAgent"):
        Reflexion(collector(), WORDS).play(object(), [])  # pyright: ignore[reportArgumentType]
