import gc
import json
import unittest

import numpy as np

import graft
from support import InFolder

try:
    graft.Platform("opencl:0")
    HAS_DEVICE = True
except graft.Error:
    HAS_DEVICE = False


@unittest.skipUnless(HAS_DEVICE, "OpenCL has no device here (pocl-opencl-icd is one)")
class Opencl(InFolder):
    def tuned(self, workload, run="run"):
        return graft.tune(workload, "opencl:0", trials=2, model="scratch", out=self.folder / run,
                          repetition_seconds=1e-4)

    def test_computes_on_arrays(self):
        answer = self.tuned("matmul(m=24,n=17,k=9)")
        graft.write(graft.compile([answer], name="gpu"), self.folder / "lib")
        random = np.random.default_rng(1)
        a = random.standard_normal((24, 9)).astype(np.float32)
        b = random.standard_normal((17, 9)).astype(np.float32).T  # not contiguous
        for source in (answer, self.folder / "run", self.folder / "lib"):
            kernel = graft.OpenclKernel(source)
            self.assertEqual([(each.name, each.role, each.shape) for each in kernel.parameters],
                             [("A", "input", (24, 9)), ("B", "input", (9, 17)), ("C", "output", (24, 17))])
            for _ in range(2):
                np.testing.assert_allclose(kernel(a, b), a @ b, rtol=1e-5, atol=1e-5)
                np.testing.assert_allclose(kernel(B=2 * b, A=a), a @ b * 2, rtol=1e-5, atol=1e-5)
        for folder in ("run", "lib"):
            self.assertIsInstance(graft.load(self.folder / folder), graft.OpenclKernel)
        self.assertEqual(graft.kernels(self.folder / "lib"), ["matmul_m24_n17_k9"])
        self.assertEqual(repr(kernel), "<graft.OpenclKernel matmul_m24_n17_k9: matmul(m=24,n=17,k=9,dtype=f32)>")

    def test_integers(self):
        kernel = graft.OpenclKernel(self.tuned(
            "input A[6,20] : i8; constant B[20,16] : i8; output C[i,j] : i32 += A[i,l] * B[l,j] where i=6, j=16, l=20"))
        random = np.random.default_rng(2)
        a, b = (random.integers(-100, 100, each.shape, np.int8) for each in kernel.parameters[:2])
        np.testing.assert_array_equal(kernel(a, b), a.astype(np.int32) @ b.astype(np.int32))

    def test_what_it_has_is_released(self):
        answer = self.tuned("matmul(m=8,n=16,k=8)")
        for _ in range(3):
            kernel = graft.OpenclKernel(answer)
            made = kernel._made
            self.assertEqual({kind for kind, _ in made}, {"Context", "CommandQueue", "Program", "Kernel", "MemObject"})
            del kernel
            gc.collect()
            self.assertEqual(made, [])

    def test_refuses(self):
        answer = self.tuned("matmul(m=8,n=16,k=8)")
        with self.assertRaisesRegex(graft.Mistake, "device: there is no device 99"):
            graft.OpenclKernel(answer, device=99)
        with self.assertRaisesRegex(graft.Mistake, "no function 'other'"):
            graft.OpenclKernel(answer, "other")
        for source in (answer, self.folder / "run"):
            with self.assertRaisesRegex(graft.Mistake, "of OpenCL, give it to load"):
                graft.Kernel(source)
        kernel = graft.OpenclKernel(answer)
        a, b = (np.zeros(each.shape, np.float32) for each in kernel.parameters[:2])
        with self.assertRaisesRegex(graft.WrongType, "A: float64, give float32"):
            kernel(a.astype(np.float64), b)
        with self.assertRaisesRegex(graft.Mistake, r"B: shape \(16, 8\)"):
            kernel(a, b.T)
        with self.assertRaisesRegex(graft.WrongType, "B: missing"):
            kernel(a)
        with self.assertRaisesRegex(graft.WrongType, "not taken"):
            kernel(a, b, C=a)

    def test_a_source_that_does_not_build_says_why(self):
        graft.write(graft.compile([self.tuned("matmul(m=8,n=16,k=8)")], name="gpu"), self.folder / "lib")
        said = json.loads((self.folder / "lib" / "gpu.json").read_text())
        source = self.folder / "lib" / said["functions"][0]["source"]
        source.write_text(source.read_text() + "no C at all")
        with self.assertRaisesRegex(graft.Failure, "the driver cannot build it"):
            graft.load(self.folder / "lib")


if __name__ == "__main__":
    unittest.main()
