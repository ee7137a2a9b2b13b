import itertools
import json
import math
import re
import subprocess
import sys
import threading
import unittest

import numpy as np

import graft
from support import MODELLED, InFolder

WORKLOAD = graft.Workload("matmul(m=32,n=48,k=16)")


def measured(schedules):
    """A platform that costs nothing: what the pre-defined roofline predicts."""
    return np.exp(-graft.predict("analytic", WORKLOAD, MODELLED, schedules))


ARGUMENT = re.compile(r"\$(\w+)(?:\{([^}]*)\})?")


def recorded(run):
    """Schedules and seconds of a run, by its journal: sketches with their arguments put in."""
    sketches, trials = [], []
    for line in map(json.loads, (run / "journal.jsonl").read_text().splitlines()):
        if "text" in line:
            sketches.append(line["text"])
        elif "trial" in line:
            text = sketches[line["sketch"]]
            values = dict(zip(dict.fromkeys(name for name, _ in ARGUMENT.findall(text)), line["arguments"]))
            steps = ARGUMENT.sub(lambda match: str(values[match[1]]) if match[2] is None
                                 else match[2].split("|")[values[match[1]]], text).splitlines()[1:]
            trials.append(("".join(step + "\n" for step in steps if step), line["seconds"][0]))
    return trials


def searched(rounds, count=16, **settings):
    search = graft.Search(WORKLOAD, MODELLED, model="scratch", **settings)
    for _ in range(rounds):
        schedules = search.ask(count)
        search.tell(schedules, measured(schedules))
    return search


class Search(InFolder):
    def test_asks_and_is_told(self):
        search = searched(4)
        trials = search.trials()
        self.assertEqual(len(trials), 64)
        self.assertEqual(len({each.schedule for each in trials}), 64)
        times = [each.seconds for each in trials]
        self.assertEqual(search.best().seconds, min(times))
        self.assertEqual(search.best().status, "ok")
        # It has learnt: the rounds that a model guides are faster than the first one, which is drawn at random.
        self.assertLess(np.median(np.log(times[48:])), np.median(np.log(times[:16])))

    def test_is_the_search_of_tune(self):
        graft.tune(WORKLOAD, MODELLED, model="scratch", trials=36, seed=5, out=self.folder / "run")
        schedules, seconds = zip(*recorded(self.folder / "run"))
        search = graft.Search(WORKLOAD, MODELLED, model="scratch", seed=5)
        self.assertEqual(search.ask(32), list(schedules[:32]))
        search.tell(schedules[:32], seconds[:32])
        self.assertEqual(search.ask(32)[:4], list(schedules[32:]))

    def test_is_deterministic_and_continued_by_telling_the_same(self):
        first, again = searched(2), searched(2, threads=2)
        self.assertEqual([each.schedule for each in first.trials()], [each.schedule for each in again.trials()])
        self.assertEqual(first.ask(4), again.ask(4))
        self.assertNotEqual(searched(1, seed=2).trials()[0].schedule, first.trials()[0].schedule)

    def test_failures_are_told_and_never_best(self):
        search = graft.Search(WORKLOAD, MODELLED, model="scratch")
        self.assertIsNone(search.best())
        schedules = search.ask(4)
        search.tell(schedules, [None, math.nan, "wrong_result", 2.5])
        self.assertEqual([each.status for each in search.trials()], ["crashed", "crashed", "wrong_result", "ok"])
        self.assertEqual(search.best().schedule, schedules[3])
        self.assertTrue(math.isnan(search.trials()[0].seconds))
        self.assertFalse(set(search.ask(8)) & set(schedules))

    def test_is_told_as_configurations_are(self):
        search = graft.Search(WORKLOAD, MODELLED, model="scratch")
        first, second, third, fourth = search.ask(4)
        search.tell(first, np.float32(2.5))
        search.tell([second, third], np.array([math.inf, 1.5]))
        search.tell(fourth, ("slower_than_limit", np.float64(4)))
        self.assertEqual([(each.status, each.seconds) for each in search.trials() if each.status != "crashed"],
                         [("ok", 2.5), ("ok", 1.5), ("slower_than_limit", 4)])
        self.assertEqual(search.best().schedule, third)

    def test_ends_when_it_is_interrupted(self):
        program = ("import graft, os, signal, threading, time\n"
                   f"search = graft.Search({WORKLOAD.text!r}, {MODELLED!r}, model='scratch')\n"
                   "threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
                   "try:\n"
                   "    print(len(search.ask(100000)))\n"
                   "except KeyboardInterrupt:\n"
                   "    print('interrupted', len(search.ask(3)))\n")
        ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
        self.assertEqual(ended.stdout, "interrupted 3\n", ended.stderr)

    def test_is_told_what_it_did_not_ask_for(self):
        search = graft.Search(WORKLOAD, MODELLED, model="scratch")
        own = "order C l.0 j.0 i.0\n"
        search.tell([own, "tile C i 8"], [1e-3, 2e-3])
        self.assertEqual(search.best().schedule, own)
        self.assertEqual(len(search.ask(8)), 8)
        # As Optuna's enqueue_trial: asked for first.
        search = graft.Search(WORKLOAD, MODELLED, model="scratch", start=[own, "tile C i 8\n", own])
        self.assertEqual(list(itertools.chain(search.ask(), search.ask())), [own, "tile C i 8\n"])
        self.assertNotIn(search.ask()[0], (own, "tile C i 8\n"))

    def test_what_does_not_fit_is_refused_as_a_whole(self):
        search = graft.Search(WORKLOAD, MODELLED, model="scratch")
        schedules = search.ask(2)
        for seconds, why in (([1.0], "seconds: fewer"), ([1.0, 2.0, 3.0], "seconds: more"),
                             ([1.0, -1.0], "schedule 2: a time of -1"), ([1.0, "lost"], "unknown status 'lost'"),
                             ([1.0, "ok"], "schedule 2: a time of nan")):
            with self.assertRaisesRegex(graft.Mistake, why):
                search.tell(schedules, seconds)
        with self.assertRaisesRegex(graft.Mistake, "schedule 1: cannot be applied"):
            search.tell(["tile C q 4"], [1.0])
        search.tell(["tile C q 4"], [None])
        with self.assertRaisesRegex(graft.Mistake, "schedule 1"):
            search.tell(["tiel C i 4"], [1.0])
        with self.assertRaisesRegex(graft.Mistake, "count: must be between 1 and 100000, got 0"):
            search.ask(0)
        with self.assertRaises(TypeError):
            search.tell(schedules[0], [1.0])  # one schedule has one outcome
        self.assertEqual(len(search.trials()), 1)

    def test_threads_take_turns(self):
        search = graft.Search(WORKLOAD, MODELLED, model="scratch")

        def some():
            for _ in range(4):
                schedules = search.ask(4)
                search.tell(schedules, measured(schedules))

        threads = [threading.Thread(target=some) for _ in range(3)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        self.assertEqual(len({each.schedule for each in search.trials()}), 48)

    def test_its_best_becomes_an_answer(self):
        best = searched(1, 4).best()
        answer = graft.tune(WORKLOAD, MODELLED, trials=1, model="scratch", start=[best.schedule],
                            out=self.folder / "run")
        self.assertEqual(answer.schedule, best.schedule)


if __name__ == "__main__":
    unittest.main()
