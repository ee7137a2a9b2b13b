"""Measurements of programs, as columns of numpy."""

import os
from typing import Any, Dict, List, Sequence, Union

import numpy as np
import numpy.typing as npt

from . import _graft
from ._public import published


def _objects(values: Sequence[Any]) -> npt.NDArray[Any]:
    column = np.empty(len(values), dtype=object)  # not np.array(values), which makes a matrix of equally long tuples
    for i, value in enumerate(values):
        column[i] = value
    return column


class Dataset(Dict[str, npt.NDArray[Any]]):
    """The measurements of one platform as columns, 1-D arrays of one element per program:

        workload     str, canonical text
        platform     str, id
        source       str: "native", "remote", "imported", "modelled" or "emulated"
        sketch       str, text: steps with open arguments, or the columns of an imported table
        arguments    tuple of int, of the sketch
        schedule     str as Answer.schedule, for predict() and encode(); "" where no steps are known
        program      uint64, hash: equal programs have equal ones; 0: the schedule cannot be applied
        status       str: "ok", "crashed", ... (docs/reference/statuses.md)
        reason       str; "" where the status is ok
        seconds      float64, least of the repetitions; NaN unless the status is ok
        repetitions  tuple of float, seconds of each, in order; the lower bound for "slower_than_limit"

    pandas.DataFrame(dataset) is a table of them. yaml: the platform's full description, as Platform.yaml; "" for times
    that were imported.
    """

    def __init__(self, columns: Dict[str, npt.NDArray[Any]], yaml: str) -> None:
        super().__init__(columns)
        self.yaml = yaml

    def __repr__(self) -> str:
        return f"<graft.Dataset of {len(self['seconds'])} programs: {', '.join(self)}>"


def read_dataset(file: Union[str, "os.PathLike[str]"]) -> Dataset:
    """The content of a file of graft collect, import or clean (docs/reference/dataset-format.md).

    Raises Mistake for a file that is missing, or no dataset.
    """
    content = published(_graft.dataset_content, "read_dataset")(file)
    count = len(content["seconds"])
    texts: Dict[str, List[str]] = {name: content[name] for name in ("workloads", "sketches")}
    return Dataset(
        {
            "workload": _objects(texts["workloads"])[content["workload"]],
            "platform": _objects([content["platform"]] * count),
            "source": _objects([content["source"]] * count),
            "sketch": _objects(texts["sketches"])[content["sketch"]],
            "arguments": _objects(content["arguments"]),
            "schedule": _objects(content["schedule"]),
            "program": content["program"],
            "status": _objects(content["status"]),
            "reason": _objects(content["reason"]),
            "seconds": content["seconds"],
            "repetitions": _objects(content["repetitions"]),
        },
        content["yaml"],
    )
