import json

from agentrl import registry


def test_list_gives_every_algorithm_in_a_line(agentrl):
    lines = agentrl("algorithms", "list").splitlines()
    assert [line.split()[0] for line in lines[1:]] == registry.names("algorithms")


def test_show_gives_the_formula_the_needs_and_the_knobs(agentrl):
    shown = agentrl("algorithms", "show", "grpo")
    assert "A_i = (R_i - mean of its group) / (std of its group + eps)" in shown
    assert "needs   groups" in shown
    assert "algorithm.kl_coef = 0.04\n" in shown


def test_show_gives_json(agentrl):
    shown = json.loads(agentrl("algorithms", "show", "grpo", "--json"))
    assert {"algorithm.kl_coef": "0.04"}.items() <= {knob["key"]: knob["default"] for knob in shown["knobs"]}.items()


def test_an_unknown_algorithm_is_answered_with_the_nearest(agentrl):
    assert "Did you mean 'grpo'?" in agentrl.fails("algorithms", "show", "grop")
