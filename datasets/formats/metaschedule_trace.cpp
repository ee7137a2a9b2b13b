#include "datasets/formats/metaschedule_trace.h"

#include <fmt/format.h>

#include <utility>

namespace graft::datasets::formats {
namespace {

using codegen::TirTrace;
using Item = TirTrace::Item;
using Instruction = TirTrace::Instruction;

constexpr std::string_view too_early = "a trace that ends too early";
constexpr std::size_t longest_name = 80, longest_text = 1 << 16, most_instructions = 65536, most_decisions = 4096,
                      most_items = 4096;
constexpr int deepest_list = 8;

Item read_item(JsonReader& reader, std::size_t& count, int depth = 0) {
  if (++count > most_items) reader.fail("an instruction of more parts than any real one");
  Item item;
  if (depth > deepest_list) {
    reader.skip();
    return item;
  }
  switch (reader.kind()) {
    case JsonReader::Kind::number: {
      // Probabilities are not used.
      const double number = reader.any_number();
      item.kind = Item::Kind::number;
      item.number = number >= -9e15 && number <= 9e15 ? std::int64_t(number) : 0;
      break;
    }
    case JsonReader::Kind::boolean:
      item.kind = Item::Kind::number;
      item.number = reader.boolean();
      break;
    case JsonReader::Kind::string: {
      item.kind = Item::Kind::text;
      const std::string_view text = reader.string();
      if (text.size() > longest_text) reader.fail("a text longer than any real one");
      item.text = text;
      break;
    }
    case JsonReader::Kind::list:
      item.kind = Item::Kind::list;
      for (reader.begin_list(); reader.next_item();) item.items.push_back(read_item(reader, count, depth + 1));
      break;
    case JsonReader::Kind::null:
    case JsonReader::Kind::map:
      reader.skip();
      break;
  }
  return item;
}

std::vector<Item> read_items(JsonReader& reader, std::size_t& count) {
  return std::move(read_item(reader, count).items);
}

}  // namespace

TirTrace read_trace(JsonReader& reader) {
  TirTrace trace;
  reader.begin_list();
  reader.expect_item(too_early);
  for (reader.begin_list(); reader.next_item();) {
    if (trace.instructions.size() == most_instructions) reader.fail("more instructions than any real trace has");
    Instruction& instruction = trace.instructions.emplace_back();
    reader.begin_list();
    reader.expect_item(too_early);
    instruction.name = reader.string();
    if (instruction.name.size() > longest_name)
      reader.fail(fmt::format("the name of an instruction has more than {} characters", longest_name));
    std::size_t count = 0;
    std::vector<Item>* const parts[] = {&instruction.inputs, &instruction.attributes, &instruction.outputs};
    for (std::size_t part = 0; reader.next_item(); ++part) {
      if (part < std::size(parts)) {
        *parts[part] = read_items(reader, count);
      } else {
        reader.skip();
      }
    }
  }
  reader.expect_item(too_early);
  std::size_t numbers = 0;
  for (reader.begin_list(); reader.next_item();) {
    reader.begin_list();
    reader.expect_item(too_early);
    const std::int64_t at = reader.integer();
    reader.expect_item(too_early);
    if (at < 0) reader.fail(fmt::format("instruction {}", at));
    std::vector<std::int64_t> decision;
    const auto add = [&] {
      if (++numbers > most_decisions) reader.fail("more decisions than any real trace has");
      decision.push_back(reader.integer());
    };
    if (reader.at(JsonReader::Kind::list)) {
      for (reader.begin_list(); reader.next_item();) add();
    } else {
      add();
    }
    if (at < std::int64_t(trace.instructions.size())) trace.decisions[std::size_t(at)] = std::move(decision);
    while (reader.next_item()) reader.skip();
  }
  while (reader.next_item()) reader.skip();
  return trace;
}

}  // namespace graft::datasets::formats
