import copy
import json
import shutil
import subprocess
import unittest
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import graft
from support import InFolder

# y = x + weights, z = 2 y by way of the arena, in which the sums stay for a while.
CODE = """
void net_run(const float* x, float* y, int* z, const float* weights, float* arena, void* parallel_for, void* context) {
  volatile int i;
  (void)context;
  for (i = 0; i < 4; ++i) arena[i] = x[i] + weights[i];
  for (i = 0; i < 20000; ++i) (void)i;
  for (i = 0; i < 4; ++i) y[i] = arena[i] + (parallel_for ? 100 : 0);
  for (i = 0; i < 4; ++i) z[i] = (int)(2 * arena[i]);
}
"""


@unittest.skipUnless(shutil.which("cc"), "no C compiler links the network here")
class Network(InFolder):
    def made(self, **changes):
        (self.folder / "net.c").write_text(CODE)
        subprocess.run(["cc", "-fPIC", "-ffreestanding", "-c", "net.c", "-o", "net.o"], cwd=self.folder, check=True)
        (self.folder / "net.weights").write_bytes(np.arange(4, dtype=np.float32).tobytes())
        tensors = [{"kind": "tensor", "argument": each} for each in ("x", "y", "z")]
        kinds = [{"kind": each} for each in ("weights", "arena", "parallel_for", "context")]
        (self.folder / "net.json").write_text(json.dumps({
            "schema": 1, "kind": "sequence", "graft": "1", "name": "net", "code": "net.o", "alignment": 64,
            "inputs": [{"name": "in/1", "argument": "x", "dtype": "f32", "shape": [2, 2]}],
            "outputs": [{"name": "in/1", "argument": "y", "dtype": "f32", "shape": [2, 2]},
                        {"name": "z", "argument": "z", "dtype": "i32", "shape": [4]}],
            "arena_bytes": 16, "weights_bytes": 16, "weights": "net.weights", "calls": [],
            "run": {"symbol": "net_run", "arguments": tensors + kinds}, **changes}))
        return graft.load(self.folder)

    def test_computes_on_arrays(self):
        network = self.made()
        self.assertIsInstance(network, graft.Network)
        self.assertEqual([(each.name, each.role, each.shape) for each in network.inputs + network.outputs],
                         [("in/1", "input", (2, 2)), ("in/1", "output", (2, 2)), ("z", "output", (4,))])
        x = np.array([[1, 2], [3, 4]], np.float32)
        for y, z in (network(x), network(**{"in/1": x.T.copy().T})):
            np.testing.assert_array_equal(y, [[1, 3], [5, 7]])
            np.testing.assert_array_equal(z, [2, 6, 10, 14])
        out = x, np.zeros(8, np.int32)[::2]  # the input itself, and what is not contiguous
        self.assertIs(network(x, out=out)[0], x)
        np.testing.assert_array_equal(x, [[1, 3], [5, 7]])
        np.testing.assert_array_equal(out[1], [2, 6, 10, 14])

    def test_is_called_by_several_threads(self):
        network = self.made()

        def right(number):
            y, z = network(np.full((2, 2), number, np.float32))
            return np.array_equal(y, number + np.arange(4).reshape(2, 2)) and np.array_equal(z, 2 * y.ravel())

        with ThreadPoolExecutor(4) as threads:
            self.assertTrue(all(threads.map(right, range(400))))

    def test_booleans_are_numpys(self):
        outputs = [{"name": "y", "argument": "y", "dtype": "f32", "shape": [2, 2]},
                   {"name": "z", "argument": "z", "dtype": "u8", "declared": "bool", "shape": [16]}]
        _, z = self.made(outputs=outputs)(np.array([[0, 0], [0, 0]], np.float32))
        self.assertEqual(z.dtype, np.bool_)

    def test_a_copy_is_called_like_the_original(self):
        network = self.made()
        x = np.ones((2, 2), np.float32)
        np.testing.assert_array_equal(copy.deepcopy(network)(x)[1], network(x)[1])

    def test_refuses_what_is_missing_or_different(self):
        network = self.made()
        with self.assertRaisesRegex(TypeError, "net: in/1: missing"):
            network()
        with self.assertRaisesRegex(ValueError, r"net: in/1: shape \(4,\), give \(2, 2\)"):
            network(np.zeros(4, np.float32))
        with self.assertRaisesRegex(TypeError, "net: 2 arrays, it takes in/1"):
            network(np.zeros((2, 2), np.float32), np.zeros(4))
        with self.assertRaisesRegex(graft.Mistake, "has no function 'f'"):
            graft.load(self.folder, "f")
        with self.assertRaisesRegex(graft.Mistake, "not the weights of net"):
            self.made(weights_bytes=20)
        with self.assertRaisesRegex(graft.Mistake, "no library of graft compile, give"):
            graft.Kernel(self.folder)
        with self.assertRaisesRegex(graft.Mistake, "schema 2, this module reads 1"):
            self.made(schema=2)
        (self.folder / "net.json").unlink()
        with self.assertRaisesRegex(graft.Mistake, "no library of graft compile or network of graft"):
            graft.load(self.folder)


def _field(number, content):
    """A field of Protocol Buffers: a number, or bytes."""
    if isinstance(content, int):
        return bytes([number << 3, content])
    content = content.encode() if isinstance(content, str) else content
    assert len(content) < 128
    return bytes([number << 3 | 2, len(content)]) + content


def _relu():
    """An ONNX file: y = max(x, 0) of 2 rows of an open number of columns."""
    shape = b"".join(_field(1, extent) for extent in (_field(1, 2), _field(2, "columns")))
    value = _field(1, "x") + _field(2, _field(1, _field(1, 1) + _field(2, shape)))
    node = _field(1, "x") + _field(2, "y") + _field(4, "Relu")
    return _field(1, 8) + _field(7, _field(1, node) + _field(11, value) + _field(12, _field(1, "y"))) + \
        _field(8, _field(2, 17))


@unittest.skipUnless(shutil.which("cc"), "no C compiler links the network here")
class TunedNetwork(InFolder):
    def test_is_compiled_and_called(self):
        (self.folder / "relu.onnx").write_bytes(_relu())
        tuned = graft.tune_network(self.folder / "relu.onnx", "native", shapes={"columns": [3]}, trials=2,
                                   guide="random", out=self.folder / "run", rebuild=0)
        self.assertTrue(tuned["complete"])
        self.assertEqual([kernel["calls"] for kernel in tuned["kernels"]], [1])
        self.assertAlmostEqual(tuned["seconds"], tuned["kernels"][0]["seconds"])
        x = np.array([[1, -2, 3], [-4, 5, -6]], np.float32)
        np.testing.assert_array_equal(graft.load(self.folder / "run")(x), np.maximum(x, 0))
        made = graft.compile_network(self.folder / "run", name="relu", weights_in_file=True)
        self.assertEqual(made.functions[0].check, "host")
        graft.write(made, self.folder / "lib")
        np.testing.assert_array_equal(graft.load(self.folder / "lib")(x=x), np.maximum(x, 0))

    def test_refuses_an_open_shape(self):
        (self.folder / "relu.onnx").write_bytes(_relu())
        with self.assertRaisesRegex(graft.Mistake, "columns"):
            graft.tune_network(self.folder / "relu.onnx", "native", out=self.folder / "run")


if __name__ == "__main__":
    unittest.main()
