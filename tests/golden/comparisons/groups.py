"""Advantages that are made of the returns of a group, or of a task's past.

Letters: B rows, T tokens.
"""

from dataclasses import replace

import torch

from agentrl.algorithms._base import spread
from agentrl.algorithms._groups import group_std, returns_and_groups
from agentrl.algorithms._normalize import NormalizedConfig, normalized
from agentrl.algorithms._returns import returns_to_go
from agentrl.algorithms.dr_grpo import DrGRPO
from agentrl.algorithms.gigpo import GiGPO
from agentrl.algorithms.grpo import GRPO
from agentrl.algorithms.reinforce_pp_baseline import ReinforcePPBaseline
from agentrl.algorithms.remax import ReMax
from agentrl.algorithms.rloo import RLOO
from agentrl.algorithms.spo import SPO
from agentrl.algorithms.w_reinforce import WReinforce
from agentrl.batch import Batch
from agentrl.errors import AgentRLError
from tests.golden.compare import Comparison, Part, Values
from tests.golden.comparisons.flaws import favors_equals, forgets_rewards, loses_a_reward, when
from tests.golden.comparisons.steps import checked, make
from tests.golden.vectors import NotOurs, Record


def formula(record: Record) -> Values:
    """GRPO with either divisor of the variance, Dr. GRPO, RLOO and ReMax; a group of one keeps its reward."""
    algorithms = {
        "grpo_ddof1": make(GRPO, singleton="keep", std_ddof=1),
        "grpo_ddof0": make(GRPO, singleton="keep", std_ddof=0),
        "dr_grpo": make(DrGRPO, singleton="keep"),
        "rloo": make(RLOO, singleton="keep"),
        "remax": make(ReMax),
    }
    return {name: algorithm.credit(record.batch) for name, algorithm in algorithms.items()}


def verl_grpo(record: Record) -> Values:
    """GRPO, and Dr. GRPO, which leaves the deviation out."""
    kind = record.options.choose("norm_adv_by_std_in_grpo", {True: GRPO, False: DrGRPO})
    return _twice(make(kind, singleton="keep").credit(record.batch))


def verl_rloo(record: Record) -> Values:
    """RLOO; a group of one keeps its reward."""
    return _twice(make(RLOO, singleton="keep").credit(record.batch))


def verl_rloo_vectorized(record: Record) -> Values:
    """RLOO; a group of one gets 0."""
    return _twice(make(RLOO).credit(record.batch))


def verl_remax(record: Record) -> Values:
    """ReMax, of outcomes: with process rewards, theirs counts what each token and the later ones earned."""
    to_come = record.mask.long().flip(1).cumsum(1).flip(1)
    if record.rewards[record.mask & (to_come > 1)].any():
        raise NotOurs("rewards of single tokens: theirs are less the baseline from each token on")
    return {"advantages": make(ReMax).credit(record.batch), "returns": returns_to_go(record.batch, 1.0)}


def _twice(advantages: torch.Tensor) -> Values:
    """Peers give the advantages of whole answers as their returns too."""
    return {"advantages": advantages, "returns": advantages}


def every_answer(batch: Batch) -> Batch:
    """Gives the batch with all tokens live: peers whose statistics know no mask count answers without tokens too."""
    return replace(batch, action_mask=torch.ones_like(batch.action_mask))


def trl_grpo(record: Record) -> Values:
    """GRPO and Dr. GRPO with TRL's epsilon."""
    algorithms = {"group": make(GRPO, std_eps=1e-4), "none": make(DrGRPO)}
    return {"advantages_seq": record.options.choose("scale_rewards", algorithms).credit(record.batch)}


def trl_rloo(record: Record) -> Values:
    """RLOO with the answer's whole KL in its reward; normalized over answers where that is asked for."""
    beta = record.options.number("beta")
    kl = {"kl_estimator": "k1", "kl_coef": beta, "kl_in": "reward"} if beta else {}
    batch = every_answer(make(RLOO, **kl).with_kl_in_reward(record.batch))
    advantages = make(RLOO).credit(batch)
    if record.options["normalize_advantages"]:
        over = {"normalize_over": "trajectories", "std_ddof": 1, "std_eps": 1e-4}
        advantages = normalized(advantages, batch, checked(NormalizedConfig, over))
    return {"advantages_seq": advantages}


def areal_normalization(record: Record) -> Values:
    """GRPO, Dr. GRPO and RLOO by their statistics; over the batch, our normalization."""
    config = record.options.nested("cfg")
    levels, alone = (config["mean_level"], config["std_level"]), config["mean_leave1out"]
    ddof, eps = config.choose("std_unbiased", {True: 1, False: 0}), config.number("eps")
    if config.unread:
        raise NotOurs(f"no counterpart of {config.unread}")
    batch = record.batch
    if levels == ("batch", "batch") and not alone:
        over = record.options.choose("on", {"rewards": "trajectories", "adv_tok": "tokens"})
        knobs = checked(NormalizedConfig, {"normalize_over": over, "std_ddof": ddof, "std_eps": eps})
        if over == "tokens":
            return {"normalized": normalized(torch.where(record.mask, record.given("adv_tok"), 0.0), batch, knobs)}
        batch = every_answer(batch)
        return {"normalized": normalized(spread(returns_and_groups(batch)[0], batch), batch, knobs)}
    algorithms = {
        ("group", "group", False): make(GRPO, std_eps=eps, std_ddof=ddof),
        ("group", None, False): make(DrGRPO),
        ("group", None, True): make(RLOO, singleton="keep"),
    }
    if record.options["on"] != "rewards" or (*levels, alone) not in algorithms:
        raise NotOurs(f"mean of the {levels[0]}, deviation of the {levels[1]}, leave one out {alone}")
    return {"normalized": algorithms[(*levels, alone)].credit(batch)}


def msswift(record: Record) -> Values:
    """GRPO, Dr. GRPO, RLOO, and REINFORCE++ w/ Baseline over answers."""
    baseline = make(ReinforcePPBaseline, normalize_over="trajectories", std_ddof=1, std_eps=1e-4, kl_estimator="none")
    algorithms = {
        ("grpo", "group"): make(GRPO, std_eps=1e-4),
        ("grpo", "none"): make(DrGRPO),
        ("rloo", "none"): make(RLOO),
        ("reinforce_plus_plus", "group"): make(GRPO, std_eps=1e-4),
        ("reinforce_plus_plus", "batch"): baseline,
        ("reinforce_plus_plus", "none"): make(DrGRPO),
    }
    key = (record.options.text("advantage_estimator"), record.options.text("scale_rewards"))
    if key not in algorithms:
        raise NotOurs(f"advantage_estimator {key[0]} with scale_rewards {key[1]}")
    return {"advantages_seq": algorithms[key].credit(record.batch)}


def trl_nanstd(record: Record) -> Values:
    """The deviation of all rewards, as of one group."""
    rewards = record.given("rewards")
    return {"nanstd": group_std(rewards, torch.zeros(len(rewards), dtype=torch.int64), ddof=1)[0]}


def psr_nsr(record: Record) -> Values:
    """W-REINFORCE; its two ends learn from successes alone, or from failures alone."""
    weight = record.options.number("positive_advantage_weight")
    knobs = {
        "positive": {"positive_weight": 1.0, "beta_minus": 0.0},
        "negative": {"positive_weight": 0.0},
        "weighted": {"positive_weight": weight},
    }
    algorithm = make(WReinforce, **record.options.choose("advantage", knobs))
    return {"advantages": algorithm.credit(record.batch), "returns": returns_to_go(record.batch, 1.0)}


def spo(record: Record) -> Values:
    """SPO with a memory of each row's task, before and after the update."""
    algorithm = make(SPO)
    counts = zip(record.given("spo_alpha").tolist(), record.given("spo_beta").tolist(), strict=True)
    algorithm.restore({str(task): pair for task, pair in enumerate(counts)})
    try:
        advantages = algorithm.credit(every_answer(record.batch))
    except AgentRLError as error:
        raise NotOurs("returns outside 0 to 1, which are no rates of success") from error
    algorithm.learn(record.batch, record.given("log_prob"))
    after = torch.tensor([algorithm.counts(task) for task in range(len(record.mask))], dtype=torch.float64)
    after = after.reshape(-1, 2)
    return {"advantages_seq": advantages, "alpha_new": after[:, 0], "beta_new": after[:, 1]}


def gigpo(record: Record) -> Values:
    """GiGPO; a row is a turn, and rows of one `traj_index` within a group are the turns of one trajectory.

    A turn's reward is chosen so that the discounted returns are the record's. Rows with another return than their
    trajectory's first have no counterpart.
    """
    batch, group = record.batch, record.given("index").long()
    pairs = torch.stack([group, record.given("traj_index").long()])
    trajectory = torch.unique(pairs, dim=1, return_inverse=True)[1]
    rows = torch.arange(len(group))
    earlier = (trajectory[:, None] == trajectory) & (rows[:, None] > rows)
    turn, first = earlier.sum(1), torch.where(earlier.any(1), earlier.int().argmax(1), rows)
    texts = {text: number for number, text in enumerate(record.inputs["anchor_obs"])}
    anchor = torch.tensor([texts[text] for text in record.inputs["anchor_obs"]], dtype=torch.int64)
    norm = record.options.choose("mode", {"mean_norm": False, "mean_std_norm": True})
    algorithm = make(
        GiGPO, normalize_std=norm, step_weight=record.options["step_advantage_w"], singleton="keep", gamma=1.0
    )
    to_go = record.given("step_rewards")
    following = ((trajectory[:, None] == trajectory) & (turn[:, None] + 1 == turn)).double() @ to_go
    live = torch.ones_like(record.mask)
    paid = torch.zeros(live.shape, dtype=torch.float64)
    paid[:, :1] = (to_go - following)[:, None]
    returns = batch.episode_return[first]
    batch = replace(
        batch,
        action_mask=live,
        rewards=paid,
        turn=turn[:, None].expand_as(live),
        trajectory=trajectory,
        anchor=anchor[:, None].expand_as(live),
        episode_return=returns,
    )
    same = (returns == record.batch.episode_return)[:, None]
    return {"advantages": Part(algorithm.credit(batch), same.expand_as(live))}


_BOTH = ("advantages", "returns")
BESSEL = "the n / (n - 1) in its variance is in float32"
COMPARISONS = {
    "formula_group_advantages": Comparison(
        formula, left_out={"opo": "OPO is not an algorithm of ours", "gpg": "GPG's scale is not an algorithm of ours"}
    ),
    "verl_grpo": Comparison(
        verl_grpo,
        tolerance=1e-7,
        wrong=when(favors_equals, *_BOTH),
        why="a group of one is divided by 1 + 1e-6 in float32",
    ),
    "verl_grpo_vectorized": Comparison(
        verl_grpo, tolerance=1e-6, wrong=when(favors_equals, *_BOTH), why="its statistics are in float32"
    ),
    "verl_rloo": Comparison(verl_rloo),
    "verl_rloo_vectorized": Comparison(verl_rloo_vectorized),
    "verl_remax": Comparison(verl_remax, wrong=when(loses_a_reward, *_BOTH)),
    "trl_grpo_advantages": Comparison(trl_grpo, tolerance=5e-8, why=BESSEL),
    "trl_rloo_advantages": Comparison(trl_rloo, tolerance=5e-8, why=BESSEL),
    "trl_nanstd": Comparison(trl_nanstd, tolerance=5e-8, why=BESSEL),
    "areal_normalization": Comparison(areal_normalization, tolerance=1e-7, why="its output is in float32"),
    "msswift_compute_advantages": Comparison(msswift, left_out={"rewards": "an input"}),
    "rlvr_decomposed_psr_nsr_advantage": Comparison(psr_nsr, wrong=when(forgets_rewards, *_BOTH)),
    "verl_recipe_spo_tracker": Comparison(
        spo,
        tolerance=1e-8,
        why="1e-8 is added to the count under its mean log-ratio",
        left_out=dict.fromkeys(("p_hats", "D", "rho", "rho_clipped"), "contained in the others"),
    ),
    "verl_agent_gigpo": Comparison(gigpo, tolerance=1e-6, why="its statistics are in float32"),
}
