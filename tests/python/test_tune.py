import os
import signal
import subprocess
import sys
import threading
import time
import unittest

import numpy as np

import graft
from support import MODELLED, SMALL, InFolder


class Tune(InFolder):
    def few(self, **settings):
        return graft.tune(SMALL, MODELLED, **{"trials": 4, "model": "scratch", "out": self.folder / "run", **settings})

    def test_a_run_is_continued_and_predicted(self):
        told = []
        answer = self.few(progress=lambda what, done, total: told.append((done, total)))
        self.assertTrue(answer.complete)
        self.assertEqual(answer.trials, 4)
        self.assertEqual(told[-1], (4, 4))
        self.assertEqual(answer.run, self.folder / "run")
        self.assertEqual(answer.curve.shape[1], 2)
        self.assertEqual(answer.curve[-1, 1], answer.seconds)
        self.assertIn("8", repr(answer))
        self.assertIn(" s (modelled), ", repr(answer))
        more = self.few(trials=6)
        self.assertEqual(more.trials, 6)
        scores = graft.predict(None, SMALL, MODELLED, [more.schedule, "order C l.0 j.0 i.0", "tile C q 4"])
        self.assertEqual((scores.dtype, scores.shape), (np.float64, (3,)))
        self.assertGreater(scores[0], scores[1])
        self.assertEqual(scores[2], -np.inf)

    def test_fewer_trials_than_a_run_has_are_all_of_them(self):
        whole = self.few(trials=6)
        again = self.few(trials=2)
        self.assertEqual((again.trials, again.seconds, again.schedule), (6, whole.seconds, whole.schedule))
        np.testing.assert_array_equal(again.curve, whole.curve)

    def test_another_search_has_another_folder(self):
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        os.chdir(self.folder)
        folders = set()
        for settings in ({}, {"explorer": "random"}, {"model": "random"}, {"seed": 2}, {"start": ["order C l.0 j.0 i.0"]}):
            for trials in (1, 2):  # which continues it
                answer = self.few(out=None, **{"model": None, "trials": trials, **settings})
                self.assertEqual(answer.trials, trials)
                folders.add(answer.run)
        self.assertEqual(len(folders), 5)
        os.chdir(before)
        self.assertEqual(graft.compile([answer]).functions[0].workload, SMALL.text)  # wherever its run is seen from

    def test_ends_within_its_budget(self):
        begin = time.monotonic()
        answer = graft.tune("matmul(m=64,n=64,k=64)", "native", trials=100000, budget_seconds=2, out=self.folder / "run")
        self.assertTrue(answer.complete)
        self.assertLess(time.monotonic() - begin, 60)  # on a machine that does other things, too

    def test_a_thread_that_is_left_ends_with_the_interpreter(self):
        program = ("import graft, threading, time\n"
                   "began = threading.Event()\n"
                   "def search():\n"
                   f"    graft.tune({SMALL.text!r}, {MODELLED!r}, trials=100000, model='scratch', "
                   f"out={str(self.folder / 'run')!r}, progress=lambda *_: began.set())\n"
                   "threading.Thread(target=search, daemon=True).start()\n"
                   "began.wait(60)\n")
        ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        self.assertGreater(self.few().trials, 0)  # what was measured is kept

    def test_works_after_a_fork(self):
        settings = {"trials": 2, "explorer": "random", "model": "scratch", "repetition_seconds": 1e-5}
        graft.tune(SMALL, "native", out=self.folder / "before", **settings)
        child = os.fork()
        if child == 0:
            signal.alarm(120)  # in place of waiting for ever
            answer = graft.tune(SMALL, "native", out=self.folder / "after", **settings)
            os._exit(0 if answer.trials == 2 else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_settings_are_those_of_the_table(self):
        answer = self.few(explorer="random", batch=2, random_share=1, layouts="free", space=None)
        self.assertEqual(answer.trials, 4)
        after = self.few(out=self.folder / "after", history=[answer.run])
        self.assertEqual(after.trials, 4)
        with self.assertRaisesRegex(TypeError, "unexpected keyword argument 'trails'"):
            self.few(trails=4)
        with self.assertRaisesRegex(TypeError, "trials: expected a value such as 256, got 'many'"):
            self.few(trials="many")
        with self.assertRaisesRegex(TypeError, "history: expected"):
            self.few(history="one")
        with self.assertRaisesRegex(graft.Mistake, "layouts: 'fre' is not given, free or default"):
            self.few(layouts="fre")
        with self.assertRaisesRegex(graft.Mistake, "run was made with explorer random"):
            self.few()

    def test_another_thread_runs_meanwhile(self):
        seen = threading.Event()
        waiting = threading.Thread(target=seen.set)
        ran = []

        def progress(what, done, total):
            if not ran:
                waiting.start()
                ran.append(seen.wait(10))

        self.few(progress=progress)
        waiting.join()
        self.assertEqual(ran, [True])

    def test_an_exception_of_a_callback_ends_the_search(self):
        def progress(what, done, total):
            raise LookupError("of the callback")

        with self.assertRaisesRegex(LookupError, "of the callback"):
            self.few(trials=100000, progress=progress)
        self.assertGreater(self.few().trials, 0)  # the folder is free again

    def test_a_stop_gives_the_best_so_far(self):
        asked = []

        def progress(what, done, total):
            asked.append(done)

        answer = self.few(trials=100000, progress=progress, stop=lambda: len(asked) >= 8)
        self.assertFalse(answer.complete)
        self.assertLess(answer.trials, 100000)
        with self.assertRaises(graft.Stopped):
            self.few(out=self.folder / "none", stop=lambda: True)

    def test_an_interrupt_ends_it_tidily(self):
        """A search in a process of its own gets SIGINT after some trials; it is continued afterwards."""
        program = (
            "import os, signal, graft\n"
            "told = []\n"
            "def progress(what, done, total):\n"
            "    told.append(done)\n"
            "    if len(told) == 3: os.kill(os.getpid(), signal.SIGINT)\n"
            "try:\n"
            f"    graft.tune({SMALL.text!r}, {MODELLED!r}, trials=100000, model='scratch', out={str(self.folder / 'run')!r},\n"
            "               progress=progress)\n"
            "except KeyboardInterrupt:\n"
            "    print('interrupted', len(told))\n")
        ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertTrue(ended.stdout.startswith("interrupted"), ended.stdout)
        self.assertGreater((self.folder / "run" / "journal.jsonl").stat().st_size, 0)
        self.assertGreaterEqual(self.few().trials, 3)

    def test_a_model_is_adapted(self):
        adapted = graft.adapt(None, MODELLED, [SMALL.text], self.folder / "adapted.h5", shots=6)
        self.assertEqual([each.workload for each in adapted.workloads], [SMALL.text])
        self.assertEqual(adapted.workloads[0].programs, 6)
        self.assertGreaterEqual(adapted.workloads[0].before, -1)
        self.assertEqual(self.few(model=adapted.model).trials, 4)
        with self.assertRaisesRegex(graft.Mistake, "workloads, from: nothing to adapt to"):
            graft.adapt(None, MODELLED, [], self.folder / "none.h5")


if __name__ == "__main__":
    unittest.main()
