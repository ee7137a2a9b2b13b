#!/usr/bin/env python3
"""Generates tokens with a decoder that graft tuned for several lengths of its input, greedily; tokens are numbers.

    examples/networks/write_networks.py nets decoder
    graft tune nets/decoder.onnx --out runs/decoder \\
        --shape 'batch_size=1;sequence_length=1,64;past_sequence_length=256;total_sequence_length=256'
    examples/networks/language/generate.py runs/decoder --tokens 64 3 1 4 1 5

The folder may also be that of `graft compile runs/decoder`. Needs the Python package graft.
"""

import argparse
import time

import graft
import numpy as np


class Decoder:
    """The network with its cache: what was generated stays there, so that a token costs one step."""

    def __init__(self, folder):
        self.network = graft.load(folder)
        self.lengths = sorted(shape["sequence_length"] for shape in self.network.shapes)
        inputs = self.network.at(sequence_length=1).inputs
        self.room = next(each.shape[1] for each in inputs if each.name == "attention_mask")
        # A cache is read and written in one place, so that nothing of it is copied.
        self.caches = {each.name: np.zeros(each.shape, each.dtype) for each in inputs if each.name.startswith("past")}
        self.tokens = []

    def step(self, tokens, begin, length):
        """The logits after the last of these tokens, which take the places from `begin` on; `length`: of the plan."""
        ids = np.zeros((1, length), np.int64)
        ids[0, :len(tokens)] = tokens
        mask = (np.arange(self.room) < begin + len(tokens)).astype(np.int64)[None]
        network = self.network.at(sequence_length=length)
        out = [self.caches[each.overwrites] if each.overwrites else np.empty(each.shape, each.dtype)
               for each in network.outputs]
        logits, *_ = network(ids, mask, *self.caches.values(), out=out)
        return logits[0, len(tokens) - 1]

    def read(self, tokens):
        """Takes all tokens of a prompt, as many at once as there is a plan for."""
        most = self.lengths[-1]
        self.tokens = list(tokens)
        for begin in range(0, len(tokens), most):
            begin = max(0, min(begin, len(tokens) - most))  # the last part may repeat some: it gives them the same places
            part = tokens[begin:begin + most]
            length = next(each for each in self.lengths if each >= len(part))
            logits = self.step(part, begin, length)
        return logits

    def next(self, token):
        self.tokens.append(token)
        return self.step([token], len(self.tokens) - 1, 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="FOLDER", help="of graft tune or graft compile")
    parser.add_argument("prompt", nargs="+", type=int, metavar="TOKEN")
    parser.add_argument("--tokens", type=int, default=16, help="to generate (default: 16)")
    flags = parser.parse_args()
    decoder = Decoder(flags.folder)
    begin = time.perf_counter()
    generated = [int(decoder.read(flags.prompt).argmax())]
    read = time.perf_counter()
    while len(generated) < flags.tokens and len(decoder.tokens) < decoder.room:
        generated.append(int(decoder.next(generated[-1]).argmax()))
    steps = max(1, len(generated) - 1)
    print(*generated)
    print(f"prompt: {1e3 * (read - begin):.1f} ms; a token: {1e3 * (time.perf_counter() - read) / steps:.2f} ms")


if __name__ == "__main__":
    main()
