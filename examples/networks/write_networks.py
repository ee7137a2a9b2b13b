#!/usr/bin/env python3
"""Writes networks as ONNX files, as exporters write them, with weights drawn from a seed.

    write_networks.py FOLDER                          all networks at their full sizes
    write_networks.py FOLDER --small                  all at sizes that an emulator runs in seconds, as NAME-small
    write_networks.py FOLDER resnet18 bert-2-small    these

    write_networks.py FOLDER bert-base --open         BERT and ResNets of any batch, and any sequence up to 512
    write_networks.py FOLDER decoder --layers 4 --hidden 896    a language model with weights of 4 bits

Weights are scaled so that activations stay of order 1 through all layers. The files need nothing to be given: all
shapes are fixed, at batch 1; but those of a decoder, which is only written by name, are open. Operators of version 17,
IR 8. Needs numpy and onnx (python3-onnx of Debian 12, or newer).
"""

import argparse
import math
import pathlib
import sys
import zlib

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

VERSION = 17
FORMAT = 8


class Network:
    """A graph that grows by calls: each adds nodes and returns the name of their result."""

    def __init__(self, name, seed, is_open=False):
        self.name = name
        self.is_open = is_open
        self.batch = "batch" if is_open else 1
        self.random = np.random.default_rng(zlib.crc32(name.encode()) + seed)
        self.nodes, self.constants, self.inputs, self.outputs = [], [], [], []
        self.channels = {}  # of the results of convolutions and inputs of images

    def input(self, name, shape, kind=TensorProto.FLOAT):
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        if len(shape) == 4:
            self.channels[name] = shape[1]
        return name

    def output(self, value, name, shape):
        self.nodes.append(helper.make_node("Identity", [value], [name]))
        self.outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))

    def constant(self, array):
        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def number(self, number):
        return self.constant(np.float32(number))

    def integers(self, *integers):
        return self.constant(np.array(integers, np.int64))

    def weights(self, *shape, spread, mean=0.0):
        return self.constant((self.random.standard_normal(shape) * spread + mean).astype(np.float32))

    def node(self, operator, *operands, results=1, **attributes):
        names = [f"{operator.lower()}_{len(self.nodes)}" + f"_{r}" * (results > 1) for r in range(results)]
        self.nodes.append(helper.make_node(operator, list(operands), names, name=names[0], **attributes))
        return names[0] if results == 1 else names

    def model(self):
        graph = helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, self.constants)
        domains = [("", VERSION)] + [("com.microsoft", 1)] * any(node.domain for node in self.nodes)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid(*each) for each in domains],
                                  producer_name="graft")
        model.ir_version = FORMAT
        return model

    # Layers of images. `gain` is the variance that a layer gives to inputs of variance 1: 2 before a ReLU, which halves
    # it.

    def conv(self, x, channels, kernel=3, stride=1, groups=1, gain=2.0, bias=False):
        within = self.channels[x] // groups
        spread = math.sqrt(gain / (within * kernel * kernel))
        operands = [x, self.weights(channels, within, kernel, kernel, spread=spread)]
        if bias:
            operands.append(self.weights(channels, spread=0.1))
        y = self.node("Conv", *operands, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[kernel // 2] * 4,
                      dilations=[1, 1], group=groups)
        self.channels[y] = channels
        return y

    def batch_norm(self, x, scale=1.0):
        count = self.channels[x]
        variance = self.constant(self.random.uniform(0.8, 1.25, count).astype(np.float32))
        y = self.node("BatchNormalization", x, self.weights(count, spread=0.1 * scale, mean=scale),
                      self.weights(count, spread=0.1), self.weights(count, spread=0.1), variance, epsilon=1e-5)
        self.channels[y] = count
        return y

    def same_channels(self, operator, x, *others, **attributes):
        y = self.node(operator, x, *others, **attributes)
        self.channels[y] = self.channels[x]
        return y

    def relu(self, x):
        return self.same_channels("Relu", x)

    def relu6(self, x):
        return self.same_channels("Clip", x, self.number(0), self.number(6))

    def classifier(self, x, classes):
        width = self.channels[x]
        flat = self.node("Flatten", self.node("GlobalAveragePool", x), axis=1)
        self.output(self.node("Gemm", flat, self.weights(classes, width, spread=math.sqrt(2 / width)),
                              self.weights(classes, spread=0.1), transB=1), "logits", [self.batch, classes])

    # Layers of rows, the features last.

    def linear(self, x, width, features, gain=1.0):
        product = self.node("MatMul", x, self.weights(width, features, spread=math.sqrt(gain / width)))
        return self.node("Add", product, self.weights(features, spread=0.1))

    def reshape(self, x, *shape):
        return self.node("Reshape", x, self.integers(*shape))

    def layer_norm(self, x, width, in_parts):
        scale, shift = self.weights(width, spread=0.1, mean=1), self.weights(width, spread=0.1)
        if not in_parts:
            return self.node("LayerNormalization", x, scale, shift, axis=-1, epsilon=1e-5)
        centred = self.node("Sub", x, self.node("ReduceMean", x, axes=[-1]))
        variance = self.node("ReduceMean", self.node("Pow", centred, self.number(2)), axes=[-1])
        spread = self.node("Sqrt", self.node("Add", variance, self.number(1e-5)))
        return self.node("Add", self.node("Mul", self.node("Div", centred, spread), scale), shift)

    def gelu(self, x, by_erf):
        if by_erf:
            inner = self.node("Erf", self.node("Div", x, self.number(math.sqrt(2))))
        else:
            cube = self.node("Mul", self.node("Pow", x, self.number(3)), self.number(0.044715))
            inner = self.node("Tanh", self.node("Mul", self.node("Add", x, cube), self.number(math.sqrt(2 / math.pi))))
        return self.node("Mul", self.node("Mul", x, self.node("Add", inner, self.number(1))), self.number(0.5))


# Of each block's branch, so that sums of many blocks stay of order 1.
BRANCH = 0.3


def resnet(net, blocks, is_deep, size=224, width=64, classes=1000):
    """He et al., Deep Residual Learning for Image Recognition, 2015; is_deep: blocks of 1x1, 3x3 and 1x1."""
    x = net.relu(net.batch_norm(net.conv(net.input("image", [net.batch, 3, size, size]), width, kernel=7, stride=2)))
    x = net.same_channels("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    for stage, count in enumerate(blocks):
        inner = width << stage
        outer = inner * 4 if is_deep else inner
        for block in range(count):
            stride = 2 if stage > 0 and block == 0 else 1
            shortcut, y = x, x
            if net.channels[x] != outer or stride > 1:
                shortcut = net.batch_norm(net.conv(x, outer, kernel=1, stride=stride, gain=1))
            if is_deep:
                y = net.relu(net.batch_norm(net.conv(y, inner, kernel=1)))
            y = net.relu(net.batch_norm(net.conv(y, inner, stride=stride)))
            y = net.batch_norm(net.conv(y, outer, kernel=1 if is_deep else 3), scale=BRANCH)
            x = net.relu(net.same_channels("Add", y, shortcut))
    net.classifier(x, classes)


def mobilenet_v2(net, size=224, divisor=1, classes=1000,
                 stages=((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
                         (6, 320, 1, 1))):
    """Sandler et al., MobileNetV2, 2018. A stage: expansion, channels, blocks, stride."""
    x = net.relu6(net.batch_norm(net.conv(net.input("image", [1, 3, size, size]), 32 // divisor, stride=2)))
    for expansion, channels, count, stride in stages:
        channels //= divisor
        for block in range(count):
            step = stride if block == 0 else 1
            inner = net.channels[x] * expansion
            y = net.relu6(net.batch_norm(net.conv(x, inner, kernel=1))) if expansion > 1 else x
            y = net.relu6(net.batch_norm(net.conv(y, inner, stride=step, groups=inner)))
            is_residual = step == 1 and net.channels[x] == channels
            y = net.batch_norm(net.conv(y, channels, kernel=1), scale=BRANCH if is_residual else 1)
            x = net.same_channels("Add", x, y) if is_residual else y
    net.classifier(net.relu6(net.batch_norm(net.conv(x, 1280 // divisor, kernel=1))), classes)


def bert(net, layers, width=768, heads=12, inner=3072, words=30522, length=128, in_parts=True):
    """Devlin et al., BERT, 2018. in_parts: layer norm as nine nodes and Gelu by erf, as exporters wrote them for years;
    otherwise LayerNormalization, and Gelu by tanh."""
    places = 512 if net.is_open else length
    rows = [net.batch, "sequence" if net.is_open else length]
    ids, kinds, mask = (net.input(name, rows, TensorProto.INT64)
                        for name in ("input_ids", "token_type_ids", "attention_mask"))
    mask = net.node("Cast", net.node("Unsqueeze", mask, net.integers(1, 2)), to=TensorProto.FLOAT)
    mask = net.node("Mul", net.node("Sub", net.number(1), mask), net.number(-10000))
    x = net.node("Add", net.node("Gather", net.weights(words, width, spread=1), ids),
                 net.node("Gather", net.weights(2, width, spread=0.3), kinds))
    place = net.weights(1, places, width, spread=0.3)
    if net.is_open:
        end = net.node("Slice", net.node("Shape", ids), net.integers(1), net.integers(2), net.integers(0))
        place = net.node("Slice", place, net.integers(0), end, net.integers(1))
    x = net.layer_norm(net.node("Add", x, place), width, in_parts)
    each = width // heads

    def per_head(y, order):
        return net.node("Transpose", net.reshape(y, 0, 0, heads, each), perm=order)

    for _ in range(layers):
        query, key, value = (net.linear(x, width, width) for _ in range(3))
        scores = net.node("MatMul", per_head(query, [0, 2, 1, 3]), per_head(key, [0, 2, 3, 1]))
        scores = net.node("Add", net.node("Div", scores, net.number(math.sqrt(each))), mask)
        seen = net.node("MatMul", net.node("Softmax", scores, axis=-1), per_head(value, [0, 2, 1, 3]))
        seen = net.reshape(net.node("Transpose", seen, perm=[0, 2, 1, 3]), 0, 0, width)
        x = net.layer_norm(net.node("Add", net.linear(seen, width, width), x), width, in_parts)
        y = net.linear(net.gelu(net.linear(x, width, inner), by_erf=in_parts), inner, width, gain=2)
        x = net.layer_norm(net.node("Add", y, x), width, in_parts)
    first = net.node("Gather", x, net.constant(np.int64(0)), axis=1)
    pooled = net.node("Gemm", first, net.weights(width, width, spread=math.sqrt(1 / width)),
                      net.weights(width, spread=0.1), transB=1)
    net.output(x, "last_hidden_state", [*rows, width])
    net.output(net.node("Tanh", pooled), "pooler_output", [net.batch, width])


def unet(net, size=128, width=16, depth=3):
    """Ronneberger et al., U-Net, 2015, with padded convolutions; the way up is by transposed ones."""

    def twice(x, channels):
        for _ in range(2):
            x = net.relu(net.batch_norm(net.conv(x, channels)))
        return x

    x = net.input("image", [1, 3, size, size])
    kept = []
    for level in range(depth):
        x = twice(x, width << level)
        kept.append(x)
        x = net.same_channels("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = twice(x, width << depth)
    for level in reversed(range(depth)):
        channels = width << level
        weights = net.weights(2 * channels, channels, 2, 2, spread=math.sqrt(1 / (2 * channels)))
        up = net.node("ConvTranspose", x, weights, net.weights(channels, spread=0.1), kernel_shape=[2, 2],
                      strides=[2, 2])
        joined = net.node("Concat", up, kept[level], axis=1)
        net.channels[joined] = 2 * channels
        x = twice(joined, channels)
    net.output(net.node("Sigmoid", net.conv(x, 1, kernel=1, gain=1, bias=True)), "mask", [1, 1, size, size])


def recurrent_weights(net, directions, gates, width, units):
    return (net.weights(directions, gates * units, width, spread=math.sqrt(1 / width)),
            net.weights(directions, gates * units, units, spread=math.sqrt(1 / units)),
            net.weights(directions, 2 * gates * units, spread=0.1))


def lstm_tagger(net, words=10000, width=128, units=128, tags=17, length=32):
    """A bidirectional LSTM that gives each word of a sentence a tag."""
    x = net.node("Gather", net.weights(words, width, spread=1), net.input("words", [1, length], TensorProto.INT64))
    y, _, _ = net.node("LSTM", net.node("Transpose", x, perm=[1, 0, 2]), *recurrent_weights(net, 2, 4, width, units),
                       results=3, direction="bidirectional", hidden_size=units)
    y = net.reshape(net.node("Transpose", y, perm=[2, 0, 1, 3]), 0, 0, 2 * units)
    net.output(net.node("LogSoftmax", net.linear(y, 2 * units, tags, gain=4), axis=-1), "tags", [1, length, tags])


def gru_step(net, features=40, units=128):
    """Voice activity, a frame at a time: the state goes in and out."""
    frame, state = net.input("frame", [1, features]), net.input("state", [1, 1, units])
    x = net.node("Relu", net.linear(frame, features, units, gain=2))
    y, last = net.node("GRU", net.node("Unsqueeze", x, net.integers(0)), *recurrent_weights(net, 1, 3, units, units),
                       "", state, results=2, hidden_size=units, linear_before_reset=1)
    y = net.node("Squeeze", y, net.integers(0, 1))
    net.output(net.node("Sigmoid", net.linear(y, units, 1, gain=4)), "activity", [1, 1])
    net.output(last, "next_state", [1, 1, units])


def lstm_words(net, words=10000, units=650):
    """A language model, a word at a time, with states in and out: the medium one of Zaremba et al., 2014."""
    x = net.node("Gather", net.weights(words, units, spread=1), net.input("word", [1, 1], TensorProto.INT64))
    for layer in range(2):
        hidden = net.input(f"hidden_{layer}", [1, 1, units])
        cell = net.input(f"cell_{layer}", [1, 1, units])
        _, *states = net.node("LSTM", x, *recurrent_weights(net, 1, 4, units, units), "", hidden, cell, results=3,
                              hidden_size=units)
        net.output(states[0], f"next_hidden_{layer}", [1, 1, units])
        net.output(states[1], f"next_cell_{layer}", [1, 1, units])
        x = states[0]
    net.output(net.linear(net.reshape(x, 1, units), units, words, gain=4), "scores", [1, words])


def dqn(net, size=84, width=32, inner=512, actions=18):
    """Mnih et al., Human-level control through deep reinforcement learning, 2015."""
    x = net.input("frames", [1, 4, size, size])
    extent = size
    for channels, kernel, stride in ((width, 8, 4), (2 * width, 4, 2), (2 * width, 3, 1)):
        within = net.channels[x]
        weights = net.weights(channels, within, kernel, kernel, spread=math.sqrt(2 / (within * kernel * kernel)))
        y = net.node("Conv", x, weights, net.weights(channels, spread=0.1), kernel_shape=[kernel] * 2,
                     strides=[stride] * 2)
        net.channels[y] = channels
        x = net.relu(y)
        extent = (extent - kernel) // stride + 1
    flat = net.node("Flatten", x, axis=1)
    x = net.node("Relu", net.linear(flat, 2 * width * extent * extent, inner, gain=2))
    net.output(net.linear(x, inner, actions), "values", [1, actions])


def dcgan(net, noise=100, width=128):
    """The generator of Radford et al., Unsupervised representation learning with DCGANs, 2015: images of 64x64."""
    x = net.input("noise", [1, noise, 1, 1])
    layers = [(8 * width, 4, 1, 0), (4 * width, 4, 2, 1), (2 * width, 4, 2, 1), (width, 4, 2, 1), (3, 4, 2, 1)]
    for layer, (channels, kernel, stride, pad) in enumerate(layers):
        within = net.channels[x]
        weights = net.weights(within, channels, kernel, kernel,
                              spread=math.sqrt(2 * stride * stride / (within * kernel * kernel)))
        y = net.node("ConvTranspose", x, weights, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4)
        net.channels[y] = channels
        x = net.relu(net.batch_norm(y)) if layer + 1 < len(layers) else net.node("Tanh", y)
    net.output(x, "image", [1, 3, 64, 64])


def few_bits(net, x, columns, rows, block=32):
    """A product with weights of 4 bits, [columns, rows], in blocks of `block` along the columns, of mean 0 and a spread
    of 1 / sqrt(columns)."""
    blocks = columns // block
    low, high = net.random.integers(1, 16, (2, rows, blocks, block // 2), np.uint8)
    packed = net.constant(low + 16 * high)
    scale = 1 / math.sqrt(columns) / 4.32  # that is the spread of the integers from -7 to 7
    scales = net.constant((scale * net.random.uniform(0.8, 1.2, (rows * blocks))).astype(np.float32))
    return net.node("MatMulNBits", x, packed, scales, domain="com.microsoft", K=columns, N=rows, bits=4,
                    block_size=block, accuracy_level=0)


def decoder(net, layers=4, hidden=896, size=64, groups=2, words=8192, places=1024):
    """As onnxruntime-genai writes decoders of Llama's and Qwen's kind: the cache of keys and values goes in and out, rows
    of the cosines and sines of places, weights of 4 bits."""
    heads, inner = hidden // size, round(5.43 * hidden / size) * size
    ids = net.input("input_ids", ["batch_size", "sequence_length"], TensorProto.INT64)
    mask = net.input("attention_mask", ["batch_size", "total_sequence_length"], TensorProto.INT64)
    filled = net.node("Sub", net.node("ReduceSum", mask, net.integers(1), keepdims=0), net.constant(np.int64(1)))
    lengths = net.node("Cast", filled, to=TensorProto.INT32)
    total = net.node("Cast", net.node("Gather", net.node("Shape", mask), net.constant(np.int64(1))),
                     to=TensorProto.INT32)
    angles = np.outer(np.arange(places), 1e6 ** (-np.arange(0, size, 2) / size))
    cosines, sines = (net.constant(of(angles).astype(np.float32)) for of in (np.cos, np.sin))
    norm = {"axis": -1, "epsilon": 1e-6}
    x = net.node("Gather", net.weights(words, hidden, spread=0.3), ids)
    y = net.node("SimplifiedLayerNormalization", x, net.weights(hidden, spread=0.1, mean=1), stash_type=1, **norm)
    cache = ["batch_size", groups, "past_sequence_length", size]
    for layer in range(layers):
        past = [net.input(f"past_key_values.{layer}.{which}", cache, TensorProto.FLOAT) for which in ("key", "value")]
        q, k, v = (net.node("Add", few_bits(net, y, hidden, width), net.weights(width, spread=0.1))
                   for width in (hidden, groups * size, groups * size))
        present = [f"present.{layer}.{which}" for which in ("key", "value")]
        attended = f"attention_{layer}"
        net.nodes.append(helper.make_node(
            "GroupQueryAttention", [q, k, v, *past, lengths, total, cosines, sines], [attended, *present],
            name=attended, domain="com.microsoft", num_heads=heads, kv_num_heads=groups, scale=1 / math.sqrt(size),
            do_rotary=1, rotary_interleaved=0))
        for name in present:
            net.outputs.append(helper.make_tensor_value_info(
                name, TensorProto.FLOAT, ["batch_size", groups, "total_sequence_length", size]))
        x, y = skip_norm(net, x, few_bits(net, attended, hidden, hidden), hidden)
        gate, up = (few_bits(net, y, hidden, inner) for _ in range(2))
        gated = net.node("Mul", net.node("Mul", gate, net.node("Sigmoid", gate)), up)
        x, y = skip_norm(net, x, few_bits(net, gated, inner, hidden), hidden)
    net.output(few_bits(net, y, hidden, words), "logits", ["batch_size", "sequence_length", words])
    net.outputs.insert(0, net.outputs.pop())


def skip_norm(net, x, branch, hidden):
    """The sum, and its norm."""
    names = [f"norm_{len(net.nodes)}", f"sum_{len(net.nodes)}"]
    net.nodes.append(helper.make_node(
        "SkipSimplifiedLayerNormalization", [x, branch, net.weights(hidden, spread=0.1, mean=1)],
        [names[0], "", "", names[1]], name=names[0], domain="com.microsoft", epsilon=1e-6))
    return names[1], names[0]


# name: what writes it, its full size, its small size.
NETWORKS = {
    "resnet18": (resnet, {"blocks": (2, 2, 2, 2), "is_deep": False},
                 {"blocks": (2, 2, 2, 2), "is_deep": False, "size": 32, "width": 8, "classes": 10}),
    "resnet50": (resnet, {"blocks": (3, 4, 6, 3), "is_deep": True},
                 {"blocks": (1, 2, 2, 1), "is_deep": True, "size": 32, "width": 8, "classes": 10}),
    "mobilenet-v2": (mobilenet_v2, {}, {"size": 32, "divisor": 4, "classes": 10,
                                        "stages": ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 2, 2), (6, 64, 2, 1))}),
    "bert-base": (bert, {"layers": 12},
                  {"layers": 3, "width": 48, "heads": 4, "inner": 96, "words": 100, "length": 12}),
    "bert-2": (bert, {"layers": 2, "width": 128, "heads": 2, "inner": 512},
               {"layers": 2, "width": 32, "heads": 2, "inner": 64, "words": 100, "length": 16}),
    "bert-2-operators": (bert, {"layers": 2, "width": 128, "heads": 2, "inner": 512, "in_parts": False},
                         {"layers": 2, "width": 32, "heads": 2, "inner": 64, "words": 100, "length": 16,
                          "in_parts": False}),
    "unet": (unet, {}, {"size": 16, "width": 4, "depth": 2}),
    "lstm-tagger": (lstm_tagger, {}, {"words": 50, "width": 12, "units": 8, "tags": 5, "length": 6}),
    "gru-step": (gru_step, {}, {"features": 10, "units": 12}),
    "lstm-words": (lstm_words, {}, {"words": 50, "units": 16}),
    "dqn": (dqn, {}, {"size": 36, "width": 8, "inner": 16, "actions": 4}),
    "dcgan": (dcgan, {}, {"noise": 8, "width": 2}),
    "decoder": (decoder, {}, {"layers": 2, "hidden": 64, "size": 16, "words": 96, "places": 64}),
}
CAN_BE_OPEN = (resnet, bert)
BY_NAME = ("decoder", "decoder-small")  # which nobody gets who names none


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, metavar="FOLDER", help="made if it is not there")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NETWORKS) + "; each also as NAME-small")
    parser.add_argument("--small", action="store_true", help="without names: the small ones")
    parser.add_argument("--open", action="store_true", help="extents stay open: batch, and sequence of BERT")
    parser.add_argument("--layers", type=int, help="of a decoder")
    parser.add_argument("--hidden", type=int, help="of a decoder: its width, a multiple of 64 (of the small one: 32)")
    parser.add_argument("--seed", type=int, default=0, help="of the weights (default: 0)")
    flags = parser.parse_args()

    known = {name + suffix: (write, sizes) for name, (write, *both) in NETWORKS.items()
             for suffix, sizes in zip(("", "-small"), both)}
    names = flags.names or [name for name in known
                           if name.endswith("-small") == flags.small and name not in BY_NAME]
    for name in names:
        if name not in known:
            sys.exit(f"error: {name}: not a network; known: {', '.join(known)}")
    flags.folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        write, sizes = known[name]
        given = {key: value for key in ("layers", "hidden") if (value := getattr(flags, key)) is not None}
        if given and name not in BY_NAME:
            sys.exit(f"error: {name}: --layers and --hidden go with a decoder")
        sizes = {**sizes, **given}
        if flags.open and write not in CAN_BE_OPEN:
            sys.exit(f"error: {name}: --open goes with BERT and ResNets")
        network = Network(name, flags.seed, flags.open)
        write(network, **sizes)
        path = flags.folder / f"{name}.onnx"
        save(network.model(), str(path))
        print(f"{path}: {len(network.nodes)} nodes, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
