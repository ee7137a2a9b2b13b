import json
import tempfile
import unittest
from pathlib import Path

import graft

SPACE = {
    "parameters": {"x": {"from": 1, "to": 16}, "y": {"from": 1, "to": 16}, "mode": ["a", "b"]},
    "constraints": ["x + y <= 24"],
    "default": {"x": 1, "y": 1, "mode": "a"},
}


def seconds(c):
    return 1 + 0.04 * (c["x"] - 11) ** 2 + 0.01 * (c["y"] - 6) ** 2


class Configurations(unittest.TestCase):
    def test_tune_function_finds_a_fast_one(self):
        asked = []

        def f(c):
            asked.append(c)
            if c["x"] == 2:
                raise RuntimeError("crashes")
            return seconds(c)

        best, least = graft.tune_function(SPACE, f, trials=32)
        self.assertEqual(asked[0], {"x": 1, "y": 1, "mode": "a"})
        self.assertEqual(len({json.dumps(c) for c in asked}), 32)
        self.assertTrue(all(c["x"] + c["y"] <= 24 for c in asked))
        self.assertEqual(least, seconds(best))
        self.assertLess(least, 1.2)

    def test_a_failure_is_a_status(self):
        search = graft.Configurations(SPACE)
        first = search.ask(1)[0]
        search.tell(first, None)
        self.assertIsNone(search.best())
        search.tell({"x": 3, "y": 4, "mode": "b"}, 2.0)
        self.assertEqual(search.best(), ({"x": 3, "y": 4, "mode": "b"}, 2.0))
        with self.assertRaisesRegex(graft.Mistake, "unknown status"):
            search.tell(first, "sleeps")
        with self.assertRaisesRegex(graft.Mistake, "not met: x"):
            search.tell({"x": 16, "y": 16, "mode": "b"}, 2.0)
        with self.assertRaisesRegex(graft.Mistake, "is not a value of 'x'"):
            search.tell({"x": 17, "y": 1, "mode": "b"}, 2.0)

    def test_a_space_may_be_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "space.json"
            file.write_text(json.dumps(SPACE))
            self.assertEqual(graft.Configurations(file).ask(3), graft.Configurations(SPACE).ask(3))
        with self.assertRaises(graft.Mistake):
            graft.Configurations({"parameters": {}})
