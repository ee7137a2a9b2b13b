#!/usr/bin/env python3
"""MAML's gradient of one meta-batch in Python PyTorch (Debian's python3-torch): the peer of `graft bench train`'s row
"maml meta-step". 164-256-256-1, 5 inner steps, 8 tasks of 16 + 256 programs, pairwise logistic rank loss, exact second
order. Prints milliseconds and programs per second; the argument is the number of threads.
"""
import os
import sys
import time

THREADS = sys.argv[1] if len(sys.argv) > 1 else "1"
os.environ.update(OMP_NUM_THREADS=THREADS, OPENBLAS_NUM_THREADS=THREADS)  # OpenBLAS has threads of its own

import torch

INPUTS, HIDDEN, STEPS, SUPPORT, QUERY, TASKS, RATE = 164, 256, 5, 16, 256, 8, 0.01


def scores(parameters, rows):
    w0, b0, w1, b1, w2, b2 = parameters
    hidden = torch.relu(torch.addmm(b1, torch.relu(torch.addmm(b0, rows, w0)), w1))
    return torch.addmm(b2, hidden, w2).squeeze(1)


def pair_weights(log_seconds):
    weights = torch.clamp(log_seconds[None, :] - log_seconds[:, None], 0, 1)
    return weights / weights.sum()


def rank_loss(predicted, weights):
    return (weights * torch.nn.functional.softplus(predicted[None, :] - predicted[:, None])).sum()


def meta_gradient(parameters, tasks):
    total = 0
    for support, support_weights, query, query_weights in tasks:
        adapted = parameters
        for _ in range(STEPS):
            loss = rank_loss(scores(adapted, support), support_weights)
            gradient = torch.autograd.grad(loss, adapted, create_graph=True)
            adapted = [p - RATE * g for p, g in zip(adapted, gradient)]
        total = total + rank_loss(scores(adapted, query), query_weights)
    return torch.autograd.grad(total / len(tasks), parameters)


def main():
    torch.set_num_threads(int(THREADS))
    torch.manual_seed(1)
    shapes = [(INPUTS, HIDDEN), (HIDDEN,), (HIDDEN, HIDDEN), (HIDDEN,), (HIDDEN, 1), (1,)]
    parameters = [
        (torch.randn(shape) * (2 / shape[0]) ** 0.5 if len(shape) == 2 else torch.zeros(shape)).requires_grad_()
        for shape in shapes
    ]
    tasks = [
        (torch.randn(SUPPORT, INPUTS), pair_weights(torch.randn(SUPPORT)),
         torch.randn(QUERY, INPUTS), pair_weights(torch.randn(QUERY)))
        for _ in range(TASKS)
    ]
    best = float("inf")
    for repetition in range(25):
        start = time.perf_counter()
        meta_gradient(parameters, tasks)
        if repetition >= 3:
            best = min(best, time.perf_counter() - start)
    programs = TASKS * (SUPPORT + QUERY)
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads: {1e3 * best:.2f} ms a meta-step, "
          f"{programs / best:.0f} programs/s")


if __name__ == "__main__":
    main()
