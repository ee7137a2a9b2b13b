#include "datasets/formats/autotvm_legacy.h"

#include <algorithm>

#include "base/error.h"

namespace graft::datasets::formats {
namespace {

enum class Device { cpu, arm_cpu, mali, intel_graphics, gpu };

Device device_of(std::string_view target) {
  const auto has = [&](std::string_view word) { return target.find(word) != std::string_view::npos; };
  if (has("arm_cpu")) return Device::arm_cpu;
  if (has("mali")) return Device::mali;
  if (has("intel_graphics")) return Device::intel_graphics;
  return target.starts_with("llvm") ? Device::cpu : Device::gpu;
}

// The first entry that fits counts. Of a CPU whose target does not say which, the knobs tell.
struct Renamed {
  std::string_view before;
  std::vector<Device> devices;          // none: any
  std::string_view key;                 // how the template's key begins
  std::vector<std::string_view> knobs;  // that the record has
  std::string_view now;
};

const std::vector<Renamed>& renamed_templates() {
  using enum Device;
  static const std::vector<Renamed> table = {
      {"topi_x86_conv2d_NCHWc", {}, "", {}, "conv2d_NCHWc.x86"},
      {"topi_x86_conv2d_NCHWc_int8", {}, "", {}, "conv2d_NCHWc_int8.x86"},
      {"topi_x86_depthwise_conv2d_NCHWc", {}, "", {}, "depthwise_conv2d_NCHWc.x86"},
      {"topi_x86_depthwise_conv2d_NCHWc_from_nchw", {}, "", {}, "depthwise_conv2d_NCHWc.x86"},
      {"topi_x86_batch_matmul", {}, "", {}, "batch_matmul.x86"},
      {"topi_nn_conv2d", {cpu}, "", {"tile_ic", "tile_oc"}, "conv2d_NCHWc.x86"},
      {"topi_nn_conv2d", {cpu, arm_cpu}, "", {"tile_co", "tile_oh", "ann_spatial"}, "conv2d_nchw_spatial_pack.arm_cpu"},
      {"topi_nn_conv2d", {cpu, arm_cpu}, "winograd", {"tile_p"}, "conv2d_nchw_winograd.arm_cpu"},
      {"topi_nn_conv2d", {mali}, "winograd", {}, "conv2d_nchw_winograd.mali"},
      {"topi_nn_conv2d", {mali}, "", {"tile_co"}, "conv2d_nchw_spatial_pack.mali"},
      {"topi_nn_conv2d", {intel_graphics}, "", {}, "conv2d_NCHWc.intel_graphics"},
      {"topi_nn_conv2d", {gpu}, "winograd", {}, "conv2d_nchw_winograd.cuda"},
      {"topi_nn_conv2d", {gpu}, "int8", {}, "conv2d_NCHWc_int8.cuda"},
      {"topi_nn_conv2d", {gpu}, "", {"tile_f", "tile_rc"}, "conv2d_nchw.cuda"},
      {"topi_nn_depthwise_conv2d_nchw", {cpu}, "", {"tile_ic", "tile_oc"}, "depthwise_conv2d_NCHWc.x86"},
      {"topi_nn_depthwise_conv2d_nchw", {cpu, arm_cpu}, "", {"tile_c"}, "depthwise_conv2d_nchw.arm_cpu"},
      {"topi_nn_depthwise_conv2d_nchw", {mali}, "", {}, "depthwise_conv2d_nchw.mali"},
      {"topi_nn_depthwise_conv2d_nchw", {gpu}, "", {"tile_f"}, "depthwise_conv2d_nchw.cuda"},
      {"topi_nn_dense", {cpu}, "", {"tile_inner"}, "dense_pack.x86"},
      {"topi_nn_dense", {cpu}, "", {"tile_x", "tile_y", "tile_k"}, "dense_nopack.x86"},
      {"topi_nn_dense", {mali}, "", {}, "dense.mali"},
      {"topi_nn_dense", {gpu}, "int8", {}, "dense_int8.cuda"},
      {"topi_nn_dense", {gpu}, "", {"tile_x", "tile_y"}, "dense_large_batch.gpu"},
      {"topi_nn_dense", {gpu}, "", {"tile_k"}, "dense_small_batch.gpu"},
      {"topi_nn_batch_matmul", {cpu}, "", {}, "batch_matmul.x86"},
      {"topi_nn_batch_matmul", {gpu}, "", {}, "batch_matmul.cuda"},
      {"topi_nn_conv2d_transpose_nchw", {arm_cpu}, "", {}, "conv2d_transpose_nchw.arm_cpu"},
      {"topi_nn_conv2d_transpose_nchw", {gpu}, "", {}, "conv2d_transpose_nchw.cuda"},
      {"topi_nn_group_conv2d_nchw", {gpu}, "direct", {}, "group_conv2d_nchw.cuda"},
      {"topi_nn_deformable_conv2d_nchw", {gpu}, "", {}, "deformable_conv2d_nchw.cuda"},
  };
  return table;
}

std::string_view present_name(std::string_view before, std::string_view target, std::string_view key,
                              const std::vector<std::string>& knobs) {
  const Device device = device_of(target);
  const auto has_knob = [&](std::string_view knob) {
    return std::find(knobs.begin(), knobs.end(), knob) != knobs.end();
  };
  for (const Renamed& each : renamed_templates()) {
    const bool device_fits =
        each.devices.empty() || std::find(each.devices.begin(), each.devices.end(), device) != each.devices.end();
    if (each.before == before && device_fits && key.starts_with(each.key) &&
        std::all_of(each.knobs.begin(), each.knobs.end(), has_knob)) {
      return each.now;
    }
  }
  return before;
}

// data, weights, [number of filters, their size,] strides, padding, [dilation,] layouts and types.
base::Document::List present_convolution(const base::Document::List& before) {
  constexpr std::size_t tensors = 2;
  base::Document::List now = before;
  const auto is_size = [](const base::Document& value) { return value.is_integer() || value.is_list(); };
  const bool names_filters = now.size() >= tensors + 4 && now[tensors].is_integer() && is_size(now[tensors + 1]) &&
                             is_size(now[tensors + 2]) && (is_size(now[tensors + 3]) || now.size() >= tensors + 6);
  if (names_filters) now.erase(now.begin() + tensors, now.begin() + tensors + 2);
  if (now.size() >= tensors + 2 && (now.size() == tensors + 2 || now[tensors + 2].is_string())) {
    now.insert(now.begin() + tensors + 2, base::Document(1));
  }
  return now;
}

}  // namespace

base::Document present_input(const base::Document& input, std::string_view key, const std::vector<std::string>& knobs) {
  const base::Document::List& parts = input.as_list();
  if (parts.size() < 3) throw base::UserError(input.place(), "expected [target, template, arguments, ...]");
  const std::string &before = parts[1].as_string(), &target = parts[0].as_string();
  base::Document arguments = parts[2];
  if (before.find("conv2d") != std::string::npos) {
    arguments = base::Document(present_convolution(arguments.as_list()));
    arguments.set_place(parts[2].place());
  }
  base::Document now(base::Document::List{target, std::string(present_name(before, target, key, knobs)),
                                          std::move(arguments), base::Document::map()});
  now.set_place(input.place());
  return now;
}

}  // namespace graft::datasets::formats
