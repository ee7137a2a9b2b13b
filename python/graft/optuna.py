"""graft as a sampler of Optuna: what a trial suggests comes from graft's search. Needs optuna, which graft does not.

    from graft.optuna import GraftSampler
    study = optuna.create_study(sampler=GraftSampler({"parameters": {"x": [1, 2, 4], "mode": ["a", "b"]}}))
    study.optimize(objective, n_trials=50)
"""

import math
from typing import Any, Dict, Mapping, Optional, Sequence

from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.study import StudyDirection
from optuna.trial import TrialState

from ._graft import Mistake
from .configurations import Configurations


class GraftSampler(BaseSampler):
    """space, prior, seed, threads: as of graft.Configurations, constraints included.

    The objective suggests the same parameters, and the distributions that it gives must have the values of the space;
    what the space lacks is drawn at random. The study may minimise or maximise one objective: any finite number, as
    graft learns from the order of the trials. A trial that fails or is pruned has crashed. A trial that the space has
    nothing for any more is drawn at random, too.
    """

    def __init__(self, space: Any, *, prior: Any = None, seed: int = 1, threads: int = 1) -> None:
        self._search = Configurations(space, prior=prior, seed=seed, threads=threads)
        self._others = RandomSampler(seed=seed)
        self._asked: Dict[int, Dict[str, Any]] = {}  # by trial
        self._scale = 0.0  # of the objective: its first value that is not 0

    def infer_relative_search_space(self, study: Any, trial: Any) -> Dict[str, Any]:
        if len(study.directions) != 1:
            raise Mistake(f"directions: {len(study.directions)} objectives, GraftSampler searches for one")
        return {}

    def sample_relative(self, study: Any, trial: Any, search_space: Mapping[str, Any]) -> Dict[str, Any]:
        return {}

    def sample_independent(self, study: Any, trial: Any, param_name: str, param_distribution: Any) -> Any:
        if trial.number not in self._asked:
            asked = self._search.ask(1)
            self._asked[trial.number] = asked[0] if asked else {}
        asked_now = self._asked[trial.number]
        if param_name not in asked_now:
            return self._others.sample_independent(study, trial, param_name, param_distribution)
        value = asked_now[param_name]
        if not _has(param_distribution, value):
            raise Mistake(f"{param_name}: the space has {value!r}, which {param_distribution} lacks")
        return value

    def after_trial(self, study: Any, trial: Any, state: TrialState, values: Optional[Sequence[float]]) -> None:
        asked = self._asked.pop(trial.number, None)
        if not asked:
            return
        if state != TrialState.COMPLETE or values is None or not math.isfinite(values[0]):
            self._search.tell(asked, None)
        else:
            value = float(values[0])
            self._search.tell(asked, self._time_of(-value if study.direction == StudyDirection.MAXIMIZE else value))

    def _time_of(self, value: float) -> float:
        """A time, above 0, that is less where the value is: proportional to large ones, and 1 for 0."""
        self._scale = self._scale or abs(value)
        scaled = value / self._scale if self._scale else 0.0
        root = math.hypot(scaled, 1)
        return scaled + root if scaled >= 0 else 1 / (root - scaled)



def _has(distribution: Any, value: Any) -> bool:
    if isinstance(distribution, CategoricalDistribution):
        return value in distribution.choices
    if not isinstance(distribution, (FloatDistribution, IntDistribution)) or isinstance(value, (str, bool)):
        return False
    return bool(distribution.low <= value <= distribution.high)
