"""The search among configurations of a program that graft did not make, with its measurements in Python."""

import json
import math
import os
import pathlib
import time
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

from ._graft import Failure, Mistake, _Configurations

Configuration = Dict[str, Any]
Outcome = Union[float, str]  # seconds, or the status with which it failed


def _text(configuration: Mapping[str, Any]) -> str:
    return json.dumps(dict(configuration), default=lambda number: number.item())  # of numpy


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
        self._told: List[Tuple[Configuration, Outcome]] = []

    def ask(self, count: int = 1) -> List[Configuration]:
        """Distinct configurations, at most `count`, none asked for before; fewer where the space has no more."""
        return [json.loads(text) for text in self._search.ask(count)]

    def tell(self, configuration: Mapping[str, Any], outcome: Union[float, str, None]) -> None:
        """How many seconds it took, or the status with which it failed ('crashed'; None, NaN and infinity are the
        same)."""
        text = _text(configuration)
        if not isinstance(outcome, str):
            outcome = "crashed" if outcome is None or not math.isfinite(outcome) else float(outcome)
        if isinstance(outcome, str):
            self._search.tell(text, 0.0, outcome)
        else:
            self._search.tell(text, outcome, "ok")
        self._told.append((json.loads(text), outcome))

    def trials(self) -> List[Tuple[Configuration, Outcome]]:
        """What was told, in order: seconds, or a status."""
        return list(self._told)

    def best(self) -> Optional[Tuple[Configuration, float]]:
        """The fastest that was told, and its seconds; None before any was ok."""
        best = self._search.best()
        return None if best is None else (json.loads(best.schedule), best.seconds)


def _kept(file: Optional[pathlib.Path]) -> List[Tuple[Configuration, Outcome]]:
    """The trials of a file of tune_function, which then ends with a whole line."""
    if file is None or not file.exists():
        return []
    text = file.read_text(encoding="utf-8")
    whole = text[:text.rfind("\n") + 1]  # what was being written at the end is left out
    if whole != text:
        file.write_text(whole, encoding="utf-8")
    try:
        return [(configuration, outcome) for configuration, outcome in map(json.loads, whole.splitlines())]
    except ValueError:
        raise Mistake(f"{file}: no trials of tune_function, give another file for out") from None


def tune_function(
    space: Union[Mapping[str, Any], str, "os.PathLike[str]"],
    f: Callable[[Configuration], Optional[float]],
    *,
    prior: Union[None, str, "os.PathLike[str]", Sequence[Union[str, "os.PathLike[str]"]]] = None,
    trials: int = 64,
    batch: int = 4,
    catch: Iterable[type] = (Exception,),
    out: Union[None, str, "os.PathLike[str]"] = None,
    seed: int = 1,
    threads: int = 1,
) -> Tuple[Configuration, float]:
    """Searches the configuration for which f(configuration) is least: seconds, which f returns, or else its wall time.

    A configuration for which `f` raises one of `catch`, or returns NaN or infinity, has crashed. `out`: a file of
    lines of JSON, one for each trial, [configuration, seconds or status], written at once; a search that was ended is
    continued by the same call. Failure if none was ok.
    """
    search = Configurations(space, prior=prior, seed=seed, threads=threads)
    file = None if out is None else pathlib.Path(out)
    for configuration, outcome in _kept(file):
        search.tell(configuration, outcome)
    done = len(search.trials())
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
                seconds = math.nan
            search.tell(configuration, seconds)
            if file is not None:
                with file.open("a", encoding="utf-8") as lines:
                    lines.write(json.dumps(search.trials()[-1]) + "\n")
        done += len(asked)
    best = search.best()
    if best is None:
        raise Failure(f"none of {done} configurations was ok")
    return best
