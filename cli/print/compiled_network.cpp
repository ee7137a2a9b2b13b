#include "cli/print/compiled_network.h"

#include <fmt/format.h>

#include "base/text.h"

namespace graft::cli {

void print(const study::CompiledNetwork& made, Output& out) {
  Table table({"", "value"});
  table.row({"calls", fmt::format("{} of {}", made.calls, base::counted(made.kernels, "kernel"))});
  table.row({"weights", fmt::format("{} bytes", made.weights_bytes)});
  table.row({"arena", made.peak_bytes == 0
                          ? fmt::format("{} bytes", made.arena_bytes)
                          : fmt::format("{} bytes ({:.2f} of the most that lives at once)", made.arena_bytes,
                                        double(made.arena_bytes) / double(made.peak_bytes))});
  table.row(
      {"results", made.check == "none" ? "not checked: " + made.unchecked : fmt::format("right ({})", made.check)});
  out.table(table);
  if (made.results) print(*made.results, out);
  for (const study::CompiledNetwork& shape : made.shapes) {
    if (shape.results) out.line(fmt::format("\n{}: {} calls", shape.shape, shape.calls));
    if (shape.results) print(*shape.results, out);
  }
}

base::Document to_document(const study::CompiledNetwork& made) {
  base::Document out = base::Document::map();
  out.set("platform", made.platform)
      .set("calls", made.calls)
      .set("kernels", made.kernels)
      .set("weights_bytes", made.weights_bytes)
      .set("arena_bytes", made.arena_bytes)
      .set("peak_bytes", made.peak_bytes)
      .set("check", made.check);
  if (!made.unchecked.empty()) out.set("unchecked", made.unchecked);
  if (made.results) out.set("results", to_document(*made.results));
  base::Document shapes = base::Document::list();
  for (const study::CompiledNetwork& shape : made.shapes) {
    base::Document each = base::Document::map();
    each.set("shape", shape.shape).set("calls", shape.calls).set("arena_bytes", shape.arena_bytes);
    if (shape.results) each.set("results", to_document(*shape.results));
    shapes.push(std::move(each));
  }
  if (!made.shapes.empty()) out.set("shapes", std::move(shapes));
  return out;
}

void print(const study::NetworkCheck& check, Output& out) {
  out.line(fmt::format("\nworst call: {}, {:.2g} of what rounding may do{}", check.call, check.of_bound,
                       check.right() ? "" : ": " + check.difference));
  out.line(fmt::format("{} elements of all calls compared{}", check.elements,
                       check.unbounded == 0 ? "" : fmt::format(", {} of them without a bound", check.unbounded)));
  Table table({"output", "largest value", "largest error"});
  for (const graph::OutputError& error : check.outputs)
    table.row({graph::in_quotes(error.name), fmt::format("{:.4g}", error.largest),
               fmt::format("{:.2g}", error.largest_error)});
  out.table(table);
}

void print_time(const study::NetworkRun& run, Output& out) {
  out.line(fmt::format("\ntime: {} (median of {}; {})", seconds_text(run.median_seconds),
                       base::counted(run.seconds.size(), "repetition"),
                       run.where == "qemu" ? "emulated by qemu" : run.where));
}

base::Document to_document(const study::NetworkCheck& check) {
  base::Document outputs = base::Document::list();
  for (const graph::OutputError& error : check.outputs)
    outputs.push(base::Document::map()
                     .set("name", error.name)
                     .set("largest", error.largest)
                     .set("largest_error", error.largest_error));
  return base::Document::map()
      .set("right", check.right())
      .set("of_bound", check.of_bound)
      .set("worst_call", check.call)
      .set("elements", check.elements)
      .set("unbounded", check.unbounded)
      .set("outputs", std::move(outputs));
}

void print_files(const std::string& platform, const std::map<std::string, std::string>& files,
                 const std::string& folder, Output& out) {
  out.line(fmt::format("\nfor {}, in {}:", platform, folder));
  for (const auto& [name, content] : files) out.line(fmt::format("  {} ({} bytes)", name, content.size()));
}

}  // namespace graft::cli
