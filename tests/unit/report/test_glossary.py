import string

from agentrl.report.glossary import read_glossary
from agentrl.trajectory import Ending

FRACTIONS = ("format_invalid_frac", "inadmissible_frac", "env_error_frac", *(f"ending_{name}_frac" for name in Ending))
REWARDS = ("raw_return", "env_return", "reward_clipped_frac", "reward_truncated_frac")
STALE = ("staleness_mean", "staleness_max")
DEMANDED = ("refills", "differing_group_frac", "greedy_return", "greedy_error_frac")
FILTERED = (
    *("filtered_frac", "filtered_void_turn_frac", "filtered_accuracy_band_frac"),
    *("filtered_repetition_frac", "filtered_overlong_frac"),
)
LOGGED = {
    "rollout": (
        *("episode_return", "success_rate", "turns", "action_tokens", "tokens_per_s"),
        *(*REWARDS, *FRACTIONS, *DEMANDED, *FILTERED, *STALE),
    ),
    "critic": ("loss", "clip_frac", "value"),
    "policy": (
        *("entropy", "approx_kl", "clip_frac", "grad_norm", "learning_rate"),
        *("rollout_mismatch_kl", "rollout_mismatch_mean", "rollout_mismatch_k1", "rollout_mismatch_max_ratio"),
        *("correction_clip_frac", "correction_drop_frac", "ref_kl"),
    ),
    "loss": ("policy", "kl", "kept_frac", "positive_frac"),
    "sft": ("loss", "action_nll"),
    "sync": ("canary_mean", "canary_max", "canary_moved"),
    "time": ("rollout_s", "annotate_s", "update_s", "wait_s", "sync_s", "eval_s", "step_s"),
    "eval_in": ("success_rate", "ci95_low", "ci95_high", "episode_return", "turns"),
    "eval_out": ("success_rate", "ci95_low", "ci95_high", "episode_return", "turns"),
}


def test_every_metric_that_training_logs_is_explained():
    assert set(read_glossary()) == {f"{prefix}/{name}" for prefix, names in LOGGED.items() for name in names}


def test_units_follow_from_the_names():
    for key, metric in read_glossary().items():
        if key.endswith(("_frac", "_rate", "ci95_low", "ci95_high")) and key != "policy/learning_rate":
            assert metric.unit == "frac", key
        if key.startswith("time/"):
            assert metric.unit == "s", key


def test_explanations_are_sentences():
    for key, metric in read_glossary().items():
        for part in filter(None, (metric.what, metric.normal, metric.act)):
            assert part.endswith("."), key
            assert part[0] in string.ascii_uppercase + string.digits, key
