#!/usr/bin/env python3
"""Compares graft's search among recorded tables with the strategies of Kernel Tuner in its simulation mode.

    tables.py FOLDER... [--graft PROGRAM] [--seeds 20] [--evaluations 200] [--strategies a,b] [--out figures.json]
        [--searches FILE]

Each FOLDER has the caches of one kernel, NAME.json or NAME.json.gz of each GPU (Kernel Tuner's format), two GPUs or
more. In turn each GPU is the one that is tuned. Contenders: the strategies of Kernel Tuner; TPE of Optuna and SMAC3, if
"optuna_tpe" and "smac" are among --strategies; and with --graft, `graft replay` with a model that graft train made of
the folder's other GPUs ("graft, prior") and `graft replay --model scratch`.

Searches that --out has already are not run again: whoever stops it continues by the same command, and contenders can
be added one by one. Contenders that have more seeds than others keep them.

All search the same points, those of the cache. An evaluation is a distinct configuration that a contender asks for,
failing ones included; after each the speed of the best so far is the optimum's time divided by its time, 0 before
anything ran. Printed are means over tables and seeds with 95 % intervals (bootstrap over seeds within tables), and
the evaluations until 95 % of the optimum, where a search that does not get there counts as one of all evaluations.
--searches writes what `graft experiment run kernel-tuner-searches --from FILE` reads: seconds relative to the optimum,
which is a method of its own with one trial.
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
TPE, SMAC = "optuna_tpe", "smac"  # in place of a strategy
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


def is_number(value):
    return isinstance(value, (int, float))


def asked_and_told(document, evaluations, ask, tell):
    """The times of what a sampler asks for: ask() gives a token and the position of each parameter's value, and tell
    takes the token and the logarithm of the time, or None for what failed or is not in the table (not counted)."""
    times = {}
    for _ in range(ASKED_FOR_EACH * evaluations):
        if len(times) >= evaluations:
            break
        token, at = ask()
        key = ",".join(str(values[at[name]]) for name, values in ordered(document).items())
        time = document["cache"].get(key, {}).get("time")
        tell(token, math.log(time) if is_time(time) else None)
        if time is not None:
            times.setdefault(key, time)
    return list(times.values())


def ordered(document):
    """The values of each parameter, numbers by size."""
    values = document["tune_params"]
    return {name: sorted(v) if all(map(is_number, v)) else v for name, v in values.items()}


def by_optuna(document, seed, evaluations):
    """TPE; numbers are integers by their order."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))

    def ask():
        trial, at = study.ask(), {}
        for name, values in ordered(document).items():
            if is_number(values[0]):
                at[name] = trial.suggest_int(name, 0, len(values) - 1)
            else:
                at[name] = trial.suggest_categorical(name, range(len(values)))
        return trial, at

    def tell(trial, value):
        if value is None:
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)
        else:
            study.tell(trial, value)

    return asked_and_told(document, evaluations, ask, tell)


def by_smac(document, seed, evaluations):
    """SMAC's facade for hyper-parameters, a random forest; numbers are integers by their order."""
    import ConfigSpace
    import smac
    from smac.runhistory import StatusType, TrialValue

    space = ConfigSpace.ConfigurationSpace(seed=seed)
    for name, values in ordered(document).items():
        last = len(values) - 1
        if is_number(values[0]) and last > 0:
            space.add(ConfigSpace.UniformIntegerHyperparameter(name, 0, last))
        else:
            space.add(ConfigSpace.CategoricalHyperparameter(name, range(last + 1)))
    worst = math.log(max(entry["time"] for entry in document["cache"].values() if is_time(entry["time"])))
    with tempfile.TemporaryDirectory() as folder:
        scenario = smac.Scenario(
            space, deterministic=True, n_trials=ASKED_FOR_EACH * evaluations, seed=seed, output_directory=folder
        )
        facade = smac.HyperparameterOptimizationFacade
        initial = facade.get_initial_design(scenario, n_configs=10)
        search = facade(scenario, lambda point, seed: 0, initial_design=initial, overwrite=True, logging_level=False)

        def ask():
            asked = search.ask()
            return asked, dict(asked.config)

        def tell(asked, value):
            if value is None:
                search.tell(asked, TrialValue(cost=worst, status=StatusType.CRASHED))
            else:
                search.tell(asked, TrialValue(cost=value, status=StatusType.SUCCESS))

        return asked_and_told(document, evaluations, ask, tell)


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


def compare(folder, figures, arguments, work, save):
    """Fills figures, {gpu: {contender: [speeds of each seed]}}, with the searches that it lacks."""
    caches = {path.name.split(".")[0]: read_cache(path) for path in sorted(folder.glob("*.json*"))}
    if len(caches) < 2:
        sys.exit(f"error: {folder}: give a folder with the caches of two GPUs or more")
    for gpu, document in caches.items():
        table = work / f"{gpu}.json"
        table.write_text(json.dumps(document))
        if arguments.graft:
            run(arguments.graft, "import", "kernel_tuner", table, "--platform", gpu, "--out", work / f"{gpu}.h5")
    for gpu in caches if arguments.graft else []:
        others = [work / f"{other}.h5" for other in caches if other != gpu]
        run(arguments.graft, "train", *others, "--out", work / f"without-{gpu}.h5")

    def searched(name, gpu, seed):
        evaluations = arguments.evaluations
        if name in (PRIOR, SCRATCH):
            model = work / f"without-{gpu}.h5" if name == PRIOR else "scratch"
            return by_graft(arguments.graft, work / f"{gpu}.h5", model, seed, evaluations)
        document = caches[gpu]
        if name == TPE:
            times = by_optuna(document, seed, evaluations)
        elif name == SMAC:
            times = by_smac(document, seed, evaluations)
        else:
            times = by_kernel_tuner(document, work / f"{gpu}.json", name, seed, evaluations)
        optimum = min(entry["time"] for entry in document["cache"].values() if is_time(entry["time"]))
        return speeds(times, optimum, evaluations)

    names = [*([PRIOR, SCRATCH] if arguments.graft else []), *filter(None, arguments.strategies.split(","))]
    for seed in range(1, arguments.seeds + 1):
        for gpu in caches:
            for name in names:
                runs = figures.setdefault(gpu, {}).setdefault(name, [])
                if len(runs) < seed:
                    runs.append(searched(name, gpu, seed))
        save()
        print(f"{folder.name}: {seed} of {arguments.seeds} seeds", file=sys.stderr, flush=True)


def all_searches(figures):
    """Of each the trials after which the best time changed, and that time."""
    searches = []
    for kernel, gpus in figures.items():
        for gpu, contenders in gpus.items():
            optimum = {"optimum": [[1.0]] * max(len(runs) for runs in contenders.values())}
            for name, runs in {**contenders, **optimum}.items():
                for seed, own in enumerate(runs, 1):
                    times = [float(f"{1 / speed:.4g}") if speed > 0 else None for speed in own]
                    best = [[i + 1, time] for i, time in enumerate(times) if time and (i == 0 or time != times[i - 1])]
                    searches.append({"method": name, "workload": kernel, "platform": gpu, "seed": seed,
                                     "trials": len(own), "best": best})
    return searches


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
    print("| search | seeds | " + " | ".join(map(str, budgets)) + f" | evaluations to {NEAR:.0%} |")
    print("|---" * (len(budgets) + 3) + "|")
    for name, cells, near in rows:
        texts = [f"{mean:.3f} ({low:.3f} to {high:.3f})" for mean, low, high in cells]
        seeds = min(len(own[name]) for own in tables)
        print(f"| {name} | {seeds} | " + " | ".join(texts) + f" | {near[0]:.0f} ({near[1]:.0f} to {near[2]:.0f}) |")
    strategies = [row for row in rows if row[0] not in (PRIOR, SCRATCH)]
    if not strategies or len(strategies) == len(rows):
        return
    best = strategies[0][0]
    print(f"\nTimes fewer evaluations to {NEAR:.0%} than {best}, the best of the others, by table:")
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
    parser.add_argument("--graft", help="the program; without it, the others alone")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--evaluations", type=int, default=200)
    parser.add_argument("--strategies", default=STRATEGIES)
    parser.add_argument("--out", type=pathlib.Path, help="all speeds, as JSON; what it has is not run again")
    parser.add_argument("--searches", type=pathlib.Path, help="all searches, for an experiment")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    figures = {}
    if arguments.out and arguments.out.exists():
        figures = json.loads(arguments.out.read_text())

    def save():
        if arguments.out:
            unfinished = arguments.out.with_suffix(".part")
            unfinished.write_text(json.dumps(figures))
            unfinished.replace(arguments.out)

    for folder in arguments.folders:
        with tempfile.TemporaryDirectory() as work:
            compare(folder, figures.setdefault(folder.name, {}), arguments, pathlib.Path(work), save)
    report(figures, arguments.evaluations)
    if arguments.searches:
        arguments.searches.write_text(json.dumps({"searches": all_searches(figures)}))


if __name__ == "__main__":
    main()
