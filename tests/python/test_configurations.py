import json
import math
import tempfile
import unittest
from pathlib import Path

import numpy as np

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

    def test_no_outcome_of_the_function_ends_the_search(self):
        outcomes = iter([math.nan, ValueError("broken"), math.inf, None, np.float32(2)])
        calls = []

        def f(c):
            calls.append(c)
            outcome = next(outcomes, 3.0)
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "trials.jsonl"
            graft.tune_function(SPACE, f, trials=6, out=out)
            kept = [json.loads(line) for line in out.read_text().splitlines()]
            self.assertEqual([configuration for configuration, _ in kept], calls)
            self.assertEqual([outcome for _, outcome in kept][:3], ["crashed"] * 3)
            self.assertEqual([outcome for _, outcome in kept][4:], [2.0, 3.0])
            with out.open("a") as file:
                file.write('[{"x": 3')  # the process ended here
            best, least = graft.tune_function(SPACE, f, trials=8, out=out)
            self.assertEqual(len(calls), 8)
            self.assertEqual(len({json.dumps(c) for c in calls}), 8)
            self.assertEqual(len(out.read_text().splitlines()), 8)
            self.assertIn(best, calls)
            out.write_text("something else\n")
            with self.assertRaisesRegex(graft.Mistake, "no trials of tune_function"):
                graft.tune_function(SPACE, f, trials=8, out=out)

    def test_takes_numbers_of_numpy(self):
        search = graft.Configurations(SPACE)
        search.tell({"x": np.int64(3), "y": np.int32(4), "mode": "b"}, np.float64(2))
        search.tell({"x": 3, "y": 5, "mode": "b"}, math.inf)
        self.assertEqual(search.trials(), [({"x": 3, "y": 4, "mode": "b"}, 2.0),
                                           ({"x": 3, "y": 5, "mode": "b"}, "crashed")])

    def test_takes_lists_and_bounds(self):
        search = graft.Configurations(SPACE)
        first, second, third = search.ask(3)
        search.tell([first, second], np.array([2.5, math.nan]))
        search.tell(third, ("slower_than_limit", 4.0))
        self.assertEqual([outcome for _, outcome in search.trials()], [2.5, "crashed", ("slower_than_limit", 4.0)])
        self.assertEqual(search.best(), (first, 2.5))
        with self.assertRaisesRegex(graft.Mistake, "outcomes: 1 of 2 configurations"):
            search.tell([first, second], [1.0])

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
