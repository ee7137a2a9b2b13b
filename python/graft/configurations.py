"""The search among configurations of a program that graft did not make, with its measurements in Python."""

import json
import os
import time
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

from ._graft import _Configurations

Configuration = Dict[str, Any]


class Configurations:
    """Asks for configurations of a space, and is told how long they took.

    The space is a mapping as in a space's file, {"parameters": {"tile": [16, 32]}, "constraints": ["tile <= n"],
    "default": {...}}, or the path of such a file or of a T1 document. `prior`: files of what other devices measured, or
    one model's file.
    """

    def __init__(
        self,
        space: Union[Mapping[str, Any], str, "os.PathLike[str]"],
        *,
        prior: Union[None, str, "os.PathLike[str]", Sequence[Union[str, "os.PathLike[str]"]]] = None,
        seed: int = 1,
        threads: int = 1,
    ) -> None:
        if isinstance(space, Mapping):
            text = json.dumps(space)
        else:
            with open(space, encoding="utf-8") as file:
                text = file.read()
        model = os.fspath(prior) if isinstance(prior, (str, os.PathLike)) else ""
        files: List[str] = [] if prior is None or model else [os.fspath(each) for each in prior]  # type: ignore
        self._search = _Configurations(text, files, model, seed, threads)

    def ask(self, count: int = 1) -> List[Configuration]:
        """Distinct configurations, at most `count`, none asked for before; fewer where the space has no more."""
        return [json.loads(text) for text in self._search.ask(count)]

    def tell(self, configuration: Mapping[str, Any], outcome: Union[float, str, None]) -> None:
        """How many seconds it took, or the status with which it failed ('crashed'; None is the same)."""
        text = json.dumps(dict(configuration))
        if outcome is None or isinstance(outcome, str):
            self._search.tell(text, 0.0, outcome or "crashed")
        else:
            self._search.tell(text, float(outcome), "ok")

    def best(self) -> Optional[Tuple[Configuration, float]]:
        """The fastest that was told, and its seconds; None before any was ok."""
        best = self._search.best()
        return None if best is None else (json.loads(best.schedule), best.seconds)


def tune_function(
    space: Union[Mapping[str, Any], str, "os.PathLike[str]"],
    f: Callable[[Configuration], Optional[float]],
    *,
    prior: Union[None, str, "os.PathLike[str]", Sequence[Union[str, "os.PathLike[str]"]]] = None,
    trials: int = 64,
    batch: int = 4,
    catch: Iterable[type] = (RuntimeError,),
    seed: int = 1,
    threads: int = 1,
) -> Tuple[Configuration, float]:
    """Searches the configuration for which f(configuration) is least: seconds, which f returns, or else its wall time.

    A configuration for which `f` raises one of `catch` has crashed. Failure if none was ok.
    """
    from ._graft import Failure

    search = Configurations(space, prior=prior, seed=seed, threads=threads)
    done = 0
    while done < trials:
        asked = search.ask(min(batch, trials - done))
        if not asked:
            break
        for configuration in asked:
            begin = time.perf_counter()
            try:
                seconds: Optional[float] = f(configuration)
                if seconds is None:
                    seconds = time.perf_counter() - begin
            except tuple(catch):
                search.tell(configuration, "crashed")
            else:
                search.tell(configuration, seconds)
        done += len(asked)
    best = search.best()
    if best is None:
        raise Failure(f"none of {done} configurations was ok")
    return best
