"""graft as a sampler of Optuna (optuna.samplers.BaseSampler): what a trial suggests comes from graft's search.

    study = optuna.create_study(sampler=GraftSampler({"parameters": {"x": [1, 2, 4], "mode": ["a", "b"]}}))
    study.optimize(objective, n_trials=50)

The space is graft's (constraints included); the objective suggests the same parameters: values that the space lists are
taken as they are. Needs optuna, which graft does not.
"""
import graft
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.trial import TrialState


class GraftSampler(BaseSampler):
    def __init__(self, space, prior=None, seed=1):
        self._search = graft.Configurations(space, prior=prior, seed=seed)
        self._others = RandomSampler(seed=seed)  # of parameters that the space does not have
        self._asked = {}  # by trial

    def infer_relative_search_space(self, study, trial):
        return {}

    def sample_relative(self, study, trial, search_space):
        return {}

    def sample_independent(self, study, trial, name, distribution):
        if trial.number not in self._asked:
            asked = self._search.ask(1)
            self._asked[trial.number] = asked[0] if asked else {}
        asked = self._asked[trial.number]
        if name not in asked:
            return self._others.sample_independent(study, trial, name, distribution)
        value = asked[name]
        kinds = (CategoricalDistribution, FloatDistribution, IntDistribution)
        if not isinstance(distribution, kinds) or not distribution._contains(distribution.to_internal_repr(value)):
            raise ValueError(f"{name}: the space has {value!r}, which {distribution} lacks")
        return value

    def after_trial(self, study, trial, state, values):
        asked = self._asked.pop(trial.number, None)
        if asked:
            ok = state == TrialState.COMPLETE and values[0] > 0
            self._search.tell(asked, values[0] if ok else None)
