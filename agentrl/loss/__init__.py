"""The one loss core: every algorithm is a choice of its knobs (config.py), an advantage and a token filter."""

from agentrl.loss.aggregate import sum_by, token_weights
from agentrl.loss.config import Aggregate, KLEstimator, LossConfig
from agentrl.loss.correction import Correction, correct
from agentrl.loss.kl import kl_estimate
from agentrl.loss.policy import LossOutput, policy_loss
from agentrl.loss.value import value_loss

__all__ = [
    "Aggregate",
    "Correction",
    "KLEstimator",
    "LossConfig",
    "LossOutput",
    "correct",
    "kl_estimate",
    "policy_loss",
    "sum_by",
    "token_weights",
    "value_loss",
]
