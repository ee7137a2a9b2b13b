import copy
import json
import os
import pickle
import platform
import shutil
import subprocess
import unittest
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import graft
from support import InFolder

# y = x + weights, z = 2 y by way of the arena, in which the sums stay for a while.
CODE = """
int net_runs_here(void) { return 0; }
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
            "schema": 1, "kind": "sequence", "graft": "1", "name": "net", "code": "net.o", "alignment": 16,
            "platform": "native", "target": {"triple": f"{platform.machine()}-pc-linux-gnu"},
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

    def test_types_of_the_model_are_those_of_the_arrays(self):
        for declared, dtype in [("int16", np.int16), ("uint16", np.uint16), ("uint32", np.uint32)]:
            stored = {"dtype": "i64" if declared == "uint32" else "i32", "declared": declared}
            network = self.made(outputs=[{"name": "y", "argument": "y", "dtype": "f32", "shape": [2, 2]},
                                         {"name": "z", "argument": "z", **stored,
                                          "shape": [2 if declared == "uint32" else 4]}])
            x = np.array([[-40000, 1], [2, 3]], np.float32)
            _, z = network(x)
            self.assertEqual((z.dtype, network.outputs[1].dtype), (dtype, dtype))
            wide = 2 * (x.ravel() + np.arange(4)).astype(np.int32)
            wanted = wide.view(np.int64) if declared == "uint32" else wide
            np.testing.assert_array_equal(z, wanted.astype(dtype))
            np.testing.assert_array_equal(network.run(["z"], {"in/1": x})[0], z)
            out = np.empty((2, 2), np.float32), np.empty(z.shape, dtype)
            self.assertIs(network(x, out=out)[1], out[1])
            np.testing.assert_array_equal(out[1], z)
            with self.assertRaisesRegex(graft.Mistake, "z: .*int.* is converted to int.*, which bind"):
                network.bind(x, *out)
            with self.assertRaisesRegex(graft.WrongType, "z: int64|z: int32|z: float64"):
                network(x, out=(out[0], np.empty(z.shape)))
        network = self.made(outputs=[{"name": "y", "argument": "y", "dtype": "f32", "shape": [2, 2]},
                                     {"name": "z", "argument": "z", "dtype": "i64", "declared": "uint64", "shape": [2]}])
        z = np.empty(2, np.uint64)
        network.bind(x, out[0], z)()  # of as many bytes: nothing is converted
        np.testing.assert_array_equal(z, wide.view(np.uint64))

    def test_inputs_of_the_types_of_the_model_are_converted(self):
        network = self.made(inputs=[{"name": "in/1", "argument": "x", "dtype": "f32", "declared": "int16",
                                     "shape": [2, 2]}])
        y, _ = network(np.array([[1, -2], [3, 4]], np.int16))
        np.testing.assert_array_equal(y, [[1, -1], [5, 7]])
        with self.assertRaisesRegex(graft.WrongType, "in/1: float32, give int16"):
            network(np.zeros((2, 2), np.float32))

    def test_a_copy_is_called_like_the_original(self):
        network = self.made()
        x = np.ones((2, 2), np.float32)
        for copied in (copy.deepcopy(network), pickle.loads(pickle.dumps(network))):
            np.testing.assert_array_equal(copied(x)[1], network(x)[1])

    def test_is_called_as_by_onnx_runtime(self):
        network = self.made()
        x = np.array([[1, 2], [3, 4]], np.float32)
        y, z = network.run(None, {"in/1": x})
        np.testing.assert_array_equal(y, [[1, 3], [5, 7]])
        self.assertEqual([each.shape for each in network.run(["z", "in/1"], {"in/1": x.T})], [(4,), (2, 2)])
        self.assertEqual(network.run([], {"in/1": x}), [])
        with self.assertRaisesRegex(graft.Mistake, "net: no output 'w'"):
            network.run(["w"], {"in/1": x})
        with self.assertRaisesRegex(TypeError, "net: w: not taken, it takes in/1"):
            network.run(None, {"in/1": x, "w": x})

    def test_names_of_inputs_may_be_words_of_calls(self):
        x = np.array([[1, 2], [3, 4]], np.float32)
        for name in ("out", "self", "arrays", "named"):
            inputs = [{"name": name, "argument": "x", "dtype": "f32", "shape": [2, 2]}]
            network = self.made(inputs=inputs)
            for y, _ in (network(**{name: x}), network(x), network.run(None, {name: x})):
                np.testing.assert_array_equal(y, [[1, 3], [5, 7]])

    def test_is_bound_to_arrays(self):
        network = self.made()
        x, y, z = np.ones((2, 2), np.float32), np.empty((2, 2), np.float32), np.empty(4, np.int32)
        bound = network.bind(x, y, z)
        for factor in (1, 2):
            x[...] = factor
            self.assertIs(bound()[0], y)
            np.testing.assert_array_equal(y, factor + np.arange(4).reshape(2, 2))
        with self.assertRaisesRegex(TypeError, "net: bind: 1 arrays, give in/1, in/1, z"):
            network.bind(x)
        with self.assertRaisesRegex(graft.Mistake, "in/1: not contiguous"):
            network.bind(x.T, y, z)
        with self.assertRaisesRegex(graft.Mistake, "an output shares memory"):
            network.bind(x, x, z)

    def test_an_output_may_be_the_memory_of_an_input_that_it_overwrites(self):
        network = self.made(outputs=[{"name": "y", "argument": "y", "dtype": "f32", "shape": [2, 2],
                                      "overwrites": "in/1"},
                                     {"name": "z", "argument": "z", "dtype": "i32", "shape": [4]}])
        self.assertEqual(network.outputs[0].overwrites, "in/1")
        x, z = np.ones((2, 2), np.float32), np.empty(4, np.int32)
        network.bind(x, x, z)()
        np.testing.assert_array_equal(x, [[1, 2], [3, 4]])
        network(x, out=(x, z))
        np.testing.assert_array_equal(x, [[1, 3], [5, 7]])
        apart = np.ones(8, np.float32)
        with self.assertRaisesRegex(graft.Mistake, "an output shares memory"):
            network.bind(apart[:4].reshape(2, 2), apart[:4].reshape(2, 2), apart[:4].view(np.int32))

    def test_is_refused_where_its_code_cannot_run(self):
        for changes, why in (({"runs_here": "net_runs_here", "needs": ["avx512f", "avx512vl"]},
                              "for native and needs avx512f avx512vl, which this machine lacks"),
                             ({"target": {"triple": "riscv64-unknown-linux-gnu"}}, "its code is for riscv64")):
            with self.assertRaisesRegex(graft.Failure, why):
                self.made(**changes)

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
        self.assertEqual(tuned["source"], "native")
        self.assertEqual([kernel["calls"] for kernel in tuned["kernels"]], [1])
        self.assertAlmostEqual(tuned["seconds"], tuned["kernels"][0]["seconds"])
        x = np.array([[1, -2, 3], [-4, 5, -6]], np.float32)
        np.testing.assert_array_equal(graft.load(self.folder / "run")(x), np.maximum(x, 0))
        made = graft.compile_network(self.folder / "run", name="relu", weights_in_file=True)
        self.assertEqual(made.functions[0].check, "host")
        graft.write(made, self.folder / "lib")
        np.testing.assert_array_equal(graft.load(self.folder / "lib")(x=x), np.maximum(x, 0))

    def test_is_good_from_another_folder_and_process(self):
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        os.chdir(self.folder)
        (self.folder / "relu.onnx").write_bytes(_relu())
        graft.tune_network("relu.onnx", "native", shapes={"columns": [3]}, trials=1, guide="random", out="run", rebuild=0)
        os.chdir(before)
        network = graft.load(self.folder / "run")
        kept = pickle.dumps(network)
        (self.folder / "relu.onnx").unlink()
        x = np.array([[1, -2, 3], [-4, 5, -6]], np.float32)
        for each in (network, pickle.loads(kept)):
            np.testing.assert_array_equal(each(x), np.maximum(x, 0))

    @unittest.skipUnless(os.environ.get("GRAFT_PROGRAM"), "the program graft is not there")
    def test_goes_on_with_what_the_program_began_and_back(self):
        (self.folder / "relu.onnx").write_bytes(_relu())
        def program(trials):
            subprocess.run([os.environ["GRAFT_PROGRAM"], "tune", "relu.onnx", "--shape", "columns=3", "--trials", trials,
                            "--model", "random", "--out", "run", "--rebuild", "0", "--quiet"],
                           cwd=self.folder, check=True, capture_output=True)
            return json.loads((self.folder / "run" / "network.json").read_text())["kernels"][0]
        first = program("1")
        self.assertEqual(first["trials"], 1)
        tuned = graft.tune_network(self.folder / "relu.onnx", "native", shapes={"columns": [3]}, trials=2,
                                   guide="random", out=self.folder / "run", rebuild=0)
        self.assertEqual([kernel["trials"] for kernel in tuned["kernels"]], [2])
        self.assertLessEqual(tuned["kernels"][0]["seconds"], first["seconds"])
        last = program("3")
        self.assertEqual(last["trials"], 3)
        self.assertEqual(last["first_seconds"], first["first_seconds"])

    def test_of_several_shapes_takes_each(self):
        (self.folder / "relu.onnx").write_bytes(_relu())
        tuned = graft.tune_network(self.folder / "relu.onnx", "native", shapes={"columns": [3, 5]}, trials=2,
                                   use=["columns=3:9"], guide="random", out=self.folder / "run", rebuild=0)
        self.assertEqual([shape["shape"] for shape in tuned["shapes"]], ["columns=3", "columns=5"])
        self.assertTrue(tuned["complete"])
        graft.write(graft.compile_network(self.folder / "run", name="relu", weights_in_file=True), self.folder / "lib")
        for folder in ("run", "lib"):
            network = graft.load(self.folder / folder)
            self.assertIsInstance(network, graft.ShapedNetwork)
            self.assertEqual(network.shapes, [{"columns": 3}, {"columns": 5}])
            for each in (network, pickle.loads(pickle.dumps(network))):
                for columns in (5, 3):
                    x = np.arange(2 * columns, dtype=np.float32).reshape(2, columns) - 4
                    np.testing.assert_array_equal(each(x), np.maximum(x, 0))
                    np.testing.assert_array_equal(each.run(None, {"x": x})[0], np.maximum(x, 0))
                    out = np.empty_like(x)
                    self.assertIs(each.at(columns=columns)(x, out=out), out)
            self.assertEqual(network.fit(columns=4), {"columns": 5})
            for wrong, why in ((lambda: network(np.zeros((2, 4), np.float32)), "give those of"),
                               (lambda: network.at(columns=4), "give one of"), (lambda: network.fit(columns=6), "none of")):
                with self.assertRaisesRegex(graft.Mistake, why):
                    wrong()
            with self.assertRaisesRegex(graft.Mistake, "several shapes"):
                graft.Network(self.folder / folder)

    def test_refuses_an_open_shape(self):
        (self.folder / "relu.onnx").write_bytes(_relu())
        with self.assertRaisesRegex(graft.Mistake, "columns"):
            graft.tune_network(self.folder / "relu.onnx", "native", out=self.folder / "run")


if __name__ == "__main__":
    unittest.main()
