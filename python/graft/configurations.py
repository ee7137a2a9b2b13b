"""The search among configurations of a program that graft did not make, with its measurements in Python."""

import json
import math
import os
import pathlib
import time
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Type, Union

from ._graft import Failure, Mistake, WrongType, _Configurations

Configuration = Dict[str, Any]
# Seconds, the status with which it failed, or a status with its bound: ("slower_than_limit", 2.5).
Outcome = Union[float, str, Tuple[str, float]]


_Path = Union[str, "os.PathLike[str]"]


def _text(name: str, given: Any) -> str:
    """As JSON, numbers and arrays of numpy included."""
    if not isinstance(given, Mapping):
        raise WrongType(f"{name}: expected a dict, got {given!r}")
    try:
        return json.dumps(dict(given), default=lambda numbers: numbers.tolist())
    except (AttributeError, TypeError) as error:
        raise WrongType(f"{name}: {error}") from None


def _read(name: str, given: Any) -> str:
    try:
        return pathlib.Path(given).read_text(encoding="utf-8")
    except TypeError:
        raise WrongType(f"{name}: expected a dict or a path, got {given!r}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise Mistake(f"{os.fspath(given)}: cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _outcome(given: Any) -> Tuple[str, float]:
    """Status and seconds of what a user says: seconds, None, a status, or a status with the seconds that bound it."""
    if isinstance(given, str):
        return given, math.nan
    if isinstance(given, tuple) and len(given) == 2:
        return str(given[0]), float(given[1])
    try:
        seconds = math.nan if given is None else float(given)
    except (TypeError, ValueError):
        raise WrongType(f"outcome: expected seconds, None or a status, got {given!r}") from None
    return ("ok" if math.isfinite(seconds) else "crashed"), seconds


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
        text = _text("space", space) if isinstance(space, Mapping) else _read("space", space)
        try:
            model = os.fspath(prior) if isinstance(prior, (str, os.PathLike)) else ""
            files: List[str] = [] if prior is None or model else [os.fspath(each) for each in prior]  # type: ignore
        except TypeError:
            raise WrongType(f"prior: expected a path or a list of paths, got {prior!r}") from None
        self._search = _Configurations(text, files, model, seed, threads)
        self._told: List[Tuple[Configuration, Outcome]] = []

    def ask(self, count: int = 1) -> List[Configuration]:
        """Distinct configurations, at most `count`, none asked for before; fewer where the space has no more."""
        return [json.loads(text) for text in self._search.ask(count)]

    def tell(
        self,
        configurations: Union[Mapping[str, Any], Sequence[Mapping[str, Any]]],
        outcomes: Any,
    ) -> None:
        """What became of one configuration, or of a list of them: seconds (a number of any kind), or the status with
        which it failed ('crashed'; None, NaN and infinity are the same), or ('slower_than_limit', seconds)."""
        if isinstance(configurations, Mapping):
            configurations, outcomes = [configurations], [outcomes]
        if not isinstance(configurations, (list, tuple)):
            raise WrongType(f"configurations: expected a dict or a list of dicts, got {configurations!r}")
        given = list(outcomes)
        if len(given) != len(configurations):
            raise Mistake(f"outcomes: {len(given)} of {len(configurations)} configurations, give one for each")
        told = [(_text("configuration", each), *_outcome(outcome)) for each, outcome in zip(configurations, given)]
        self._search.tell([(text, seconds, status) for text, status, seconds in told])
        for text, status, seconds in told:
            self._told.append((json.loads(text), seconds if status == "ok" else
                               status if math.isnan(seconds) or status == "crashed" else (status, seconds)))

    def trials(self) -> List[Tuple[Configuration, Outcome]]:
        """What was told, in order: seconds, or a status."""
        return list(self._told)

    def __repr__(self) -> str:
        return f"<graft.Configurations: {len(self._told)} trials>"

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
        return [(configuration, tuple(outcome) if isinstance(outcome, list) else outcome)
                for configuration, outcome in map(json.loads, whole.splitlines())]
    except ValueError:
        raise Mistake(f"{file}: no trials of tune_function, give another file for out") from None


def tune_function(
    space: Union[Mapping[str, Any], str, "os.PathLike[str]"],
    f: Callable[[Configuration], Optional[float]],
    *,
    prior: Union[None, str, "os.PathLike[str]", Sequence[Union[str, "os.PathLike[str]"]]] = None,
    trials: int = 64,
    batch: int = 4,
    catch: Iterable[Type[BaseException]] = (Exception,),
    out: Union[None, str, "os.PathLike[str]"] = None,
    seed: int = 1,
    threads: int = 1,
) -> Tuple[Configuration, float]:
    """Searches the configuration for which f(configuration) is least: seconds, which f returns, or else its wall time.

    A configuration for which `f` raises one of `catch`, or returns NaN or infinity, has crashed. `out`: a file of
    lines of JSON, one for each trial, [configuration, seconds or status], written at once; a search that was ended is
    continued by the same call. Failure if none was ok.
    """
    if not callable(f):
        raise WrongType(f"f: expected a function, got {f!r}")
    for name, number in (("trials", trials), ("batch", batch)):
        if not isinstance(number, int) or number < 1:
            raise WrongType(f"{name}: expected an int of 1 or more, got {number!r}")
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
