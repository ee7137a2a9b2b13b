"""The sampler for Optuna: with the installed one, or with as much of it as a sampler sees."""

import enum
import importlib
import math
import random
import sys
import types
import unittest
from unittest import mock

import graft


def stand_in():
    """Modules with the names that a sampler of Optuna uses, and a study that asks it as Optuna does."""
    modules = {name: types.ModuleType(name) for name in
               ("optuna", "optuna.distributions", "optuna.samplers", "optuna.study", "optuna.trial")}

    class Distribution:
        def __init__(self, low=0, high=0, choices=()):
            self.low, self.high, self.choices = low, high, choices

    class CategoricalDistribution(Distribution):
        pass

    class IntDistribution(Distribution):
        pass

    class FloatDistribution(Distribution):
        pass

    class RandomSampler:
        def __init__(self, seed=None):
            self._random = random.Random(seed)

        def sample_independent(self, study, trial, name, distribution):
            return self._random.randint(distribution.low, distribution.high)

    TrialState = enum.Enum("TrialState", "COMPLETE FAIL PRUNED")
    StudyDirection = enum.Enum("StudyDirection", "MINIMIZE MAXIMIZE")

    class Trial:
        def __init__(self, study, number):
            self._study, self.number, self.params = study, number, {}
            study.sampler.infer_relative_search_space(study, self)
            study.sampler.sample_relative(study, self, {})

        def _suggest(self, name, distribution):
            self.params[name] = self._study.sampler.sample_independent(self._study, self, name, distribution)
            return self.params[name]

        def suggest_int(self, name, low, high):
            return self._suggest(name, IntDistribution(low, high))

        def suggest_categorical(self, name, choices):
            return self._suggest(name, CategoricalDistribution(choices=tuple(choices)))

    class Study:
        def __init__(self, sampler, directions):
            self.sampler, self.trials = sampler, []
            self.directions = [StudyDirection[each.upper()] for each in directions]

        @property
        def direction(self):
            return self.directions[0]

        @property
        def best_value(self):
            best = max if self.direction == StudyDirection.MAXIMIZE else min
            return best(value for _, value in self.trials if math.isfinite(value))

        def optimize(self, objective, n_trials, catch=()):
            for number in range(n_trials):
                trial = Trial(self, number)
                try:
                    value = float(objective(trial))
                    state, values = (TrialState.FAIL, None) if math.isnan(value) else (TrialState.COMPLETE, [value])
                except catch:
                    value, state, values = math.nan, TrialState.FAIL, None
                self.trials.append((trial.params, value))
                self.sampler.after_trial(self, trial, state, values)

    def create_study(sampler, direction=None, directions=None):
        return Study(sampler, directions or [direction or "minimize"])

    for module, names in (("optuna", [create_study]), ("optuna.samplers", [RandomSampler]),
                          ("optuna.distributions", [CategoricalDistribution, IntDistribution, FloatDistribution])):
        for each in names:
            setattr(modules[module], each.__name__, each)
    modules["optuna.samplers"].BaseSampler = object
    modules["optuna.trial"].TrialState = TrialState
    modules["optuna.study"].StudyDirection = StudyDirection
    return modules


SPACE = {"parameters": {"x": {"from": 1, "to": 16}, "y": {"from": 1, "to": 16}, "mode": ["a", "b"]},
         "constraints": ["x + y <= 24"]}


class Sampler(unittest.TestCase):
    def setUp(self):
        try:
            import optuna
        except ImportError:
            replaced = mock.patch.dict(sys.modules, stand_in())
            replaced.start()
            self.addCleanup(replaced.stop)
            self.addCleanup(sys.modules.pop, "graft.optuna", None)
            import optuna
        self.optuna = optuna
        self.GraftSampler = importlib.import_module("graft.optuna").GraftSampler

    def studied(self, value, trials=40, **settings):
        seen = []

        def objective(trial):
            x, y = trial.suggest_int("x", 1, 16), trial.suggest_int("y", 1, 16)
            trial.suggest_categorical("mode", ["a", "b"])
            trial.suggest_int("other", 1, 4)  # which the space lacks
            seen.append((x, y))
            return value(x, y)

        study = self.optuna.create_study(sampler=self.GraftSampler(SPACE, seed=1), **settings)
        study.optimize(objective, n_trials=trials, catch=(ZeroDivisionError,))
        self.assertTrue(all(x + y <= 24 for x, y in seen))
        return study

    def test_finds_the_best_in_either_direction(self):
        def distance(x, y):
            return 0.04 * (x - 11) ** 2 + 0.01 * (y - 6) ** 2

        self.assertLess(self.studied(lambda x, y: 1e-6 * (1 + distance(x, y))).best_value, 1.2e-6)
        self.assertGreater(self.studied(lambda x, y: -distance(x, y), direction="maximize").best_value, -0.2)
        self.assertGreater(self.studied(lambda x, y: 3e9 / (1 + distance(x, y)), direction="maximize").best_value, 2.5e9)
        self.assertLess(self.studied(lambda x, y: distance(x, y) - 1, direction="minimize").best_value, -0.8)

    def test_a_trial_that_fails_has_crashed(self):
        study = self.studied(lambda x, y: math.nan if x == 1 else 1 / (x - 2) if x == 2 else float(x), trials=24)
        self.assertLess(study.best_value, 6)

    def test_refuses_what_it_cannot_do(self):
        with self.assertRaisesRegex(graft.Mistake, "2 objectives"):
            self.studied(lambda x, y: (x, y), directions=["minimize", "minimize"])
        study = self.optuna.create_study(sampler=self.GraftSampler(SPACE))
        with self.assertRaisesRegex(graft.Mistake, "x: the space has .*, which .* lacks"):
            study.optimize(lambda trial: trial.suggest_int("x", 20, 24), n_trials=1)


if __name__ == "__main__":
    unittest.main()
