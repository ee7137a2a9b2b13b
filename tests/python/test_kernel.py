import copy
import json
import shutil
import unittest
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import graft
from support import MODELLED, InFolder


@unittest.skipUnless(shutil.which("cc"), "no C compiler links the kernels here")
class Kernel(InFolder):
    def tuned(self, workload):
        return graft.tune(workload, "native", trials=4, model="scratch", out=self.folder / "run",
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
        with self.assertRaisesRegex(graft.Failure, "cannot be linked here"):
            graft.Kernel(answer)
        with self.assertRaisesRegex(graft.Mistake, "no library of graft compile"):
            graft.Kernel(self.folder)


if __name__ == "__main__":
    unittest.main()
