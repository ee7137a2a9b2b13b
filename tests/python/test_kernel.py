import copy
import json
import pathlib
import pickle
import shutil
import unittest
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import graft
from support import MODELLED, InFolder


@unittest.skipUnless(shutil.which("cc"), "no C compiler links the kernels here")
class Kernel(InFolder):
    def tuned(self, workload, run="run"):
        return graft.tune(workload, "native", trials=4, model="scratch", out=self.folder / run,
                          repetition_seconds=1e-5)

    def test_computes_on_arrays(self):
        kernel = graft.Kernel(self.tuned("matmul(m=24,n=17,k=9)"))
        self.assertEqual([(each.name, each.role, each.shape) for each in kernel.parameters],
                         [("A", "input", (24, 9)), ("B", "input", (9, 17)), ("C", "output", (24, 17))])
        random = np.random.default_rng(1)
        a = random.standard_normal((24, 9)).astype(np.float32)
        b = random.standard_normal((17, 9)).astype(np.float32).T  # not contiguous
        np.testing.assert_allclose(kernel(a, b), a @ b, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(kernel(B=b, A=a), a @ b, rtol=1e-5, atol=1e-5)
        out = np.zeros((24, 34), np.float32)[:, ::2]  # neither
        self.assertIs(kernel(a, b, out=out), out)
        np.testing.assert_allclose(out, a @ b, rtol=1e-5, atol=1e-5)
        fast = kernel.empty("A")
        fast[...] = a
        self.assertEqual(fast.ctypes.data % 64, 0)
        np.testing.assert_allclose(kernel(fast, b), a @ b, rtol=1e-5, atol=1e-5)

    def test_tensors_keep_names_that_are_words_of_c(self):
        kernel = graft.Kernel(self.tuned("input int[16]; input scratch[16]; "
                                         "output for[i] = int[i] - scratch[i] where i=16"))
        self.assertEqual([each.name for each in kernel.parameters], ["int", "scratch", "for"])
        a, b = np.arange(16, dtype=np.float32), np.ones(16, np.float32)
        np.testing.assert_array_equal(kernel(scratch=b, int=a), a - b)

    def test_is_called_by_several_threads(self):
        kernel = graft.Kernel(self.tuned("conv2d(n=1,c=4,h=8,w=8,k=8,r=3,s=3,pad=1)"))
        arrays = [np.random.default_rng(3).standard_normal(each.shape).astype(each.dtype)
                  for each in kernel.parameters if each.role != "output"]
        wanted = kernel(*arrays)

        def right(factor):
            return np.array_equal(kernel(arrays[0], arrays[1] * np.float32(factor)), wanted * np.float32(factor))

        with ThreadPoolExecutor(4) as threads:
            self.assertTrue(all(threads.map(right, (2.0 ** (k % 5) for k in range(2000)))))

    def test_a_copy_has_weights_of_its_own(self):
        kernel = graft.Kernel(self.tuned("conv2d(n=1,c=4,h=6,w=6,k=8,r=3,s=3,pad=1)"))
        x, weights = (np.ones(each.shape, each.dtype) for each in kernel.parameters if each.role != "output")
        kernel.prepare(weights)
        wanted = kernel(x)
        for copied in (copy.copy(kernel), copy.deepcopy(kernel)):
            np.testing.assert_array_equal(copied(x), wanted)
            copied.prepare(weights * 2)
            np.testing.assert_array_equal(copied(x), wanted * 2)
            np.testing.assert_array_equal(kernel(x), wanted)

    def test_is_bound_to_arrays(self):
        kernel = graft.Kernel(self.tuned("matmul(m=8,n=8,k=8)"))
        a, b, c = (np.arange(64, dtype=np.float32).reshape(8, 8) + i for i in range(3))
        bound = kernel.bind(a, b, c)
        for factor in (1, 2):
            a *= factor
            self.assertIs(bound(), c)
            np.testing.assert_array_equal(c, a @ b)
        del kernel  # the code stays as long as what calls it
        np.testing.assert_array_equal(bound(), a @ b)

    def test_takes_what_numpy_makes_without_a_copy(self):
        kernel = graft.Kernel(self.tuned("matmul(m=16,n=16,k=16)"))
        memory, c = np.zeros(256 + 16, np.float32), np.empty((16, 16), np.float32)
        for offset in range(16):
            a = memory[offset:offset + 256].reshape(16, 16)
            if a.ctypes.data % 16 == 0:
                a[...] = np.arange(256).reshape(16, 16) % 11
                np.testing.assert_array_equal(kernel.bind(a, a, c)(), a @ a)
        kernel = graft.Kernel(self.tuned("matmul(m=8,n=8,k=8)", "small"))
        a = np.arange(64, dtype=np.float32).reshape(8, 8)
        odd = np.empty(65 * 4 + 1, np.uint8)[1:257].view(np.float32).reshape(8, 8)  # as data of a file may be
        odd[...] = a
        np.testing.assert_array_equal(kernel(odd, a), a @ a)
        with self.assertRaisesRegex(graft.Mistake, "A: not contiguous or not aligned to"):
            kernel.bind(odd, a, np.empty((8, 8), np.float32))

    def test_takes_arrays_of_others(self):
        class Tensor:  # as torch's
            def __init__(self, array):
                self.array = array

            def __dlpack__(self, *args, **named):
                return self.array.__dlpack__(*args, **named)

            def __dlpack_device__(self):
                return self.array.__dlpack_device__()

        kernel = graft.Kernel(self.tuned("matmul(m=8,n=8,k=8)"))
        a = np.arange(64, dtype=np.float32).reshape(8, 8)
        np.testing.assert_array_equal(kernel(Tensor(a), Tensor(a.T)), a @ a.T)
        out = np.zeros((8, 8), np.float32)
        kernel(a, a, out=Tensor(out))
        np.testing.assert_array_equal(out, a @ a)
        with self.assertRaisesRegex(TypeError, "A: no array of numpy or DLPack, got list"):
            kernel(a.tolist(), a)

    def test_of_a_run_and_its_variants(self):
        answer = self.tuned("matmul(m=8,n=8,k=8)")
        a = np.arange(64, dtype=np.float32).reshape(8, 8)
        np.testing.assert_array_equal(graft.load(self.folder / "run")(a, a), a @ a)
        kernel = graft.Kernel(answer, variants=3)
        self.assertIn(kernel.select(a, a, budget_seconds=1e-3), range(3))
        np.testing.assert_array_equal(kernel(a, a), a @ a)
        self.assertEqual(graft.Kernel(answer).select(a, a), 0)
        self.assertEqual(graft.answer_of(self.folder / "run").schedule, answer.schedule)
        with self.assertRaisesRegex(graft.Mistake, "no result of graft tune"):
            graft.answer_of(self.folder)

    def test_runs_on_threads(self):
        answer = graft.tune("matmul(m=64,n=64,k=64)", "native,threads=2", trials=6, model="scratch",
                            out=self.folder / "two", repetition_seconds=1e-5)
        if "graft_pool.c" not in graft.compile([answer]).files:
            self.skipTest("no program has parallel loops")
        a = np.arange(4096, dtype=np.float32).reshape(64, 64) % 7
        kernel = graft.Kernel(answer, threads=2)
        for each in (kernel, pickle.loads(pickle.dumps(kernel))):
            for _ in range(20):
                np.testing.assert_array_equal(each(a, a), a @ a)

    def test_for_one_thread_refuses_more(self):
        with self.assertRaisesRegex(graft.Mistake, "threads: its code is for one"):
            graft.Kernel(self.tuned("matmul(m=8,n=8,k=8)"), threads=2)

    def test_selects_with_constants(self):
        kernel = graft.Kernel(self.tuned("conv2d(n=1,c=4,h=6,w=6,k=8,r=3,s=3,pad=1)"), variants=2)
        x, weights = (np.ones(each.shape, each.dtype) for each in kernel.parameters if each.role != "output")
        wanted = kernel(x, weights)
        kernel.select(x, weights, budget_seconds=1e-3)
        np.testing.assert_array_equal(kernel(x, weights), wanted)
        kernel.prepare(weights)
        kernel.select(x, budget_seconds=1e-3)
        np.testing.assert_array_equal(kernel(x), wanted)

    @unittest.skipUnless(pathlib.Path("/proc/self/maps").exists(), "no list of mappings here")
    def test_is_unloaded(self):
        def mappings():
            return len(pathlib.Path("/proc/self/maps").read_text().splitlines())

        graft.write(graft.compile([self.tuned("matmul(m=8,n=8,k=8)")]), self.folder / "lib")
        graft.load(self.folder / "lib")
        before = mappings()
        for _ in range(10):
            graft.load(self.folder / "lib")
        self.assertLess(mappings(), before + 8)

    def test_refuses_other_arrays(self):
        kernel = graft.Kernel(self.tuned("matmul(m=8,n=8,k=8)"))
        a = np.ones((8, 8), np.float32)
        with self.assertRaisesRegex(TypeError, "B: missing"):
            kernel(a)
        with self.assertRaisesRegex(TypeError, "float64, give float32"):
            kernel(a, a.astype(np.float64))
        with self.assertRaisesRegex(ValueError, r"A: shape \(4, 8\), give \(8, 8\)"):
            kernel(a[:4], a)
        with self.assertRaisesRegex(TypeError, "3 arrays"):
            kernel(a, a, a)
        with self.assertRaisesRegex(TypeError, "A: given twice"):
            kernel(a, a, A=a)
        with self.assertRaisesRegex(TypeError, "D: not taken"):
            kernel(a, a, D=a)

    def test_an_output_may_be_an_input(self):
        kernel = graft.Kernel(self.tuned("matmul(m=8,n=8,k=8)"))
        a = kernel.empty("A")
        a[...] = np.arange(64).reshape(8, 8)
        wanted = a @ a
        np.testing.assert_allclose(kernel(a, a, out=a), wanted)

    def test_a_library_of_several_is_a_folder(self):
        first = self.tuned("matmul(m=8,n=8,k=8)")
        second = graft.tune("conv2d(n=1,c=4,h=6,w=6,k=8,r=3,s=3,pad=1)", "native", trials=4, model="scratch",
                            out=self.folder / "conv", repetition_seconds=1e-5)
        compiled = graft.compile([first, second], names={first.workload: "multiply", second.workload: "convolve"})
        self.assertEqual(compiled.functions[0].check, "host")
        self.assertIsInstance(compiled.files["libkernels.a"], bytes)
        graft.write(compiled, self.folder / "lib")
        self.assertEqual(graft.kernels(self.folder / "lib"), ["multiply", "convolve"])
        with self.assertRaisesRegex(graft.Mistake, "several functions, give one of multiply, convolve"):
            graft.Kernel(self.folder / "lib")
        convolve = graft.Kernel(self.folder / "lib", "convolve")
        self.assertEqual(convolve.workload, second.workload)
        roles = [each.role for each in convolve.parameters]
        arrays = [np.random.default_rng(2).standard_normal(each.shape).astype(each.dtype)
                  for each in convolve.parameters if each.role != "output"]
        padded = np.pad(arrays[0], ((0, 0), (0, 0), (1, 1), (1, 1)))
        wanted = sum(np.einsum("nchw,kc->nkhw", padded[:, :, r:r + 6, s:s + 6], arrays[1][:, :, r, s])
                     for r in range(3) for s in range(3))
        np.testing.assert_allclose(convolve(*arrays), wanted, rtol=1e-4, atol=1e-4)
        if "constant" in roles:
            convolve.prepare(arrays[1])
            np.testing.assert_allclose(convolve(arrays[0]), wanted, rtol=1e-4, atol=1e-4)

    def test_constants_become_part_of_a_library(self):
        answer = self.tuned("conv2d(n=1,c=4,h=6,w=6,k=8,r=3,s=3,pad=1)")
        x, weights = (np.random.default_rng(5).standard_normal(each.shape).astype(each.dtype)
                      for each in graft.Kernel(answer).parameters if each.role != "output")
        plain = graft.compile([answer], names={graft.Workload(answer.workload): "convolve"})
        graft.write(plain, self.folder / "plain")
        w = np.random.default_rng(6).standard_normal((8, 4, 3, 3)).astype(np.float32)
        graft.write(graft.compile([answer], names={"conv2d(n=1,c=4,h=6,w=6,k=8,r=3,s=3,pad=1)": "convolve"},
                                  constants={"convolve/" + self.constant(plain): w}), self.folder / "whole")
        kernel = graft.load(self.folder / "whole")
        self.assertEqual([each.role for each in kernel.parameters], ["input", "output"])
        np.testing.assert_allclose(kernel(x), graft.load(self.folder / "plain")(x, w), rtol=1e-5, atol=1e-5)

    @staticmethod
    def constant(compiled):
        tensors = json.loads(compiled.files["kernels.json"])["functions"][0]["tensors"]
        return next(each["name"] for each in tensors if each["role"] == "constant")

    def test_reads_the_interface_of_this_version_alone(self):
        answer = self.tuned("matmul(m=8,n=8,k=8)")
        graft.write(graft.compile([answer], name="mm"), self.folder / "lib")
        described = self.folder / "lib" / "mm.json"
        interface = json.loads(described.read_text())
        self.assertEqual((interface["kind"], interface["schema"]), ("library", 1))
        (self.folder / "lib" / "other.json").write_text("[1]")  # of something else
        (self.folder / "lib" / "mm.h").unlink()  # is for C alone
        self.assertEqual(graft.kernels(self.folder / "lib"), ["matmul_m8_n8_k8"])
        interface["schema"] = 2
        described.write_text(json.dumps(interface))
        with self.assertRaisesRegex(graft.Mistake, "mm.json: schema 2, this module reads 1"):
            graft.Kernel(self.folder / "lib")

    def test_code_of_another_machine_is_refused(self):
        answer = graft.tune("matmul(m=8,n=8,k=8)", MODELLED, trials=2, model="scratch", out=self.folder / "u54")
        with self.assertRaisesRegex(graft.Failure, r"for riscv64 \(model:sifive-u54\), this machine is"):
            graft.Kernel(answer)
        with self.assertRaisesRegex(graft.Mistake, "no library of graft compile"):
            graft.Kernel(self.folder)


if __name__ == "__main__":
    unittest.main()
