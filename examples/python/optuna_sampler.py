"""graft as a sampler of Optuna, which this needs: the least of a function, among configurations with a constraint.

    python3 examples/python/optuna_sampler.py
"""

from typing import Any

import optuna

from graft.optuna import GraftSampler

SPACE = {"parameters": {"x": {"from": 1, "to": 64}, "mode": ["a", "b"]}, "constraints": ["x <= 48"]}


def objective(trial: Any) -> float:
    x = trial.suggest_int("x", 1, 64)
    mode = trial.suggest_categorical("mode", ["a", "b"])
    return float((x - 40) ** 2 + (10 if mode == "a" else 0))


if __name__ == "__main__":
    study = optuna.create_study(sampler=GraftSampler(SPACE))
    study.optimize(objective, n_trials=50)
    print(study.best_params, study.best_value)
