#!/usr/bin/env python3
"""From ten platforms to a new board: how fast is the best program found, by the number of measured programs, with the
model that graft ships and from scratch?

The shipped model was trained on the ten modelled platforms below and on this project's native ones; the board, a modelled
RISC-V core with 512-bit vectors, is not among them. Run it in the project's folder:

    python3 examples/python/transfer.py --out transfer.png

Prints the curves as a table; draws them, too, where matplotlib is installed and --out names a file. Takes less than a
minute. Runs are kept in --runs and continued: more --trials measure only what is new.
"""

import argparse
import pathlib
import sys
from typing import Any, Dict

import numpy as np
import numpy.typing as npt

import graft

SOURCES = ("cortex-a53", "cortex-a72", "cortex-a510", "neoverse-n1", "a64fx", "haswell", "znver4", "silvermont", "pwr9",
           "sifive-u54")
MODELS = {"shipped model": None, "from scratch": "scratch"}
Array = npt.NDArray[np.float64]
SHIPPED = pathlib.Path(__file__).resolve().parents[2] / "datasets" / "shipped"


def sources_table() -> None:
    """One line for each platform that the model knows: programs, and how far apart the fastest and the slowest are."""
    print(f"{'source':20} {'programs':>8} {'workloads':>9}  slowest / fastest (median over workloads)")
    for name in SOURCES:
        data = graft.read_dataset(SHIPPED / f"model-{name}.h5")
        ok = data["status"] == "ok"
        workloads = np.unique(data["workload"][ok])
        times = [data["seconds"][ok & (data["workload"] == workload)] for workload in workloads]
        spread = np.median([each.max() / each.min() for each in times])
        print(f"{'model:' + name:20} {ok.sum():8} {len(workloads):9}  {spread:.0f}")


def best_after(curve: Array, trials: int) -> float:
    """Least seconds among the first trials; NaN before any program worked."""
    known = curve[curve[:, 0] <= trials]
    return known[-1, 1] if len(known) else np.nan


def draw(curves: Dict[str, Array], trials: int, workload: str, board: str, out: pathlib.Path) -> None:
    try:
        import matplotlib  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        print(f"{out}: not drawn, matplotlib is not installed", file=sys.stderr)
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot  # type: ignore[import-not-found,unused-ignore]

    figure, axes = pyplot.subplots(figsize=(6, 4), layout="constrained")
    for label, curve in curves.items():
        steps = np.arange(1, trials + 1)
        axes.step(steps, [1e6 * best_after(curve, each) for each in steps], where="post", label=label)
    axes.set(xlabel="measured programs", ylabel="best modelled time [us]", title=f"{workload}\non {board}")
    axes.legend()
    figure.savefig(out)
    print(f"{out}: written", file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workload", default="matmul(m=64,n=64,k=64)")
    parser.add_argument("--board", default="model:sifive-x280")
    parser.add_argument("--trials", type=int, default=48)
    parser.add_argument("--runs", type=pathlib.Path, default=pathlib.Path("runs/transfer"))
    parser.add_argument("--out", type=pathlib.Path, help="figure to draw: a file .png, .svg or .pdf")
    given = parser.parse_args()

    sources_table()
    curves = {}
    for label, model in MODELS.items():
        answer = graft.tune(given.workload, given.board, model=model, trials=given.trials,
                            out=given.runs / label.replace(" ", "-"))
        curves[label] = answer.curve

    print(f"\n{given.workload} on {given.board}: best modelled time [us]")
    print(f"{'programs':>8} " + " ".join(f"{label:>14}" for label in curves))
    shown = [1, 2, 4, 8, 16, 32, 64, 128, 256]
    for trials in [each for each in shown if each < given.trials] + [given.trials]:
        print(f"{trials:8} " + " ".join(f"{1e6 * best_after(curve, trials):14.2f}" for curve in curves.values()))
    if given.out:
        draw(curves, given.trials, given.workload, given.board, given.out)


if __name__ == "__main__":
    try:
        main()
    except graft.Error as error:
        sys.exit(f"error: {error}")
