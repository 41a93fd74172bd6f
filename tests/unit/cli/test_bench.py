import json

import pytest

from agentrl.bench.machine import known_peak, update_flops


def test_an_environment_is_measured_by_its_short_name(agentrl):
    found = json.loads(agentrl("bench", "env", "Guess", "--seconds", "0.02", "--json"))
    assert found["steps_per_s"] > 1000
    assert found["reset_ms"] < 100


def test_an_environment_adds_what_its_own_bench_measures(agentrl):
    found = json.loads(agentrl("bench", "env", "agentrl/ALFWorld-v0", "--seconds", "0.02", "--json"))
    assert found["python_steps_per_s"] > 1000


@pytest.mark.slow
def test_rollouts_and_updates_are_measured(agentrl):
    rollout = json.loads(agentrl("bench", "rollout", "--repeats", "1", "--json"))
    assert rollout["prompt_tokens_per_s"] > rollout["action_tokens_per_s"] > 0
    update = json.loads(agentrl("bench", "update", "--repeats", "1", "--json"))
    assert update["tokens"] == 64 * 8 * (24 + 8)
    assert update["tokens_per_s"] > 0


@pytest.mark.slow
def test_the_loss_core_is_measured_alone_where_no_peer_is_installed(agentrl):
    rows = json.loads(agentrl("bench", "loss", "--repeats", "1", "--json"))["rows"]
    assert [(row["algorithm"], row["rows"], row["tokens"]) for row in rows[:3]] == [
        ("ppo", 32, 4096),
        ("ppo", 256, 512),
        ("grpo", 32, 4096),
    ]
    # Log-probabilities, their gradient and advantages alone are 2 MiB in float32.
    assert all(row["ours_s"] > 0 and row["ours_mib"] > 2 for row in rows)


def test_an_unknown_environment_is_answered_with_the_nearest(agentrl):
    assert "Did you mean 'Guess'?" in agentrl.fails("bench", "env", "Gess")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # what vLLM's packages tell one another, where it is installed
@pytest.mark.vllm
def test_engines_are_measured_and_agree_with_the_trainer(agentrl):
    rows = json.loads(agentrl("bench", "engines", "--repeats", "1", "--json"))["rows"]
    assert [row["engine"] for row in rows] == ["hf", "vllm"][: len(rows)]
    for row in rows:
        assert row["mismatch_nats"] < 1e-3
        assert row["many_tokens_per_s"] > row["one_tokens_per_s"] > 0
        assert row["sync_s"] > 0


def test_loops_play_the_same_games_and_agentrls_prompts_no_finished_episode(agentrl):
    words = ["episodes", "--episodes", "4", "--turns", "4", "--repeats", "1", "--json"]
    rows = {row["loop"]: row for row in json.loads(agentrl("bench", *words))["rows"]}
    # 2 to 4 turns each, where the barrier's last as long as the longest
    assert 8 <= rows["agentrl"]["turns"] <= rows["barrier"]["turns"]
    assert rows["barrier"]["turns"] % 4 == 0
    assert rows["agentrl"]["speedup"] == pytest.approx(1.0)
    speedup = rows["barrier"]["seconds"] / rows["agentrl"]["seconds"]
    assert rows["barrier"]["speedup"] == pytest.approx(speedup)


def test_a_reward_that_is_there_from_the_start_takes_one_step(agentrl):
    first = json.loads(agentrl("bench", "reward", "--target", "0", "--seeds", "2", "--json"))["rows"][0]
    assert (first["trainer"], first["steps"], first["time_ratio"]) == (
        "agentrl",
        2,
        pytest.approx(1.0),
    )  # one step of each seed
    assert 0 <= first["least_reached"] <= 1


@pytest.mark.slow
def test_growth_is_told_for_four_sizes(agentrl):
    rows = json.loads(agentrl("bench", "growth", "--episodes", "2", "--json"))["rows"]
    assert [row["episodes"] for row in rows] == [2, 4, 8, 16]
    assert (rows[0]["time_growth"], rows[0]["memory_growth"]) == (1.0, 1.0)
    assert all(row["ms_per_episode"] == pytest.approx(1000 * row["step_s"] / row["episodes"]) for row in rows)


def test_a_step_of_a_random_model_is_measured_on_this_machine(agentrl):
    found = json.loads(agentrl("bench", "machine", "--peak", "2", "--json"))
    # Four episodes of three turns and four of two, 24 tokens seen and 8 sampled in each.
    assert found["tokens"] == (4 * 3 + 4 * 2) * (24 + 8)
    assert found["rollout_action_tokens_per_s"] == pytest.approx(found["rollout_tokens_per_s"] / 4)
    assert found["mfu"] == pytest.approx(found["update_tflops"] / 2)
    assert 0 < found["rollout_frac"] < 1


def test_operations_of_an_update_are_counted_by_hand():
    # 6 x 10 parameters x 3 tokens, and 6 x 2 layers x 4 dimensions x 3 x 3
    assert update_flops(10, 2, 4, [3]) == 180 + 432
    assert update_flops(10, 2, 4, [3, 3]) == 2 * update_flops(10, 2, 4, [3])


def test_a_devices_peak_is_found_by_its_name():
    assert known_peak("NVIDIA H100 80GB HBM3") == 989.0
    assert known_peak("abacus") is None
