"""What multiprocessing and joblib need."""

import concurrent.futures
import multiprocessing
import os
import pickle
import shutil
import unittest

import numpy as np

import graft
from support import MODELLED, SHIPPED, SMALL, InFolder


def again(value):
    return pickle.loads(pickle.dumps(value))


class Values(InFolder):
    def test_are_pickled(self):
        self.assertEqual(again(SMALL), SMALL)
        platform = again(graft.Platform(MODELLED))
        self.assertEqual((platform.name, platform.yaml), (MODELLED, graft.Platform(MODELLED).yaml))
        self.assertEqual(again(graft.Model("scratch")).name, "scratch")
        self.assertEqual(again(graft.Model()).name, "")
        data = again(graft.read_dataset(SHIPPED / "model-sifive-u54.h5"))
        self.assertEqual(list(data), list(graft.read_dataset(SHIPPED / "model-sifive-u54.h5")))
        self.assertTrue(data.yaml)

    def test_of_a_call_are_pickled_and_good_from_another_folder(self):
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        os.chdir(self.folder)
        answer = graft.tune(SMALL, MODELLED, trials=3, model="scratch", out="run")
        adapted = graft.adapt(None, MODELLED, [SMALL], "adapted.h5", shots=4)
        kept = pickle.dumps((answer, adapted, graft.compile([answer])))
        os.chdir(before)
        other, judged, compiled = pickle.loads(kept)
        for name in ("workload", "platform", "schedule", "seconds", "gflops", "check", "trials", "complete", "run"):
            self.assertEqual(getattr(other, name), getattr(answer, name), name)
        np.testing.assert_array_equal(other.curve, answer.curve)
        for each in (other, answer):  # each refers to the run wherever the process is
            self.assertEqual(graft.compile([each]).files["kernels.json"], compiled.files["kernels.json"])
        self.assertEqual(judged.workloads[0].programs, 4)
        self.assertEqual(graft.tune(SMALL, MODELLED, model=judged.model, trials=1, out=self.folder / "next").trials, 1)

    def test_of_a_library_are_whole(self):
        settings = {"trials": 2, "model": "scratch", "library": self.folder / "answers"}
        graft.tune(SMALL, MODELLED, out=self.folder / "run", **settings)
        known = graft.tune(SMALL, MODELLED, **settings)
        self.assertIsNone(known.run)
        shutil.rmtree(self.folder / "answers")
        self.assertEqual(graft.compile([again(known)]).functions[0].workload, SMALL.text)


def product(kernel, a, b):
    return kernel(a, b)


@unittest.skipUnless(shutil.which("cc"), "no C compiler links the kernels here")
class Kernels(InFolder):
    def test_go_to_other_processes(self):
        answer = graft.tune("matmul(m=8,n=8,k=8)", "native", trials=2, model="scratch", out=self.folder / "run",
                            repetition_seconds=1e-5)
        compiled = graft.Kernel(answer)
        graft.write(graft.compile([answer], names={"matmul(m=8, n=8, k=8)": "product"}), self.folder / "lib")
        a = np.arange(64, dtype=np.float32).reshape(8, 8)
        for kernel in (compiled, graft.load(self.folder / "lib")):
            with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as others:
                np.testing.assert_array_equal(others.submit(product, kernel, a, a).result(), a @ a)
        shutil.rmtree(self.folder / "run")  # the code is in the pickle
        np.testing.assert_array_equal(again(compiled)(a, a), a @ a)

    def test_have_their_constants(self):
        answer = graft.tune("conv2d(n=1,c=4,h=6,w=6,k=8,r=3,s=3,pad=1)", "native", trials=2, model="scratch",
                            out=self.folder / "run", repetition_seconds=1e-5)
        kernel = graft.Kernel(answer)
        x, weights = (np.ones(each.shape, each.dtype) for each in kernel.parameters if each.role != "output")
        kernel.prepare(weights)
        np.testing.assert_array_equal(again(kernel)(x), kernel(x))


if __name__ == "__main__":
    unittest.main()
