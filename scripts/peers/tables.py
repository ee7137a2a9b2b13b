#!/usr/bin/env python3
"""Compares graft's search among recorded tables with the strategies of Kernel Tuner in its simulation mode.

    tables.py FOLDER... --graft PROGRAM [--seeds 20] [--evaluations 200] [--strategies a,b] [--out figures.json]

Each FOLDER has the caches of one kernel, NAME.json or NAME.json.gz of each GPU (Kernel Tuner's format), two GPUs or
more. In turn each GPU is the one that is tuned. Contenders: the strategies of Kernel Tuner; TPE of Optuna, if
"optuna_tpe" is among --strategies; `graft replay` with a
model that graft train made of the folder's other GPUs ("graft, prior"); and `graft replay --model scratch`.

All search the same points, those of the cache. An evaluation is a distinct configuration that a contender asks for,
failing ones included; after each the speed of the best so far is the optimum's time divided by its time, 0 before
anything ran. Printed are means over tables and seeds with 95 % intervals (bootstrap over seeds within tables), and
the evaluations until 95 % of the optimum, where a search that does not get there counts as one of all evaluations.
"""

import argparse
import gzip
import json
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import warnings

for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ[f"{library}_NUM_THREADS"] = "1"

# All single-objective strategies of Kernel Tuner 1.5 but those that evaluate the whole space or need other packages.
STRATEGIES = (
    "random_sample,genetic_algorithm,simulated_annealing,dual_annealing,diff_evo,pso,firefly_algorithm,bayes_opt,"
    "basinhopping,greedy_ils,greedy_mls,mls,ordered_greedy_mls,hybrid_vndx,adaptive_tabu_greywolf"
)
BUDGETS = (10, 25, 50, 100, 200)
NEAR = 0.95
RESAMPLES = 1000
PRIOR, SCRATCH = "graft, prior", "graft, scratch"
TPE = "optuna_tpe"  # of Optuna, in place of a strategy
ASKED_FOR_EACH = 50


def read_cache(path):
    opened = gzip.open(path, "rt") if path.suffix == ".gz" else open(path)
    with opened as file:
        return json.load(file)


def is_time(value):
    return isinstance(value, (int, float)) and math.isfinite(value) and value > 0


def speeds(times, optimum, evaluations):
    """Of the best so far after each evaluation; a search that ended early keeps its best."""
    out, best = [], math.inf
    for i in range(evaluations):
        if i < len(times) and is_time(times[i]):
            best = min(best, times[i])
        out.append(optimum / best)
    return out


def by_kernel_tuner(document, cache, strategy, seed, evaluations):
    from kernel_tuner import tune_kernel

    names = list(document["tune_params"])
    points = set(document["cache"])

    def is_recorded(point):  # not a lambda, the text of which Kernel Tuner would rewrite
        return ",".join(str(point[name]) for name in names) in points

    random.seed(seed)
    results, _ = tune_kernel(
        document["kernel_name"],
        "",
        tuple(document["problem_size"]),
        [],
        document["tune_params"],
        restrictions=is_recorded,
        strategy=strategy,
        strategy_options={"max_fevals": evaluations},
        cache=str(cache),
        simulation_mode=True,
        lang="CUDA",
        quiet=True,
        seed=seed,
    )
    times = {}
    for result in results:
        times.setdefault(tuple(result[name] for name in names), result["time"])
    return list(times.values())


def by_optuna(document, seed, evaluations):
    """TPE; a point that is not in the table is told as pruned, and does not count. Numbers are in their order."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    values = {}
    for name, all_values in document["tune_params"].items():
        numbers = all(isinstance(value, (int, float)) for value in all_values)
        values[name] = (sorted(all_values) if numbers else all_values, numbers)
    times = {}
    for _ in range(ASKED_FOR_EACH * evaluations):
        if len(times) >= evaluations:
            break
        trial, point = study.ask(), {}
        for name, (all_values, numbers) in values.items():
            last = len(all_values) - 1
            at = trial.suggest_int(name, 0, last) if numbers else trial.suggest_categorical(name, range(last + 1))
            point[name] = all_values[at]
        key = ",".join(str(point[name]) for name in values)
        entry = document["cache"].get(key)
        if entry is None or not is_time(entry["time"]):
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)
        else:
            study.tell(trial, math.log(entry["time"]))
        if entry is not None:
            times.setdefault(key, entry["time"])
    return list(times.values())


def run(program, *arguments):
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"error: graft {' '.join(map(str, arguments))}: {done.stderr.strip()}")
    return done.stdout


def by_graft(program, table, model, seed, evaluations):
    """The speeds after each trial, from the curve of improvements."""
    out = run(program, "replay", table, "--model", model, "--trials", evaluations, "--batch", 5, "--seed", seed, "--json")
    row = json.loads(out)["rows"][0]
    result, at, best = [], 0, math.inf
    for i in range(1, evaluations + 1):
        while at < len(row["curve"]) and row["curve"][at][0] <= i:
            best = row["curve"][at][1]
            at += 1
        result.append(row["best_recorded"] / best)
    return result


def compared(folder, arguments, work):
    """{gpu: {contender: [speeds of each seed]}}"""
    caches = {path.name.split(".")[0]: read_cache(path) for path in sorted(folder.glob("*.json*"))}
    if len(caches) < 2:
        sys.exit(f"error: {folder}: give a folder with the caches of two GPUs or more")
    for gpu, document in caches.items():
        (work / f"{gpu}.json").write_text(json.dumps(document))
        run(arguments.graft, "import", "kernel_tuner", work / f"{gpu}.json", "--platform", gpu, "--out", work / f"{gpu}.h5")
    out = {}
    for gpu, document in caches.items():
        others = [work / f"{other}.h5" for other in caches if other != gpu]
        model = work / f"without-{gpu}.h5"
        run(arguments.graft, "train", *others, "--out", model)
        optimum = min(entry["time"] for entry in document["cache"].values() if is_time(entry["time"]))
        own = {name: [] for name in [PRIOR, SCRATCH, *filter(None, arguments.strategies.split(","))]}
        for seed in range(1, arguments.seeds + 1):
            for name in own:
                if name in (PRIOR, SCRATCH):
                    which = model if name == PRIOR else "scratch"
                    own[name].append(by_graft(arguments.graft, work / f"{gpu}.h5", which, seed, arguments.evaluations))
                else:
                    if name == TPE:
                        times = by_optuna(document, seed, arguments.evaluations)
                    else:
                        cache = work / f"{gpu}.json"
                        times = by_kernel_tuner(document, cache, name, seed, arguments.evaluations)
                    own[name].append(speeds(times, optimum, arguments.evaluations))
        out[gpu] = own
        print(f"{folder.name}, {gpu}: done", file=sys.stderr, flush=True)
    return out


def evaluations_to(near, speeds_by_trial):
    return next((i + 1 for i, speed in enumerate(speeds_by_trial) if speed >= near), len(speeds_by_trial))


def interval(tables, figure, stream):
    """Mean over tables of the mean over seeds, and its bootstrap interval over the seeds of each table."""
    values = [[figure(run) for run in runs] for runs in tables]

    def mean(rows):
        return sum(sum(row) / len(row) for row in rows) / len(rows)

    drawn = sorted(mean([stream.choices(row, k=len(row)) for row in values]) for _ in range(RESAMPLES))
    return mean(values), drawn[int(0.025 * RESAMPLES)], drawn[int(0.975 * RESAMPLES) - 1]


def report(figures, evaluations):
    budgets = [budget for budget in BUDGETS if budget <= evaluations]
    stream = random.Random(1)
    tables = [own for kernel in figures.values() for own in kernel.values()]
    rows = []
    for name in tables[0]:
        runs = [own[name] for own in tables]
        cells = [interval(runs, lambda run, b=budget: run[b - 1], stream) for budget in budgets]
        near = interval(runs, lambda run: evaluations_to(NEAR, run), stream)
        rows.append((name, cells, near))
    rows.sort(key=lambda row: row[2][0])
    print("| search | " + " | ".join(map(str, budgets)) + f" | evaluations to {NEAR:.0%} |")
    print("|---" * (len(budgets) + 2) + "|")
    for name, cells, near in rows:
        texts = [f"{mean:.3f} ({low:.3f} to {high:.3f})" for mean, low, high in cells]
        print(f"| {name} | " + " | ".join(texts) + f" | {near[0]:.0f} ({near[1]:.0f} to {near[2]:.0f}) |")
    strategies = [row for row in rows if row[0] not in (PRIOR, SCRATCH)]
    if not strategies:
        return
    best = strategies[0][0]
    print(f"\nTimes fewer evaluations to {NEAR:.0%} than {best}, the best strategy of Kernel Tuner, by table:")
    for name in (PRIOR, SCRATCH):
        texts = []
        for kernel, gpus in figures.items():
            for gpu, own in gpus.items():
                mean = {c: sum(evaluations_to(NEAR, run) for run in own[c]) / len(own[c]) for c in (name, best)}
                texts.append(f"{kernel} {gpu} {mean[best] / mean[name]:.1f}")
        print(f"* {name}: " + ", ".join(texts))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folders", nargs="+", type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("--graft", required=True, help="the program")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--evaluations", type=int, default=200)
    parser.add_argument("--strategies", default=STRATEGIES)
    parser.add_argument("--out", type=pathlib.Path, help="all speeds, as JSON")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    figures = {}
    for folder in arguments.folders:
        with tempfile.TemporaryDirectory() as work:
            figures[folder.name] = compared(folder, arguments, pathlib.Path(work))
    if arguments.out:
        arguments.out.write_text(json.dumps(figures))
    report(figures, arguments.evaluations)


if __name__ == "__main__":
    main()
