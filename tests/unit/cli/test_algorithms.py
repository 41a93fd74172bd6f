import json

import pytest

from agentrl import registry


def test_list_gives_every_algorithm_in_a_line(agentrl):
    lines = agentrl("algorithms", "list").splitlines()
    assert [line.split()[0] for line in lines[1:]] == registry.names("algorithms")


def test_show_gives_the_formula_the_needs_and_the_knobs(agentrl):
    shown = agentrl("algorithms", "show", "grpo")
    assert "A_i = (R_i - mean of its group) / (std of its group + eps)" in shown
    assert "  ratio         token\n" in shown
    assert "  clip          0.2 below, 0.2 above\n" in shown
    assert "  aggregation   seq_mean_token_mean\n" in shown
    assert "  reference KL  k3 in the loss, x 0.04\n" in shown
    assert "  needs         groups, reference\n" in shown
    assert "algorithm.kl_coef = 0.04\n" in shown


@pytest.mark.parametrize("name", registry.names("algorithms"))
def test_every_algorithm_shows_its_paper_and_its_slots(agentrl, name):
    shown = json.loads(agentrl("algorithms", "show", name, "--json"))
    assert "arXiv:" in shown["text"] or name in ("flash_reinforce", "zcpo")
    slots = ("credit", "token filter", "ratio", "surrogate", "clip", "aggregation", "reference KL", "correction")
    assert tuple(shown["slots"]) == slots


def test_a_correction_is_told_in_words(agentrl):
    slots = json.loads(agentrl("algorithms", "show", "flash_reinforce", "--json"))["slots"]
    assert slots["correction"] == "token, drop a trajectory beyond 0.002 nats"
    assert slots["surrogate"] == "log pi"


def test_show_gives_json(agentrl):
    shown = json.loads(agentrl("algorithms", "show", "grpo", "--json"))
    assert {"algorithm.kl_coef": "0.04"}.items() <= {knob["key"]: knob["default"] for knob in shown["knobs"]}.items()


def test_an_unknown_algorithm_is_answered_with_the_nearest(agentrl):
    assert "Did you mean 'grpo'?" in agentrl.fails("algorithms", "show", "grop")


def test_knobs_without_effect_are_told_apart_with_the_reason(agentrl):
    knobs = {knob["key"]: knob["idle"] for knob in json.loads(agentrl("algorithms", "show", "rloo", "--json"))["knobs"]}
    assert knobs["algorithm.clip_low"].startswith("no effect with ratio none")
    assert knobs["algorithm.kl_coef"].startswith("no effect without a KL estimator")
    assert knobs["algorithm.tau"].startswith("no effect on token_filter none")
    assert knobs["algorithm.correction.high"].startswith("no effect at level none")
    working = ("ratio", "kl_estimator", "token_filter", "credit", "beta_minus", "correction.level", "singleton")
    assert not any(knobs[f"algorithm.{knob}"] for knob in working)
    shown = agentrl("algorithms", "show", "rloo")
    assert shown.index("algorithm.singleton") < shown.index("Without effect") < shown.index("algorithm.clip_low")
