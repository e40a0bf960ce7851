"""Optimizers by name: thin adapters to DSPy's own, each with this project's metric, budget and seed.

An optimizer makes candidates; the compiler measures them on validation, pair by pair with all others, and chooses.
"""

from __future__ import annotations

from coda.optimize.optimizers.registry import OPTIMIZERS, check_optimizer, optimizer
from coda.optimize.optimizers.workbench import Candidate, Optimizer, Plan, Workbench

__all__ = ["OPTIMIZERS", "Candidate", "Optimizer", "Plan", "Workbench", "check_optimizer", "optimizer"]
