#!/usr/bin/env python3
"""Compares the programs that graft imports from MetaSchedule's traces with TVM's own lowering of these traces.

    metaschedule.py --graft build/release/bin/graft [--traces 24] [--folder /tmp/metaschedule]

Draws traces from MetaSchedule's space generator for a CPU, writes them into a database as its tuner does (with times
that are only numbers: nothing is measured), imports that, and compares statement by statement: the loops around each,
their order, extents and kinds, and the sizes of buffers. Loops of one iteration are left out on both sides; a loop that
TVM has fused may be several of ours. Element-wise nests that TVM splits where no loop ends are split nearby by graft:
programs that differ in nothing else are counted apart. Exits with 1 if another program differs.

Needs apache-tvm 0.27 with apache-tvm-ffi 0.1.14, psutil and numpy.
"""

import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys

import tvm
from tvm import s_tir, te, tirx, topi
from tvm.s_tir import meta_schedule

TARGET = {"kind": "llvm", "num-cores": 4, "mcpu": "core-avx2"}
BEFORE = [  # to loops, with vectors and buffers of their size
    s_tir.transform.CanonicalizeLoop(), s_tir.transform.LowerInitBlock(),
    s_tir.transform.PlanAndUpdateBufferAllocationLocation(), s_tir.transform.ConvertBlocksToOpaque(),
    s_tir.transform.CompactBufferAllocation(), s_tir.transform.StmtSimplify(), s_tir.transform.LowerOpaqueBlock(),
    tirx.transform.NarrowDataType(32)]
AFTER = [  # from there to what is unrolled
    tirx.transform.FlattenBuffer(), tirx.transform.VectorizeLoop(True), tirx.transform.UnrollLoop(),
    tirx.transform.StmtSimplify()]


def operands(*shapes):
    return [te.placeholder(shape, name=name) for shape, name in zip(shapes, ["data", "weight", "bias"])]


def matmul(m, n, k):
    a, b = operands((m, k), (k, n))
    l = te.reduce_axis((0, k), "l")
    return [a, b, te.compute((m, n), lambda i, j: te.sum(a[i, l] * b[l, j], axis=l), name="C")]


def dense(m, n, k):
    x, w = operands((m, k), (n, k))
    return [x, w, topi.nn.dense(x, w)]


def batch_matmul(b, m, n, k):
    x, y = operands((b, m, k), (b, k, n))
    return [x, y, topi.nn.batch_matmul(x, y, transpose_a=False, transpose_b=False)]


def conv2d(c, h, k, r, stride, pad, n=1):
    x, w = operands((n, c, h, h), (k, c, r, r))
    return [x, w, topi.nn.conv2d_nchw(x, w, stride, pad, 1)]


def conv2d_relu(c, h, k, r, stride, pad):
    x, w, y = conv2d(c, h, k, r, stride, pad)
    return [x, w, topi.nn.relu(y)]


def conv2d_nhwc(c, h, k, r, stride, pad):
    x, w = operands((1, h, h, c), (r, r, c, k))
    return [x, w, topi.nn.conv2d_nhwc(x, w, stride, pad, 1)]


def depthwise(c, h, r, stride, pad):
    x, w = operands((1, c, h, h), (c, 1, r, r))
    return [x, w, topi.nn.depthwise_conv2d_nchw(x, w, (stride, stride), (pad, pad), (1, 1))]


def depthwise_nhwc(c, h, r, stride, pad):
    x, w = operands((1, h, h, c), (r, r, c, 1))
    return [x, w, topi.nn.depthwise_conv2d_nhwc(x, w, (stride, stride), (pad, pad), (1, 1))]


WORKLOADS = {
    "matmul": lambda: matmul(64, 48, 32), "matmul_large": lambda: matmul(512, 512, 512),
    "matmul_odd": lambda: matmul(7, 130, 35), "matmul_long": lambda: matmul(4, 6, 512),
    "dense": lambda: dense(64, 48, 32), "dense_row": lambda: dense(1, 1000, 512),
    "batch_matmul": lambda: batch_matmul(4, 32, 24, 16),
    "conv2d": lambda: conv2d(8, 14, 16, 3, 1, 1), "conv2d_stride": lambda: conv2d(16, 15, 32, 3, 2, 1, n=2),
    "conv2d_1x1": lambda: conv2d(32, 14, 16, 1, 1, 0), "conv2d_resnet": lambda: conv2d(64, 56, 64, 3, 1, 1),
    "conv2d_relu": lambda: conv2d_relu(8, 14, 16, 3, 1, 1),
    "conv2d_nhwc": lambda: conv2d_nhwc(8, 14, 16, 3, 1, 1), "conv2d_nhwc_large": lambda: conv2d_nhwc(64, 56, 64, 3, 1, 1),
    "depthwise": lambda: depthwise(16, 14, 3, 1, 1), "depthwise_stride": lambda: depthwise(32, 112, 3, 2, 1),
    "depthwise_nhwc": lambda: depthwise_nhwc(16, 14, 3, 1, 1)}


def draw(name, folder, count):
    """Writes a database of up to `count` different traces; trace i has the time i + 1."""
    target = tvm.target.Target(TARGET)
    function = te.create_prim_func(WORKLOADS[name]())
    module = tvm.IRModule({"main": function.with_attr("global_symbol", "main")})
    files = [folder / "database_workload.json", folder / "database_tuning_record.json"]
    for file in files:
        file.unlink(missing_ok=True)
    database = meta_schedule.database.JSONDatabase(*map(str, files))
    workload = database.commit_workload(module)
    arguments = meta_schedule.arg_info.ArgInfo.from_prim_func(module["main"])
    schedules = {}
    for seed in range(1, count + 1):
        context = meta_schedule.TuneContext(module, target=target, space_generator="post-order-apply", task_name=name,
                                            rand_state=seed, num_threads=1)
        for schedule in context.generate_design_space():
            schedule.enter_postproc()
            good = all(rule.apply(schedule) for rule in context.space_generator.postprocs)
            if good and len(schedules) < count and str(schedule.trace) not in schedules:
                schedules[str(schedule.trace)] = schedule
                record = meta_schedule.database.TuningRecord(schedule.trace, workload, [float(len(schedules))], target,
                                                             arguments)
                database.commit_tuning_record(record)
    return files, [schedule.mod for schedule in schedules.values()]


def lowered(module):
    """As text: with vectors as loops, and with what is unrolled marked instead of written out."""
    module = tvm.script.from_source(module.script().replace('"pragma_unroll_explicit": 1', '"pragma_unroll_explicit": 0'))
    with tvm.transform.PassContext(opt_level=0, config={"tirx.UnrollLoop": {"explicit_unroll": False}}):
        loops = tvm.ir.transform.Sequential(BEFORE)(module)
        return loops.script(), tvm.ir.transform.Sequential(AFTER)(loops).script()


# Trees: ("for", extent, kind, children) and ("store", buffer).
KINDS = {"grid": "serial", "range": "serial", "serial": "serial", "parallel": "parallel", "vectorized": "vector",
         "unroll": "unrolled"}


def tir_tree(script):
    top, shapes = [], {}
    stack = [(-1, top)]
    for line in script.splitlines():
        text, depth = line.strip(), len(line) - len(line.lstrip())
        for match in re.finditer(r"(\w+)(?:: T\.Buffer\(| = T\.alloc_buffer\()\(([\d, ]*)\)", text):
            shapes[match[1]] = [int(extent) for extent in match[2].split(",") if extent.strip()]
        while stack[-1][0] >= depth:
            stack.pop()
        if match := re.fullmatch(r"for .* in (?:T\.)?(\w+)\(([\d, ]*)(?:, annotations=.*)?\):", text):
            inner = stack[-1][1]
            for extent in map(int, match[2].split(",")):
                loop = ("for", extent, KINDS[match[1]], [])
                inner.append(loop)
                inner = loop[3]
            stack.append((depth, inner))
        elif match := re.match(r"(\w+)\[.*?\] = ", text):
            stack[-1][1].append(("store", match[1]))
    return top, shapes


def program_tree(program):
    top, shapes, stack = [], {}, []
    for line in program.splitlines():
        words, depth = line.split(), len(line) - len(line.lstrip())
        if words[0] == "buffer":
            shapes[words[1]] = json.loads(words[3])
        elif words[0] in ("prepare", "run"):
            stack = [(-1, top)]
        else:
            while stack[-1][0] >= depth:
                stack.pop()
            if words[0] == "for":
                loop = ("for", int(words[2]), words[3] if len(words) > 3 else "serial", [])
                stack[-1][1].append(loop)
                stack.append((depth, loop[3]))
            else:
                stack[-1][1].append(("store", line.strip().split("[")[0]))
    return top, shapes


def without(tree, leave_out):
    """The tree without loops for which `leave_out(extent, kind)`; what is in them stays."""
    result = []
    for node in tree:
        if node[0] == "store":
            result.append(node)
        elif leave_out(node[1], node[2]):
            result += without(node[3], leave_out)
        else:
            result.append(node[:3] + (without(node[3], leave_out),))
    return result


def difference(theirs, ours, with_unrolling):
    """What differs, in words; "" if nothing does."""
    if len(theirs) != len(ours):
        return f"{len(theirs)} statements, not {len(ours)}"
    for a, b in zip(theirs, ours):
        if a[0] == "store":
            while with_unrolling and b[0] == "for" and b[2] == "unrolled" and len(b[3]) == 1:
                b = b[3][0]  # the outer ones of the loops of a vector
            if b[0] != "store" or re.sub(r"(_\d)?_*$", "", a[1]) != re.sub(r"_*$", "", b[1]):
                return f"{a} is {b[:3]}"
            continue
        if b[0] == "store":
            return f"{a[:3]} is {b}"
        extent, kinds = b[1], [b[2]]
        while extent < a[1] and len(b[3]) == 1 and b[3][0][0] == "for":
            b = b[3][0]
            extent *= b[1]
            kinds.append(b[2])
        if not with_unrolling:
            kinds = ["serial" if kind == "unrolled" else kind for kind in kinds]
        # A vector whose padding depends on the lane is a loop, as the second text has it.
        is_vector = a[2] == "vector" and (set(kinds) == {"serial"} or (kinds[-1] == "vector" and "vector" not in kinds[:-1]))
        if extent != a[1] or not (set(kinds) == {a[2]} or is_vector):
            return f"a loop of {a[1]} ({a[2]}) is one of {extent} ({', '.join(kinds)})"
        if inside := difference(a[3], b[3], with_unrolling):
            return inside
    return ""


def is_elementwise(nest):
    while nest[0] == "for" and len(nest[3]) == 1:
        nest = nest[3][0]
    return nest[0] == "store"


def compared(module, program, with_elementwise=True):
    ours, our_shapes = program_tree(program)
    loops, unrolled = lowered(module)
    for script, with_unrolling in [(loops, False), (unrolled, True)]:
        theirs, shapes = tir_tree(script)
        theirs = without(theirs, lambda extent, kind: extent == 1)
        own = without(ours, lambda extent, kind: with_unrolling and kind == "vector")
        if not with_elementwise:
            theirs, own = ([nest for nest in tree if not is_elementwise(nest)] for tree in (theirs, own))
        if found := difference(theirs, own, with_unrolling):
            return found
        for name, shape in our_shapes.items():
            if not with_unrolling and name in shapes:
                if [e for e in shape if e > 1] != [e for e in shapes[name] if e > 1]:
                    return f"{name} is {shapes[name]}, not {shape}"
    return ""


def words(counts):
    nearly = f", {counts['nearly']} but for element-wise nests" if counts["nearly"] else ""
    return f"{counts['traces']} traces, {counts['replayed']} replayed, {counts['equal']} equal{nearly}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graft", required=True, help="the program graft")
    parser.add_argument("--traces", type=int, default=24, help="per workload")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("/tmp/metaschedule"))
    arguments = parser.parse_args()
    total = collections.Counter()
    for name in WORKLOADS:
        folder = arguments.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        files, modules = draw(name, folder, arguments.traces)
        data, lines = folder / "data.h5", folder / "programs.jsonl"
        subprocess.run([arguments.graft, "import", "metaschedule", *files, "--platform", name, "--out", data], check=True,
                       stdout=subprocess.DEVNULL)
        lines.unlink(missing_ok=True)
        subprocess.run([arguments.graft, "export", "programs", data, "--out", lines], stdout=subprocess.DEVNULL)
        counts = collections.Counter(traces=len(modules))
        for line in map(json.loads, lines.read_text().splitlines() if lines.exists() else []):
            trace = round(line["seconds"][0]) - 1
            found = compared(modules[trace], line["program"])
            counts["replayed"] += 1
            counts["equal"] += not found
            if found and not compared(modules[trace], line["program"], with_elementwise=False):
                counts["nearly"] += 1
            elif found:
                print(f"{name}, trace {trace}: {found}", file=sys.stderr)
        print(f"{name}: {words(counts)}", flush=True)
        total += counts
    print(f"all: {words(total)}")
    sys.exit(total["replayed"] == 0 or total["equal"] + total["nearly"] != total["replayed"])


if __name__ == "__main__":
    main()
