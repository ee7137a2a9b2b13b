import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

import numpy as np

import graft
from support import InFolder

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "networks"


def _generate():
    spec = importlib.util.spec_from_file_location("generate", EXAMPLES / "language" / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@unittest.skipUnless(shutil.which("cc"), "no C compiler links the network here")
@unittest.skipUnless(importlib.util.find_spec("onnx"), "python3-onnx writes the network")
class Language(InFolder):
    """The decoder of the examples: steps over a cache that is read and written in one place."""

    def test_steps_give_what_a_prompt_at_once_gives(self):
        subprocess.run([sys.executable, EXAMPLES / "write_networks.py", self.folder, "decoder-small", "--layers", "1"],
                       check=True, capture_output=True)
        graft.tune_network(self.folder / "decoder-small.onnx", "native", trials=2, guide="random", rebuild=0,
                           shapes={"batch_size": [1], "sequence_length": [1, 4], "past_sequence_length": [16],
                                   "total_sequence_length": [16]}, out=self.folder / "run")
        decoder = _generate().Decoder(os.fspath(self.folder / "run"))
        self.assertEqual((decoder.lengths, decoder.room), ([1, 4], 16))
        self.assertEqual([each.overwrites for each in decoder.network.at(sequence_length=1).outputs],
                         ["", "past_key_values.0.key", "past_key_values.0.value"])
        prompt = [3, 1, 4, 1, 5, 9, 2]  # a whole part, and one that repeats a token
        at_once = decoder.read(prompt)
        for caches in decoder.caches.values():
            caches[...] = 0
        decoder.tokens = []
        one_by_one = [decoder.next(token) for token in prompt]
        np.testing.assert_allclose(one_by_one[-1], at_once, rtol=1e-4, atol=1e-4)
        self.assertGreater(np.abs(one_by_one[-1] - one_by_one[-2]).max(), 0.1)
        short = _generate().Decoder(os.fspath(self.folder / "run"))
        np.testing.assert_allclose(short.read(prompt[:3]), one_by_one[2], rtol=1e-4, atol=1e-4)  # filled up
        np.testing.assert_allclose(short.next(prompt[3]), one_by_one[3], rtol=1e-4, atol=1e-4)


if __name__ == "__main__":
    unittest.main()
