"""Types of the extension module; the docstrings of its functions say the rest. A test holds the names and parameters of
both together."""

import os
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Union

import numpy as np
import numpy.typing as npt

_PathLike = Union[str, os.PathLike[str]]
_Progress = Callable[[str, int, int], Any]
_Note = Callable[[str], Any]
_Stop = Callable[[], bool]

class Error(RuntimeError): ...
class Mistake(Error, ValueError): ...
class Failure(Error): ...
class Stopped(Error): ...

class Workload:
    def __init__(self, text: str) -> None: ...
    @property
    def text(self) -> str: ...
    @property
    def flops(self) -> float: ...
    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...

class Platform:
    def __init__(self, id: str) -> None: ...
    @staticmethod
    def from_yaml(yaml: str) -> Platform: ...
    @property
    def name(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def yaml(self) -> str: ...

class Model:
    def __init__(self, name: Optional[_PathLike] = None) -> None: ...
    @property
    def name(self) -> str: ...

_Workload = Union[Workload, str]
_Platform = Union[Platform, str]
_Model = Optional[Union[Model, _PathLike]]

class Answer:
    @property
    def workload(self) -> str: ...
    @property
    def platform(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def schedule(self) -> str: ...
    @property
    def seconds(self) -> float: ...
    @property
    def gflops(self) -> float: ...
    @property
    def check(self) -> str: ...
    @property
    def trials(self) -> int: ...
    @property
    def complete(self) -> bool: ...
    @property
    def known_since(self) -> str: ...
    @property
    def run(self) -> Optional[os.PathLike[str]]: ...
    @property
    def curve(self) -> npt.NDArray[np.float64]: ...

class Quality:
    @property
    def workload(self) -> str: ...
    @property
    def programs(self) -> int: ...
    @property
    def before(self) -> float: ...
    @property
    def after(self) -> float: ...

class Adapted:
    @property
    def model(self) -> Model: ...
    @property
    def workloads(self) -> List[Quality]: ...

class Trained:
    @property
    def model(self) -> Model: ...
    @property
    def learner(self) -> str: ...
    @property
    def programs(self) -> int: ...
    @property
    def platforms(self) -> List[str]: ...

class Function:
    @property
    def name(self) -> str: ...
    @property
    def workload(self) -> str: ...
    @property
    def check(self) -> str: ...
    @property
    def workspace_bytes(self) -> int: ...

class Compiled:
    @property
    def functions(self) -> List[Function]: ...
    @property
    def files(self) -> Dict[str, bytes]: ...
    @property
    def executable(self) -> bool: ...

class Measured:
    @property
    def schedule(self) -> str: ...
    @property
    def seconds(self) -> float: ...
    @property
    def status(self) -> str: ...

class Search:
    def __init__(
        self,
        workload: _Workload,
        platform: _Platform,
        *,
        model: _Model = None,
        seed: int = 1,
        threads: int = 1,
        start: Sequence[str] = (),
    ) -> None: ...
    def ask(self, count: int = 1) -> List[str]: ...
    def tell(self, schedules: Sequence[str], seconds: Iterable[Union[float, str, None]]) -> None: ...
    def best(self) -> Optional[Measured]: ...
    def trials(self) -> List[Measured]: ...

def version() -> str: ...
def platforms() -> List[str]: ...
def tune(
    workload: _Workload,
    platform: _Platform,
    *,
    trials: int = 256,
    budget_seconds: float = 0.0,
    stop_after: int = 0,
    seed: int = 1,
    threads: int = 1,
    model: _Model = None,
    start: Sequence[str] = (),
    out: Optional[_PathLike] = None,
    library: Optional[_PathLike] = None,
    again: bool = False,
    repetitions: int = 3,
    repetition_seconds: float = 0.001,
    timeout_seconds: float = 10.0,
    progress: Optional[_Progress] = None,
    note: Optional[_Note] = None,
    stop: Optional[_Stop] = None,
) -> Answer: ...
def adapt(
    model: _Model,
    platform: _Platform,
    workloads: Iterable[_Workload],
    out: _PathLike,
    *,
    shots: int = 20,
    seed: int = 1,
    threads: int = 1,
    run: Optional[_PathLike] = None,
    repetitions: int = 3,
    repetition_seconds: float = 0.001,
    timeout_seconds: float = 10.0,
    progress: Optional[_Progress] = None,
    note: Optional[_Note] = None,
    stop: Optional[_Stop] = None,
) -> Adapted: ...
def predict(
    model: _Model, workload: _Workload, platform: _Platform, schedules: Sequence[str]
) -> npt.NDArray[np.float64]: ...
def train(
    datasets: Sequence[_PathLike],
    out: _PathLike,
    *,
    learner: str = "residual",
    model: str = "",
    encoding: str = "",
    steps: int = 0,
    hold_out: str = "",
    workloads: Iterable[_Workload] = (),
    rows: int = 0,
    base: Optional[_PathLike] = None,
    seed: int = 1,
    threads: int = 1,
    progress: Optional[_Progress] = None,
    note: Optional[_Note] = None,
    stop: Optional[_Stop] = None,
) -> Trained: ...
def evaluate(
    datasets: Sequence[_PathLike],
    *,
    methods: Sequence[str] = ["scratch", "zero-shot", "residual"],
    shots: Sequence[int] = [0, 10, 50],
    draws: int = 20,
    targets: Sequence[str] = (),
    regime: str = "seen",
    model: str = "",
    encoding: str = "",
    steps: int = 0,
    workloads: Iterable[_Workload] = (),
    rows: int = 0,
    out: Optional[_PathLike] = None,
    seed: int = 1,
    threads: int = 1,
    progress: Optional[_Progress] = None,
    note: Optional[_Note] = None,
    stop: Optional[_Stop] = None,
) -> Dict[str, Any]: ...
def encodings() -> List[str]: ...
def feature_names(encoding: str) -> List[str]: ...
def encode(
    workload: _Workload,
    platform: _Platform,
    schedules: Sequence[str],
    encoding: str = "context_relation",
    *,
    threads: int = 1,
) -> npt.NDArray[np.float32]: ...
def dataset_content(file: _PathLike) -> Dict[str, Any]: ...
def compile(
    answers: Sequence[Answer],
    *,
    format: str = "library",
    name: str = "kernels",
    names: Dict[str, str] = {},
    variants: int = 1,
    constants: Optional[_PathLike] = None,
    threads: int = 1,
    progress: Optional[_Progress] = None,
    note: Optional[_Note] = None,
    stop: Optional[_Stop] = None,
) -> Compiled: ...
def write(compiled: Compiled, folder: _PathLike) -> None: ...
