"""A program that answers graft's questions, for --persistent: a line of JSON each. Here the "kernel" is a formula.

    graft tune space.yaml --persistent --run 'python3 answers.py' --trials 40 --out runs/answers
"""
import json
import sys


def measure(tile_x, tile_y, **others):
    if tile_x * tile_y > 2048:
        raise MemoryError("tiles too large")
    return 1e-3 * (1 + abs(tile_x - 64) / 64 + abs(tile_y - 4) / 8)


for line in sys.stdin:
    question = json.loads(line)
    try:
        times = [measure(**question["configuration"]) for _ in range(question["repetitions"])]
        answer = {"request": question["request"], "seconds": times}
    except MemoryError as error:
        answer = {"request": question["request"], "status": "out_of_memory", "reason": str(error)}
    print(json.dumps(answer), flush=True)
