#!/usr/bin/env python3
"""Counts the instructions of compiled kernels under qemu, and of plain C loops of the same operators, by clang -O3.

    instructions.py FOLDER [--clang clang-19] [--march rv64gcv_zvl512b] [--qemu 'qemu-riscv64 -cpu rv64,v=true,vlen=512']

FOLDER is what `graft compile RUN... --out FOLDER` made for a RISC-V platform: functions of conv2d, which the C loops
are of (the text below), are compared; others are counted alone. Counted is a run of a kernel whose constants are
prepared. The count of a program that runs it once is taken off that of one that runs it three times.
"""

import argparse
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

START = """
void _start(void) {
  work();
  register long status __asm__("a0") = 0;
  register long call __asm__("a7") = 93;  /* exit */
  __asm__ volatile("ecall" ::"r"(status), "r"(call));
}
"""

# With a copy of the image that has zeros around it, so that the loops have no conditions.
LOOPS = """
static float P[C][H + 2 * PAD][W + 2 * PAD];
__attribute__((noinline)) static void loops(const float X[C][H][W], const float K[O][C][R][S], float Y[O][YH][YW]) {
  for (long c = 0; c < C; ++c)
    for (long y = 0; y < H; ++y)
      for (long x = 0; x < W; ++x) P[c][y + PAD][x + PAD] = X[c][y][x];
  for (long o = 0; o < O; ++o)
    for (long y = 0; y < YH; ++y)
      for (long x = 0; x < YW; ++x) {
        float sum = 0;
        for (long c = 0; c < C; ++c)
          for (long u = 0; u < R; ++u)
            for (long v = 0; v < S; ++v) sum += P[c][y * STRIDE + u][x * STRIDE + v] * K[o][c][u][v];
        Y[o][y][x] = sum;
      }
}
float X[C][H][W], K[O][C][R][S], Y[O][YH][YW];  /* of other files, too, so that they are not known to be zeros */
static void work(void) { for (int i = 0; i < RUNS; ++i) loops(X, K, Y); }
"""


def conv2d_of(workload):
    """The C loops' macros for "conv2d(n=1,c=64,...,dtype=f32)"; nothing for other workloads."""
    if not workload.startswith("conv2d(") or not workload.endswith("dtype=f32)"):
        return None
    p = {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", workload)}
    if p["n"] != 1:
        return None
    return {"C": p["c"], "H": p["h"], "W": p["w"], "O": p["k"], "R": p["r"], "S": p["s"], "PAD": p["pad"],
            "STRIDE": p["stride"], "YH": (p["h"] + 2 * p["pad"] - p["r"]) // p["stride"] + 1,
            "YW": (p["w"] + 2 * p["pad"] - p["s"]) // p["stride"] + 1}


def calls_of(function):
    """C that calls the function RUNS times on memory of its own."""
    memory = {tensor["argument"]: tensor["bytes"] for tensor in function["tensors"] if "argument" in tensor}
    names = {tensor["name"]: tensor.get("argument") for tensor in function["tensors"]}
    memory["prepared_memory"] = function["prepared_bytes"]
    memory["scratch_memory"] = max(function["scratch_bytes"], function["prepare_scratch_bytes"])
    text = "".join(f"static char m_{name}[{max(size, 1)}] __attribute__((aligned(64)));\n"
                   for name, size in memory.items())

    def call(of):
        kinds = {"prepared": "m_prepared_memory", "scratch": "m_scratch_memory"}
        arguments = [f"m_{names[a['tensor']]}" if a["kind"] == "tensor" else kinds[a["kind"]] for a in of["arguments"]]
        return f"{of['symbol']}({', '.join(arguments)});"

    declared = [of for of in (function["prepare"], function["run"]) if of]
    text += "".join(f"void {of['symbol']}({', '.join(['void*'] * len(of['arguments']))});\n" for of in declared)
    prepare = call(function["prepare"]) if function["prepare"] else ""
    return text + f"static void work(void) {{ {prepare} for (int i = 0; i < RUNS; ++i) {call(function['run'])} }}\n"


def count(text, macros, code, flags, folder):
    executed = []
    for runs in (1, 3):
        source, program = folder / "program.c", folder / "program"
        source.write_text(text + START)
        given = [f"-D{name}={value}" for name, value in {**macros, "RUNS": runs}.items()]
        subprocess.run([flags.clang, "--target=riscv64-linux-gnu", f"-march={flags.march}", *shlex.split(flags.flags),
                        "-ffreestanding", "-nostdlib", "-static", "-fuse-ld=lld", *given, "-o", program, source, *code],
                       check=True)
        run = subprocess.run([*shlex.split(flags.qemu), "-plugin", folder / "plugin.so", program], check=True,
                             stderr=subprocess.PIPE, text=True)
        executed.append(int(run.stderr))
    return (executed[1] - executed[0]) / 2


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--clang", default="clang-19")
    parser.add_argument("--march", default="rv64gcv_zvl512b")
    parser.add_argument("--flags", default="-O3", help="-O3 -ffast-math lets clang have vectors of sums, too")
    parser.add_argument("--qemu", default="qemu-riscv64 -cpu rv64,v=true,vlen=512,elen=64,vext_spec=v1.0")
    flags = parser.parse_args()
    libraries = [each for each in map(json.loads, (path.read_text() for path in flags.folder.glob("*.json")))
                 if each.get("kind") == "library"]
    if len(libraries) != 1:
        sys.exit(f"error: {flags.folder}: give the folder of one compiled library: graft compile RUN --out FOLDER")
    library = libraries[0]
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", folder / "plugin.so",
                        pathlib.Path(__file__).with_name("instructions.c")], check=True)
        print(f"{'workload':<70}{'graft':>16}{'loops, clang':>16}{'times':>8}")
        for function in library["functions"]:
            own = count(calls_of(function), {}, [flags.folder / library["code"]], flags, folder)
            macros = conv2d_of(function["workload"])
            loops = count(LOOPS, macros, [], flags, folder) if macros else None
            print(f"{function['workload'][:68]:<70}{own:>16.0f}"
                  + (f"{loops:>16.0f}{loops / own:>8.2f}" if loops else f"{'-':>16}{'-':>8}"), flush=True)


if __name__ == "__main__":
    main()
