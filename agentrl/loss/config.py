"""The knobs of the loss, one for each slot, and which of them have an effect together."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, NonNegativeFloat, PositiveFloat, PositiveInt

Ratio = Literal["token", "sequence", "geometric", "product", "none"]
Surrogate = Literal["clip", "cispo", "quadratic", "gvpo"]
Aggregate = Literal[
    "token_mean",
    "group_token_mean",
    "seq_mean_token_mean",
    "seq_mean_token_sum",
    "seq_mean_token_sum_norm",
    "class_balanced",
]
KLEstimator = Literal["none", "k1", "k2", "k3"]


class LossConfig(BaseModel):
    """The knobs of the loss."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)

    ratio: Ratio = "token"
    """Importance ratio: `token` is pi/pi_old of each token; over a trajectory's action tokens, `sequence` is their
    geometric mean (GSPO), `geometric` the same of ratios that are clipped first, in log space (GMPO), and `product`
    the whole probability ratio; `none` takes log pi itself (REINFORCE, cloning)."""
    surrogate: Surrogate = "clip"
    """What is made of ratio and advantage: `clip` is PPO's pessimistic min(rho A, clip(rho) A), plain rho A without
    bounds; `cispo` weighs log pi by the clipped, constant ratio; `quadratic` is rho A - quadratic_coef/2 (rho - 1)^2;
    `gvpo` regresses a group's log-ratios on its advantages."""
    clip_low: NonNegativeFloat | None = 0.2
    """The ratio counts no lower than 1 - clip_low where that would raise the objective; null does not clip."""
    clip_high: NonNegativeFloat | None = 0.2
    """The ratio counts no higher than 1 + clip_high where that would raise the objective; null does not clip."""
    dual_clip: PositiveFloat | None = None
    """Bound on the ratio of tokens with negative advantage (arXiv:1912.09729); null, as in the papers, has none."""
    quadratic_coef: PositiveFloat = 1.0
    """Curvature of the `quadratic` surrogate around ratio 1."""
    gvpo_coef: PositiveFloat = 0.1
    """The factor that turns a log-ratio into the reward it implies, in `gvpo`; its paper's beta."""
    aggregate: Aggregate = "token_mean"
    """Weight of a token: see `agentrl.loss.token_weights`."""
    horizon: PositiveInt | None = None
    """Constant divisor, in tokens, of `seq_mean_token_sum_norm`."""
    kl_estimator: KLEstimator = "none"
    """KL to the reference: as a loss, k2 has the gradient of the reverse KL and k3 is GRPO's; in the reward, k1 is
    usual."""
    kl_coef: NonNegativeFloat = 0.0
    """Weight of the KL to the reference."""
    kl_in: Literal["loss", "reward"] = "loss"
    """Whether the KL is a loss of its own or is taken off the rewards, token by token, before advantages are made."""
    kl_importance: bool = False
    """Multiply the KL loss by the token's ratio pi/pi_old, which makes k3's gradient that of the reverse KL also off
    policy (arXiv:2505.17508)."""
    kl_gate: Literal["none", "clipped", "norm"] = "none"
    """`clipped` turns the KL loss off where the surrogate is clipped (control F1-B of the ZCPO paper); `norm` scales
    all of it down to the size that would leave (control F1-C)."""

    @property
    def is_coupled(self) -> bool:
        """Whether a token's loss depends on other tokens, so that it needs the whole optimizer step at once."""
        return self.ratio in ("sequence", "geometric", "product") or self.surrogate == "gvpo" or self.kl_gate == "norm"

    @property
    def has_kl_loss(self) -> bool:
        """Whether the KL to the reference is a loss of its own."""
        return self.kl_estimator != "none" and self.kl_in == "loss"

    def problems(self) -> list[tuple[str, str]]:
        """Gives (knob, problem) for what is missing and for what was set without effect; each says what to do."""
        found = [*self._clip_problems(), *self._kl_problems()]
        if self.aggregate == "seq_mean_token_sum_norm" and self.horizon is None:
            found.append(("aggregate", "seq_mean_token_sum_norm needs a horizon; set the tokens an episode may have"))
        if self.horizon is not None and self.aggregate != "seq_mean_token_sum_norm":
            found.append(("horizon", f"no effect on aggregate {self.aggregate}; set seq_mean_token_sum_norm, or null"))
        for knob, surrogate in (("quadratic_coef", "quadratic"), ("gvpo_coef", "gvpo")):
            if self._is_chosen(knob) and self.surrogate != surrogate:
                found.append((knob, f"no effect on surrogate {self.surrogate}; leave it out, or set {surrogate}"))
        return found

    def _clip_problems(self) -> list[tuple[str, str]]:
        why = None
        if self.ratio == "none":
            if self.surrogate != "clip":
                return [("surrogate", f"{self.surrogate} needs a ratio; set ratio token, or surrogate clip")]
            why = "ratio none, where the objective is log pi itself"
        elif self.surrogate in ("quadratic", "gvpo"):
            why = f"surrogate {self.surrogate}, which has no clip"
        found = []
        if why:
            clips = [knob for knob in ("clip_low", "clip_high") if self._is_chosen(knob)]
            told = [knob for knob in clips if getattr(self, knob) is not None]
            found += [(knob, f"no effect with {why}; leave it out") for knob in told]
        if self.dual_clip is not None and (why or self.surrogate != "clip" or self.ratio == "geometric"):
            reason = why or f"surrogate {self.surrogate} and ratio {self.ratio}"
            found.append(("dual_clip", f"no effect with {reason}; set null, or surrogate clip with another ratio"))
        if self.surrogate == "gvpo" and self._is_chosen("ratio") and self.ratio != "token":
            found.append(("ratio", "no effect on surrogate gvpo, which takes whole trajectories; leave it out"))
        elif self.ratio == "geometric" and self.surrogate != "clip":
            found.append(("surrogate", f"{self.surrogate} is not defined for ratio geometric; set surrogate clip"))
        return found

    def _kl_problems(self) -> list[tuple[str, str]]:
        off = {"kl_coef": 0.0, "kl_in": "loss", "kl_importance": False, "kl_gate": "none"}
        if self.kl_estimator == "none":
            told = [knob for knob, value in off.items() if self._is_chosen(knob) and getattr(self, knob) != value]
            return [(knob, "no effect without a KL estimator; leave it out, or set kl_estimator") for knob in told]
        found = []
        if self.kl_coef == 0:
            problem = f"0 makes kl_estimator {self.kl_estimator} cost time for nothing"
            found.append(("kl_coef", f"{problem}; set more than 0, or kl_estimator none"))
        if self.kl_estimator == "k1" and self.kl_in == "loss":
            problem = "the gradient of k1 as a loss does not depend on the reference: it is noise around 0"
            found.append(("kl_estimator", f"{problem}; set k2 or k3, or kl_in reward"))
        if self.kl_in == "reward":
            told = [knob for knob in ("kl_importance", "kl_gate") if self._is_chosen(knob)]
            told = [knob for knob in told if getattr(self, knob) != off[knob]]
            found += [(knob, "no effect on a KL in the reward; leave it out, or set kl_in loss") for knob in told]
        elif self.kl_gate != "none" and not self._clips:
            found.append(("kl_gate", "no effect where nothing is clipped; set none, or a surrogate with clips"))
        return found

    @property
    def _clips(self) -> bool:
        bounds = (self.clip_low, self.clip_high, self.dual_clip)
        return self.ratio != "none" and self.surrogate in ("clip", "cispo") and bounds != (None, None, None)

    def _is_chosen(self, knob: str) -> bool:
        """Whether the knob's value is not the algorithm's own."""
        return getattr(self, knob) != type(self).model_fields[knob].default
