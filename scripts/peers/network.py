#!/usr/bin/env python3
"""Times a network with onnxruntime, OpenVINO and graft, on as many cores, in turns.

    network.py MODEL.onnx [--shape x=1,3,224,224] [--graft FOLDER] [--threads 1] [--busy 0] [--rounds 30] [--json]
               [--searches FILE --host NAME]

FOLDER is what `graft compile RUN --out FOLDER --export` made of a tuned network. Contenders that are not installed are left
out and named. Each round runs all of them, in another order each time, so that what slows the machine down meets all.
Printed are the median time of a run, its 95 % interval, and each contender's time by graft's (by the first one's
without graft); with --json one object. On several cores graft's kernels run on the threads of graft_pool.c;
tune for a platform of as many threads. With --precision bf16 OpenVINO computes in it where the core can. A library for several shapes runs the one that --shape gives. Results are
compared with the first contender's before anything is timed. --threads 1,2 has each contender once for each number;
with --busy 0,1,2,4 all is timed next to 0, 1, 2 and 4 processes that do nothing but use the same cores. --searches adds the times of all rounds to a file that
`graft experiment run networks --from FILE` reads, under the model's name and the host's.
"""

import argparse
import contextlib
import ctypes
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

# Before numpy and the contenders start threads of their own.
for library in ("OPENBLAS", "MKL"):
    os.environ[f"{library}_NUM_THREADS"] = "1"
os.environ["GOMP_SPINCOUNT"] = "20000"  # idle threads wait, and leave the cores to the next contender

import numpy as np  # noqa: E402

RESAMPLES = 2000

def parsed_shapes(texts):
    shapes = {}
    for text in (part for given in texts for part in given.split(";")):
        name, _, extents = text.rpartition("=")
        try:
            shapes[name] = [int(extent) for extent in extents.split(",") if extent]
        except ValueError:
            name = ""
        if not name:
            sys.exit(f"error: --shape: {text}: give NAME=1,3,224,224 or DIMENSION=1")
    return shapes


def model_inputs(path, shapes, seed):
    """Random inputs by name, in the model's order; whole numbers are 0 or 1, which are valid as indices and masks."""
    import onnx

    model = onnx.load(path, load_external_data=False)
    weights = {tensor.name for tensor in model.graph.initializer}
    random = np.random.default_rng(seed)
    inputs = {}
    for each in model.graph.input:
        if each.name in weights:
            continue
        kind = each.type.tensor_type
        shape = shapes.get(each.name)
        if shape is None:
            shape = [shapes.get(d.dim_param, [0])[0] if d.dim_param else d.dim_value for d in kind.shape.dim]
        if any(extent < 1 for extent in shape):
            sys.exit(f"error: {path}: input '{each.name}': its shape is open: give --shape {each.name}=...")
        dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type))
        numbers = random.uniform(-1, 1, shape) if dtype.kind == "f" else random.integers(0, 2, shape)
        inputs[each.name] = numbers.astype(dtype)
    return inputs


def onnxruntime_of(path, inputs, threads, flags):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return onnxruntime.__version__, lambda: session.run(None, inputs)


def openvino_of(path, inputs, threads, flags):
    import openvino

    core = openvino.Core()
    model = core.read_model(path)
    model.reshape({name: list(array.shape) for name, array in inputs.items()})
    # Without the third it computes in bf16 where the core can.
    settings = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY",
                "INFERENCE_PRECISION_HINT": flags.precision}
    compiled = core.compile_model(model, "CPU", settings)
    request = compiled.create_infer_request()
    tensors = {name: openvino.Tensor(array, shared_memory=True) for name, array in inputs.items()}
    for name, tensor in tensors.items():
        request.set_tensor(name, tensor)

    def run():
        request.infer()
        return [request.get_tensor(output).data for output in compiled.outputs]

    return openvino.__version__, run


def graft_of(folder, inputs, threads, flags):
    """NAME_run of the library in the folder, by what its NAME.json says, so that any Python can call it."""
    described = [json.loads(path.read_text()) for path in pathlib.Path(folder).glob("*.json")]
    networks = [each for each in described if each.get("kind") == "sequence"]
    if len(networks) != 1:
        sys.exit(f"error: {folder}: give the folder of one compiled network: graft compile RUN --out FOLDER --export")
    is_ = networks[0]
    extents = []
    if "shapes" in is_:  # that of the inputs
        fitting = [shape for shape in is_["shapes"]
                   if all(tuple(each["shape"]) == inputs[each["name"]].shape for each in shape["inputs"])]
        if not fitting:
            sys.exit(f"error: {folder}: has no such shape")
        is_ = {**is_, **fitting[0]}
        extents = [ctypes.c_int64(extent) for extent in is_["extents"]]
    with tempfile.TemporaryDirectory() as temporary:
        shared = f"{temporary}/network.so"
        subprocess.run(["cc", "-shared", "-nostdlib", "-o", shared, "-Wl,--whole-archive", f"{folder}/{is_['code']}",
                        "-Wl,--no-whole-archive"], check=True)
        function = getattr(ctypes.CDLL(shared), is_["run"]["symbol"])
        if threads > 1 and is_["threads"] > 1:
            subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-DGRAFT_POOL_API=", "-o", f"{temporary}/pool.so",
                            f"{folder}/graft_pool.c", "-pthread"], check=True)
            pool = ctypes.CDLL(f"{temporary}/pool.so")
            pool.graft_pool_start.restype = ctypes.c_void_p

    def aligned(content):
        buffer = np.empty(content.nbytes + is_["alignment"], np.uint8)
        begin = -buffer.ctypes.data % is_["alignment"]
        memory = buffer[begin:begin + content.nbytes].view(content.dtype).reshape(content.shape)
        memory[...] = content
        return memory

    dtypes = {"f32": np.float32, "f64": np.float64, "i64": np.int64, "i32": np.int32, "i8": np.int8, "u8": np.uint8}
    given = [inputs[tensor["name"]].astype(dtypes[tensor["dtype"]]) for tensor in is_["inputs"]]
    outputs = [np.zeros(tensor["shape"], dtypes[tensor["dtype"]]) for tensor in is_["outputs"]]
    tensors = {tensor["argument"]: aligned(array)
               for tensor, array in zip(is_["inputs"] + is_["outputs"], given + outputs)}
    by_name = {tensor["name"]: tensor["argument"] for tensor in is_["inputs"]}
    for tensor in is_["outputs"]:  # what may be read and written in one place, is
        if "overwrites" in tensor:
            tensors[tensor["argument"]] = tensors[by_name[tensor["overwrites"]]]
    memory = {"arena": aligned(np.zeros(is_["arena_bytes"], np.uint8))}
    if is_["weights"]:
        memory["weights"] = aligned(np.fromfile(f"{folder}/{is_['weights']}", np.uint8))
    parallel = {}  # without a parallel_for: the calling thread alone
    if threads > 1 and is_["threads"] > 1:
        parallel = {"parallel_for": ctypes.cast(pool.graft_pool_for, ctypes.c_void_p).value,
                    "context": pool.graft_pool_start(threads)}
    addresses = [tensors[argument["argument"]].ctypes.data if argument["kind"] == "tensor"
                 else memory[argument["kind"]].ctypes.data if argument["kind"] in memory
                 else parallel.get(argument["kind"]) for argument in is_["run"]["arguments"]
                 if argument["kind"] != "extent"]
    arguments = extents + [ctypes.c_void_p(address) for address in addresses]
    results = [tensors[tensor["argument"]] for tensor in is_["outputs"]]

    def run(_held=(tensors, memory)):  # what the addresses are of
        function(*arguments)
        return results

    return is_["graft"], run


def difference(results, expected):
    """The largest, relative to the largest element of the output that it is in."""
    worst = 0.0
    for result, other in zip(results, expected):
        scale = float(np.abs(other).max()) or 1.0
        worst = max(worst, float(np.abs(np.asarray(result, np.float64) - other).max()) / scale)
    return worst


def interval(seconds, random):
    """Of the median, by resampling."""
    medians = np.median(random.choice(seconds, (RESAMPLES, len(seconds))), axis=1)
    return [float(each) for each in np.percentile(medians, [2.5, 97.5])]


def ratio_interval(seconds, others, random):
    """Of the ratio of medians, rounds drawn in pairs."""
    rounds = random.integers(0, len(seconds), (RESAMPLES, len(seconds)))
    ratios = np.median(np.asarray(seconds)[rounds], axis=1) / np.median(np.asarray(others)[rounds], axis=1)
    return [float(each) for each in np.percentile(ratios, [2.5, 97.5])]


def timed(runs, rounds, least_seconds, pause_seconds, random):
    """Seconds of a run by name, round by round: of as many runs as last a while, by their mean."""
    repeats = {}
    for name, run in runs.items():
        begin = time.perf_counter()
        run()
        repeats[name] = max(1, int(np.ceil(least_seconds / max(time.perf_counter() - begin, 1e-7))))
    seconds = {name: [] for name in runs}
    for _ in range(rounds):
        for name in random.permutation(list(runs)):
            run = runs[name]
            if pause_seconds > 0:  # until the threads of the one before are idle
                time.sleep(pause_seconds)
                run()
            begin = time.perf_counter()
            for _ in range(repeats[name]):
                run()
            seconds[name].append((time.perf_counter() - begin) / repeats[name])
    return seconds


@contextlib.contextmanager
def busy(processes):
    """Processes that use the cores that this one may use, and no memory."""
    started = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        if started:
            time.sleep(1)  # until Python has started
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def numbers(text):
    try:
        return [int(each) for each in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}': give numbers such as 1,2") from None


def add_searches(file, workload, platform, seconds):
    """A time of each round in place of those of the same contender, workload and platform."""
    known = json.loads(file.read_text())["searches"] if file.exists() else []
    known = [each for each in known
             if (each["workload"], each["platform"]) != (workload, platform) or each["method"] not in seconds]
    for name, times in seconds.items():
        known += [{"method": name, "workload": workload, "platform": platform, "seed": seed, "trials": 1,
                   "best": [[1, float(f"{time:.4g}")]]} for seed, time in enumerate(times, 1)]
    file.write_text(json.dumps({"searches": known}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="MODEL.onnx")
    parser.add_argument("--shape", action="append", default=[],
                        help="of an input (x=1,3,224,224) or a dimension (batch=1)")
    parser.add_argument("--graft", metavar="FOLDER", help="a compiled network")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--least-seconds", type=float, default=0.02,
                        help="a contender runs in each round (default: 0.02)")
    parser.add_argument("--threads", type=numbers, default=[1], help="of each contender, on as many cores")
    parser.add_argument("--busy", type=numbers, default=[0], help="processes that use the same cores meanwhile")
    parser.add_argument("--precision", default="f32", choices=["f32", "bf16", "f16"], help="of OpenVINO")
    parser.add_argument("--core", type=int, help="that all run on (default: the last ones that may be used)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--searches", metavar="FILE", type=pathlib.Path,
                        help="to which the times are added, for an experiment")
    parser.add_argument("--host", default="host", help="name of this machine there")
    flags = parser.parse_args()
    most = max(flags.threads)
    cores = {flags.core} if flags.core is not None else set(sorted(os.sched_getaffinity(0))[-most:])
    if len(cores) < most:
        sys.exit(f"error: --threads {most}: {len(cores)} cores may be used")
    if flags.searches and len(flags.threads) * len(flags.busy) > 1:
        sys.exit("error: --searches: of one number of threads and of busy processes")
    os.sched_setaffinity(0, cores)

    inputs = model_inputs(flags.model, parsed_shapes(flags.shape), flags.seed)
    contenders = {"onnxruntime": (onnxruntime_of, flags.model), "openvino": (openvino_of, flags.model)}
    if flags.graft:
        contenders = {"graft": (graft_of, flags.graft), **contenders}
    runs, versions, errors = {}, {}, {}
    expected = None
    for (kind, (start, what)), threads in itertools.product(contenders.items(), flags.threads):
        name = kind if len(flags.threads) == 1 else f"{kind}/{threads}"
        try:
            versions[name], run = start(what, inputs, threads, flags)
        except ImportError as error:
            print(f"{name}: left out: {error}", file=sys.stderr)
            continue
        results = [np.array(each, np.float64) for each in run()]
        expected = results if expected is None else expected
        errors[name] = difference(results, expected)
        runs[name] = run
    if not runs:
        sys.exit("error: no contender is installed")

    random = np.random.default_rng(flags.seed)
    tables = []
    for processes in flags.busy:
        with busy(processes):
            seconds = timed(runs, flags.rounds, flags.least_seconds, 0.05 if most > 1 else 0, random)
        first = seconds[next(iter(runs))]
        tables.append([{"name": name, "version": versions[name], "busy": processes, "seconds": float(np.median(times)),
                        "interval": interval(times, random), "ratio": float(np.median(times) / np.median(first)),
                        "ratio_interval": ratio_interval(times, first, random), "difference": errors[name]}
                       for name, times in seconds.items()])
    if flags.searches:
        add_searches(flags.searches, pathlib.Path(flags.model).stem, flags.host, seconds)
    if flags.json:
        print(json.dumps({"model": flags.model, "inputs": {name: list(array.shape) for name, array in inputs.items()},
                          "rounds": flags.rounds, "cores": sorted(cores), "rows": sum(tables, [])}, indent=1))
        return
    for table in tables:
        busy_text = f"{table[0]['busy']} busy" if len(tables) > 1 else ""
        print(f"{busy_text:<14}{'ms':>10}{'interval':>22}{'times ' + next(iter(runs)):>20}{'interval':>18}{'difference':>12}")
        for row in table:
            low, high = (1e3 * each for each in row["interval"])
            print(f"{row['name']:<14}{1e3 * row['seconds']:>10.3f}{f'[{low:.3f}, {high:.3f}]':>22}{row['ratio']:>20.3f}"
                  f"{'[{:.3f}, {:.3f}]'.format(*row['ratio_interval']):>18}{row['difference']:>12.1e}")


if __name__ == "__main__":
    main()
