import hashlib
import json
import os
from pathlib import Path

import pytest

from tests.unit.agents.server import Body, Reply, serving
from tests.unit.cli.command import write_guess_config

KEY = "sk-very-secret"
STEPS = "---\nanswer: steps\n---\n## system\nFind it.\n## turn\n{observation}\n"
REFLEXION = "## system\nReflect.\n## reflect\n{transcript}\n## memory\nNotes:\n{reflections}\n"


def says_two(body: Body) -> str:
    return "2"


@pytest.fixture
def guess(tmp_path: Path) -> Path:
    """A configuration whose model is not there, so that whoever loads it fails; prompts lie beside it."""
    (tmp_path / "plain.md").write_text("## turn\n{observation}\n")
    (tmp_path / "react.md").write_text(STEPS)
    (tmp_path / "reflexion.md").write_text(REFLEXION)
    return write_guess_config(tmp_path, "nowhere")


def test_an_endpoint_is_evaluated_by_its_url_and_model(agentrl, guess, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with serving(says_two) as server:
        arguments = ["--policy", "endpoint", "--url", server.url, "--model", "tiny", "--temperature", "0.4"]
        (found,) = json.loads(agentrl("eval", str(guess), *arguments, "--split", "in", "--json"))
    assert found["policy"] == "tiny at endpoint, temperature 0.4"
    assert found["success_rate"] == 1 / 8  # one of the digits 01245689 is 2
    assert set(server.keys) == {f"Bearer {KEY}"}
    assert {(body["model"], body["temperature"], body["max_tokens"]) for body in server.asked} == {("tiny", 0.4, 4)}


def test_the_key_is_written_nowhere(agentrl, guess, monkeypatch, capsys):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    refusal = Reply(status=401, body={"error": {"message": f"bad key {KEY}"}})
    with serving(says_two) as good, serving(lambda body: refusal) as bad:
        arguments = ["--policy", "endpoint", "--model", "tiny", "--split", "in", "--url"]
        shown = agentrl("eval", str(guess), *arguments, good.url)
        refused = agentrl.fails("eval", str(guess), *arguments, bad.url)
        failed = agentrl.fails("eval", str(guess), *arguments, bad.url, "--fresh")
    assert bad.url in refused  # another server is another model, whatever its name: its episodes are not the first's
    assert "bad key ***" in failed
    written = [path.read_text() for path in Path().rglob("*") if path.is_file()]
    assert not [text for text in (shown, failed, *written) if KEY in text]


def test_what_another_server_answered_is_not_gone_on_with(agentrl, guess):
    arguments = ["--policy", "endpoint", "--model", "tiny", "--split", "out", "--url"]
    with serving(says_two) as first, serving(says_two) as second:
        agentrl("eval", str(guess), *arguments, first.url)
        told = agentrl.fails("eval", str(guess), *arguments, second.url)
    assert f"url '{first.url}' there, '{second.url}' here" in told
    assert second.asked == []


def test_when_a_server_fails_what_it_answered_is_kept_and_gone_on_with(agentrl, guess, caplog):
    refuses = Reply(status=401, body={"error": {"message": "no more"}})
    is_down = [False, True]  # after the first answer

    def speak(body: Body) -> Reply | str:
        return refuses if is_down.pop(0) else "3"

    with serving(speak) as server:
        arguments = ["--policy", "endpoint", "--model", "tiny", "--split", "out", "--url", server.url]
        one_at_a_time = ["--set", "rollout.concurrency=1"]
        failed = agentrl.fails("eval", str(guess), *arguments, *one_at_a_time)
        assert "not finished; the same command goes on from the episodes in eval_guess_out" in f"{failed}{caplog.text}"
        is_down += [False] * 6
        told = agentrl("eval", str(guess), *arguments, *one_at_a_time)
    assert "out_of_distribution: 1 of 2 episodes were there" in told


def test_the_section_of_a_configuration_may_say_it_all_and_name_another_variable(agentrl, guess, monkeypatch):
    monkeypatch.setenv("MY_KEY", "mine")
    with serving(says_two) as server:
        section = {"url": server.url, "model": "tiny", "key_env": "MY_KEY", "top_p": 0.7, "stop": ["x"]}
        guess.write_text(f"{guess.read_text()}endpoint: {json.dumps(section)}\n")
        agentrl("eval", str(guess), "--policy", "endpoint", "--split", "out")
    assert set(server.keys) == {"Bearer mine"}
    assert {(body["top_p"], *body["stop"]) for body in server.asked} == {(0.7, "x")}


def test_without_the_variable_no_key_is_sent(agentrl, guess, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with serving(says_two) as server:
        agentrl("eval", str(guess), "--policy", "endpoint", "--url", server.url, "--model", "m", "--split", "out")
    assert set(server.keys) == {None}
    assert "OPENAI_API_KEY" not in os.environ


def test_react_takes_the_prompt_beside_the_configured_one(agentrl, guess):
    with serving(lambda body: "think: it is 2\nact: 2") as server:
        arguments = ["--policy", "endpoint", "--url", server.url, "--model", "tiny", "--agent", "react"]
        setting = ["--set", "env.prompt=plain.md"]
        (found,) = json.loads(agentrl("eval", str(guess), *arguments, "--split", "in", "--json", *setting))
    assert (found["policy"], found["success_rate"]) == ("tiny at endpoint, react", 1 / 8)
    assert server.asked[0]["messages"][0]["content"] == "Find it."


def test_a_prompt_that_asks_for_steps_is_played_in_steps(agentrl, guess):
    with serving(lambda body: "act: 2" if len(body["messages"]) > 2 else "think: it is 2") as server:
        arguments = ["--policy", "endpoint", "--url", server.url, "--model", "tiny", "--set", "env.prompt=react.md"]
        (found,) = json.loads(agentrl("eval", str(guess), *arguments, "--split", "in", "--json"))
    assert (found["policy"], found["success_rate"]) == ("tiny at endpoint, react", 1 / 8)


def test_the_words_that_were_told_stand_in_the_result_and_others_are_another_evaluation(agentrl, guess):
    def measured(*arguments: str) -> dict[str, object]:
        told = agentrl("eval", str(guess), *endpoint, "--split", "out", "--out", "found.json", "--json", *arguments)
        (found,) = json.loads(told)
        return {key: found["protocol"][key] for key in ("prompt", "prompt_sha256", "history")}

    Path("mine.txt").write_text("An example: act: 2\n")
    window = ["--set", "env.prompt=window.md", "env.window_turns=3"]
    Path("window.md").write_text("---\nhistory: window\n---\n## turn\n{observation}\n")
    with serving(says_two) as server:
        endpoint = ["--policy", "endpoint", "--url", server.url, "--model", "tiny"]
        direct = measured(*window)
        react = measured(*window, "--agent", "react", "--fresh")
        examples = measured(*window, "--agent", "react", "--examples", "mine.txt", "--fresh")
        Path("mine.txt").write_text("An example: act: 3\n")
        refusal = agentrl.fails(
            "eval",
            str(guess),
            *endpoint,
            *window,
            "--split",
            "out",
            "--out",
            "found.json",
            "--agent",
            "react",
            "--examples",
            "mine.txt",
        )
        reflexion = measured(*window, "--agent", "reflexion", "--fresh")
    assert (direct["prompt"], direct["history"]) == ("window.md", "3 turns")
    assert react == {
        "prompt": "react.md",
        "prompt_sha256": hashlib.sha256(STEPS.encode()).hexdigest(),
        "history": "all turns",
    }
    assert examples["prompt"] == "react.md + mine.txt"
    assert "holds episodes of another evaluation: prompt_sha256" in refusal
    assert reflexion["prompt"] == "react.md + reflexion.md"
    assert len({one["prompt_sha256"] for one in (direct, react, examples, reflexion)}) == 4


def test_react_by_its_profile_reads_the_profiles_prompt(agentrl, guess, tmp_path):
    profile = tmp_path / "mine.yaml"
    protocol = "max_turns: 2\n    prompt: react.md\n    eval_in: in_distribution\n    temperature: 0\n"
    limits = "    max_tokens: 4\n    context_tokens: 64\n"
    profile.write_text(f"source: made up for a test\nenvironments:\n  agentrl/Guess-v0:\n    {protocol}{limits}")
    with serving(says_two) as server:
        arguments = ["--policy", "endpoint", "--url", server.url, "--model", "tiny", "--profile", "mine.yaml"]
        (found,) = json.loads(agentrl("eval", str(guess), *arguments, "--json"))
        (limited,) = json.loads(agentrl("eval", str(guess), *arguments, "--limit", "3", "--json"))
    assert (found["policy"], found["protocol"]["prompt"]) == ("tiny at endpoint, react, temperature 0", "react.md")
    assert found["protocol"]["profile"]["changed"] == []
    assert limited["protocol"]["profile"]["changed"] == ["num_tasks"]


def test_examples_of_ones_own_end_the_system_message(agentrl, guess, tmp_path):
    (tmp_path / "mine.txt").write_text("An example: act: 2\n")
    with serving(says_two) as server:
        arguments = ["--policy", "endpoint", "--url", server.url, "--model", "tiny", "--agent", "react"]
        setting = ["--set", "env.prompt=react.md", "--examples", "mine.txt"]
        (found,) = json.loads(agentrl("eval", str(guess), *arguments, "--split", "in", "--json", *setting))
    assert found["policy"] == "tiny at endpoint, react, mine.txt"
    assert server.asked[0]["messages"][0]["content"] == "Find it.\n\nAn example: act: 2"


def test_reflexion_tries_as_often_as_it_is_told(agentrl, guess):
    def speak(body: Body) -> str:
        system = body["messages"][0]["content"]
        return "say 5" if system == "Reflect." else f"act: {system[-1] if 'Notes' in system else 2}"

    with serving(speak) as server:
        arguments = ["--policy", "endpoint", "--url", server.url, "--model", "tiny", "--agent", "reflexion"]
        setting = ["--trials", "2", "--set", "env.prompt=plain.md", "env.max_turns=1"]
        (found,) = json.loads(agentrl("eval", str(guess), *arguments, "--split", "in", "--json", *setting))
    assert found["policy"] == "tiny at endpoint, reflexion 2 trials memory 3"
    assert found["success_rate"] == 2 / 8  # 2 at once, 5 after the note
    assert len(server.asked) == 8 + 7 + 7


def test_react_and_reflexion_play_over_a_model_of_ours(agentrl, guess, tiny_model_dir):
    setting = ["--set", f"model.path={tiny_model_dir}", "env.prompt=react.md", "env.max_turns=2"]
    for agent, trials in (("react", []), ("reflexion", ["--trials", "2"])):
        told = agentrl("eval", str(guess), "--agent", agent, *trials, "--split", "out", *setting, "--json")
        (found,) = json.loads(told)
        assert found["num_episodes"] == 2
        assert f", {agent}" in found["policy"]


def test_trials_are_kept_in_rollouts(agentrl, guess):
    with serving(says_two) as server:
        arguments = ["--policy", "endpoint", "--url", server.url, "--model", "tiny", "--agent", "reflexion"]
        setting = ["--set", "env.prompt=react.md", "-n", "8", "--out", "played.jsonl", "--split", "in_distribution"]
        agentrl("rollout", str(guess), *arguments, *setting)
    played = [json.loads(line)["info"] for line in Path("played.jsonl").read_text().splitlines()]
    assert sorted((info["trials"], info["first_success"]) for info in played) == [(1, True)] + [(3, False)] * 7
    assert all(len(info["reflections"]) == info["trials"] - 1 for info in played)


def test_the_oracle_wins_every_task_and_loads_no_model(agentrl, guess):
    for found in json.loads(agentrl("eval", str(guess), "--policy", "oracle", "--json")):
        assert (found["policy"], found["success_rate"]) == ("oracle", 1.0)


ENDPOINT = ["--policy", "endpoint", "--url", "http://localhost", "--model", "m"]
REACT = [*ENDPOINT, "--agent", "react"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--policy", "endpoint"], "no --url and no --model; give it, or set the section endpoint"),
        (["--policy", "endpoint", "--url", "http://localhost"], "no --model; give it"),
        (["--url", "http://localhost"], "--url: no effect without --policy endpoint"),
        (["--trials", "3"], "--trials: no effect without --agent reflexion"),
        ([*REACT, "--memory", "3"], "--memory: no effect without --agent reflexion"),
        (["--examples", "mine.txt"], "--examples: no effect without --agent react or reflexion"),
        (["--policy", "oracle", "--agent", "react"], "--policy oracle is not prompted; use model or endpoint"),
        (
            ["--policy", "random", "--temperature", "1"],
            "--temperature: no effect without --policy model or",
        ),
        (REACT, "env.prompt is not set"),
        ([*ENDPOINT, "--agent", "direct", "--set", "env.prompt=react.md"], "asks for steps; use react or reflexion"),
        ([*REACT, "--set", "env.prompt=zerotir/plain"], "react.md; write one as prompts/alfworld/react.md is written"),
        ([*REACT, "--examples", "no.txt", "--set", "env.prompt=react.md"], "--examples no.txt: cannot be read"),
    ],
)
def test_what_does_not_go_together_is_refused_with_what_does(agentrl, guess, arguments, complaint):
    assert complaint in agentrl.fails("eval", str(guess), *arguments)


def test_a_prompt_that_asks_for_no_steps_is_none_for_react(agentrl, guess):
    Path("react.md").write_text("## turn\n{observation}\n")
    told = agentrl.fails("eval", str(guess), *REACT, "--set", "env.prompt=plain.md")
    assert "does not say 'answer: steps'" in told
