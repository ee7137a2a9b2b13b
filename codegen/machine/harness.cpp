#include "codegen/machine/harness.h"

#include <fmt/format.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/GlobalVariable.h>

#include <algorithm>
#include <cassert>
#include <functional>
#include <utility>

#include "base/memory.h"
#include "codegen/machine/backend.h"
#include "codegen/machine/system_calls.h"

namespace graft::codegen {
namespace {

// A day: no kernel takes so long.
constexpr std::int64_t most_nanoseconds = std::int64_t(86'400) * 1'000'000'000;

using Data = Operands::Data;

// Memory is filled by words.
std::int64_t whole_words(std::int64_t bytes) {
  return (bytes + 7) / 8 * 8;
}

// "[2 x ptr] [ptr @a, ptr @b]"
template <class Name>
std::string pointers(std::size_t count, const Name& name) {
  std::string list;
  for (std::size_t i = 0; i < count; ++i) list += fmt::format("{}ptr @{}", i == 0 ? "" : ", ", name(i));
  return fmt::format("[{} x ptr] [{}]", count, list);
}

std::string constant_text(std::string_view name, std::string_view text) {
  std::string escaped;
  for (const char c : text)
    escaped += c == '"' || c == '\\' || c < ' ' ? fmt::format("\\{:02X}", int(c)) : std::string(1, c);
  return fmt::format("@{} = internal constant [{} x i8] c\"{}\"\n", name, text.size(), escaped);
}

std::int64_t nanoseconds(double seconds) {
  return std::int64_t(seconds * 1e9);
}

// Code that writes a word, by its name.
using Say = std::function<std::string(std::string_view)>;

// After a kernel's runs: its line, and its outputs.
std::string report_text(const Operands& operands, const Say& say) {
  const std::size_t outputs = operands.outputs.size();
  std::string text;
  text += say("ends") + "  call void @write_number(i64 %k)\n" + say("first_word") +
          "  call void @write_number(i64 %first)\n" + say("runs_word") +
          "  call void @write_number(i64 %runs_of_one)\n" + say("times_word");
  text += R"(  br label %listed
listed:
  %t = phi i64 [ 0, %report ], [ %t_next, %shown ]
  %all = icmp sge i64 %t, %repetitions
  br i1 %all, label %outputs, label %separate
separate:
  %is_first = icmp eq i64 %t, 0
  br i1 %is_first, label %shown, label %with_comma
with_comma:
)" + say("comma") +
          R"(  br label %shown
shown:
  %shown_at = getelementptr i64, ptr @times, i64 %t
  %shown_time = load i64, ptr %shown_at
  call void @write_number(i64 %shown_time)
  %t_next = add i64 %t, 1
  br label %listed
outputs:
)" + say("bytes_word") +
          R"(  %sum_at = getelementptr i64, ptr @sums, i64 %k
  %sum = load i64, ptr %sum_at
  call void @write_number(i64 %sum)
)" + say("closes");
  for (std::size_t o = 0; o < outputs; ++o)
    text += fmt::format(
        "  %row{0} = mul i64 %k, {1}\n"
        "  %at{0} = add i64 %row{0}, {0}\n"
        "  %size_at{0} = getelementptr i64, ptr @sizes, i64 %at{0}\n"
        "  %size{0} = load i64, ptr %size_at{0}\n"
        "  call void @write(ptr @{2}, i64 %size{0})\n",
        o, outputs, operands.outputs[o]);
  return text;
}

// After the runs of a kernel that the program itself checks: a line for people. A digest is base::hash_bytes.
std::string self_check_text(const Operands& operands, const Say& say) {
  const std::size_t outputs = operands.outputs.size();
  std::string text = R"(  br label %listed
listed:
  %t = phi i64 [ 0, %report ], [ %t_next, %seen ]
  %least = phi i64 [ %first, %report ], [ %lesser, %seen ]
  %all = icmp sge i64 %t, %repetitions
  br i1 %all, label %outputs, label %seen
seen:
  %seen_at = getelementptr i64, ptr @times, i64 %t
  %seen_time = load i64, ptr %seen_at
  %of_one = udiv i64 %seen_time, %runs_of_one
  %lesser = call i64 @smaller(i64 %least, i64 %of_one)
  %t_next = add i64 %t, 1
  br label %listed
outputs:
  %name = call ptr @entry_of(ptr @names, i64 %k)
  %name_size_at = getelementptr i64, ptr @name_sizes, i64 %k
  %name_size = load i64, ptr %name_size_at
  call void @write(ptr %name, i64 %name_size)
  call void @write_number(i64 %least)
)";
  std::string hash = "-3750763034362895579";  // FNV-1a's offset basis, 0xcbf29ce484222325
  for (std::size_t o = 0; o < outputs; ++o) {
    text += fmt::format(
        "  %row{0} = mul i64 %k, {1}\n"
        "  %at{0} = add i64 %row{0}, {0}\n"
        "  %size_at{0} = getelementptr i64, ptr @sizes, i64 %at{0}\n"
        "  %size{0} = load i64, ptr %size_at{0}\n"
        "  %hash{0} = call i64 @digested(i64 {2}, ptr @{3}, i64 %size{0})\n",
        o, outputs, hash, operands.outputs[o]);
    hash = fmt::format("%hash{}", o);
  }
  text += fmt::format(R"(  %digest = call i64 @mixed(i64 {})
  %wanted_at = getelementptr i64, ptr @digests, i64 %k
  %wanted_digest = load i64, ptr %wanted_at
  %right = icmp eq i64 %digest, %wanted_digest
  br i1 %right, label %is_right, label %is_wrong
is_right:
)",
                      hash);
  return text + say("right") + "  br label %done\nis_wrong:\n" + say("wrong") + "  store i64 1, ptr @status\n";
}

const char* const digest_text = R"(
define internal i64 @digested(i64 %hash, ptr %bytes, i64 %count) nounwind {
entry:
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %after, %next ]
  %h = phi i64 [ %hash, %entry ], [ %multiplied, %next ]
  %place = getelementptr i8, ptr %bytes, i64 %i
  %byte = load i8, ptr %place
  %wide = zext i8 %byte to i64
  %joined = xor i64 %h, %wide
  %multiplied = mul i64 %joined, 1099511628211
  %after = add i64 %i, 1
  %again = icmp ult i64 %after, %count
  br i1 %again, label %next, label %end
end:
  ret i64 %multiplied
}

define internal i64 @mixed(i64 %value) nounwind {
  %a = lshr i64 %value, 30
  %b = xor i64 %value, %a
  %c = mul i64 %b, -4658895280553007687
  %d = lshr i64 %c, 27
  %e = xor i64 %c, %d
  %f = mul i64 %e, -7723592293110705685
  %g = lshr i64 %f, 31
  %h = xor i64 %f, %g
  ret i64 %h
}
)";

std::string self_check_data(const std::vector<RunSettings::SelfCheck>& checks) {
  std::string text, sizes, digests;
  for (std::size_t k = 0; k < checks.size(); ++k) {
    const std::string name = checks[k].name + ": ";
    text += constant_text(fmt::format("name{}", k), name);
    sizes += fmt::format("{}i64 {}", k == 0 ? "" : ", ", name.size());
    digests += fmt::format("{}i64 {}", k == 0 ? "" : ", ", std::int64_t(checks[k].digest));
  }
  return text + "@status = internal global i64 0\n@names = internal constant " +
         pointers(checks.size(), [](std::size_t k) { return fmt::format("name{}", k); }) +
         fmt::format(
             "\n@name_sizes = internal constant [{0} x i64] [{1}]\n@digests = internal constant [{0} x i64] [{2}]\n",
             checks.size(), sizes, digests);
}

std::string program_text(const std::vector<const Code*>& objects, const Operands& operands,
                         const std::vector<Data>& memory, const SystemCalls& calls, const RunSettings& settings) {
  const std::size_t count = objects.size();
  std::string text = fmt::format(R"(
module asm ".globl _start\0A_start:\0A{start}"

@timer = internal global [4 x i64] zeroinitializer
@digits = internal global [32 x i8] zeroinitializer
@times = internal global [{room} x i64] zeroinitializer
)",
                                 fmt::arg("start", calls.start), fmt::arg("room", std::max(settings.repetitions, 1)));
  for (const std::vector<Data>* all : {&operands.data, &memory})
    for (const Data& data : *all)
      text += fmt::format("@{} = external hidden global [{} x i8]\n", data.name, data.bytes);
  for (const Code* object : objects)
    text += fmt::format(
        "declare dso_local void @{0}_prepare(ptr, ptr, ptr)\n"
        "declare dso_local void @{0}_run(ptr, ptr, ptr, ptr, ptr)\n",
        object->symbol);
  for (std::size_t k = 0; k < count; ++k)
    text += fmt::format("@arguments{} = internal constant {}\n", k,
                        pointers(operands.names[k].size(), [&](std::size_t p) { return operands.names[k][p]; }));
  const auto symbols = [&](std::string_view suffix) {
    return pointers(count, [&](std::size_t k) { return fmt::format("{}_{}", objects[k]->symbol, suffix); });
  };
  text += "@prepares = internal constant " + symbols("prepare") + "\n";
  text += "@runs = internal constant " + symbols("run") + "\n";
  text += "@arguments = internal constant " +
          pointers(count, [](std::size_t k) { return fmt::format("arguments{}", k); }) + "\n";
  // The bytes of each kernel's outputs, [kernel][output], and of all of them.
  const std::size_t outputs = operands.outputs.size();
  std::string sizes, sums;
  for (std::size_t k = 0; k < count; ++k) {
    std::int64_t sum = 0;
    for (const Parameter& parameter : objects[k]->signature.parameters) {
      if (parameter.role != Role::output) continue;
      sum += parameter.bytes;
      sizes += fmt::format("{}i64 {}", sizes.empty() ? "" : ", ", parameter.bytes);
    }
    sums += fmt::format("{}i64 {}", sums.empty() ? "" : ", ", sum);
  }
  text += fmt::format("@sizes = internal constant [{} x i64] [{}]\n", count * outputs, sizes);
  text += fmt::format("@sums = internal constant [{} x i64] [{}]\n", count, sums);

  std::vector<std::pair<std::string, std::string>> words = {
      {"hello", fmt::format("{{\"graft\":1,\"kernels\":{}}}\n", count)},
      {"begins", "{\"begin\":"},
      {"closes", "}\n"},
      {"ends", "{\"end\":"},
      {"first_word", ",\"first\":"},
      {"runs_word", ",\"runs\":"},
      {"times_word", ",\"times\":["},
      {"comma", ","},
      {"bytes_word", "],\"bytes\":"}};
  const bool checks_itself = !settings.self_checks.empty();
  if (checks_itself) {
    words = {{"right", " ns, results right\n"}, {"wrong", " ns, results WRONG\n"}};
    text += self_check_data(settings.self_checks) + digest_text;
  }
  for (const auto& [name, word] : words) text += constant_text(name, word);
  const Say say = [&](std::string_view name) {
    for (const auto& [known, word] : words)
      if (known == name) return fmt::format("  call void @write(ptr @{}, i64 {})\n", known, word.size());
    return std::string();
  };

  text += system_text(calls) + clock_text(calls) + serial_for_text() + timed_text();
  text +=
      fmt::format(R"(
define internal void @write(ptr %bytes, i64 %count) nounwind {{
entry:
  %address = ptrtoint ptr %bytes to i64
  %nothing = icmp eq i64 %count, 0
  br i1 %nothing, label %end, label %more
more:
  %done = phi i64 [ 0, %entry ], [ %after, %wrote ]
  %at = add i64 %address, %done
  %left = sub i64 %count, %done
  %n = call i64 @system(i64 {write}, i64 1, i64 %at, i64 %left)
  %failed = icmp sle i64 %n, 0
  br i1 %failed, label %give_up, label %wrote
wrote:
  %after = add i64 %done, %n
  %again = icmp ult i64 %after, %count
  br i1 %again, label %more, label %end
give_up:
  call void @leave(i64 1)
  unreachable
end:
  ret void
}}

define internal void @leave(i64 %code) noreturn nounwind {{
  %r = call i64 @system(i64 {exit}, i64 %code, i64 0, i64 0)
  unreachable
}}

define internal void @alarm(i64 %seconds, i64 %microseconds) nounwind {{
  %s = getelementptr i64, ptr @timer, i64 2
  store volatile i64 %seconds, ptr %s
  %us = getelementptr i64, ptr @timer, i64 3
  store volatile i64 %microseconds, ptr %us
  %place = ptrtoint ptr @timer to i64
  %r = call i64 @system(i64 {setitimer}, i64 0, i64 %place, i64 0)
  ret void
}}

define internal void @fill(ptr %bytes, i64 %count) nounwind {{
entry:
  %nothing = icmp eq i64 %count, 0
  br i1 %nothing, label %end, label %next
next:
  %i = phi i64 [ 0, %entry ], [ %after, %next ]
  %place = getelementptr i8, ptr %bytes, i64 %i
  store volatile i64 -1, ptr %place
  %after = add i64 %i, 8
  %again = icmp ult i64 %after, %count
  br i1 %again, label %next, label %end
end:
  ret void
}}

define internal void @write_number(i64 %number) nounwind {{
entry:
  br label %digit
digit:
  %i = phi i64 [ 31, %entry ], [ %next, %step ]
  %value = phi i64 [ %number, %entry ], [ %shorter, %step ]
  %shorter = udiv i64 %value, 10
  %remainder = urem i64 %value, 10
  %wide = add i64 %remainder, 48
  %letter = trunc i64 %wide to i8
  %place = getelementptr i8, ptr @digits, i64 %i
  store i8 %letter, ptr %place
  %finished = icmp eq i64 %shorter, 0
  br i1 %finished, label %end, label %step
step:
  %next = sub i64 %i, 1
  br label %digit
end:
  %count = sub i64 32, %i
  call void @write(ptr %place, i64 %count)
  ret void
}}

define internal i64 @at_least_1(i64 %value) nounwind {{
  %less = icmp slt i64 %value, 1
  %result = select i1 %less, i64 1, i64 %value
  ret i64 %result
}}

define internal i64 @smaller(i64 %a, i64 %b) nounwind {{
  %less = icmp slt i64 %a, %b
  %result = select i1 %less, i64 %a, i64 %b
  ret i64 %result
}}

define internal ptr @entry_of(ptr %table, i64 %k) nounwind {{
  %place = getelementptr ptr, ptr %table, i64 %k
  %entry = load ptr, ptr %place
  ret ptr %entry
}}
)",
                  fmt::arg("write", calls.write), fmt::arg("exit", calls.exit), fmt::arg("setitimer", calls.setitimer));

  const std::int64_t timeout = nanoseconds(settings.timeout_seconds), minimum = nanoseconds(settings.minimum_seconds);
  const std::int64_t abort = settings.abort_seconds > 0 ? nanoseconds(settings.abort_seconds) : most_nanoseconds;
  // Half of the time is for timing; without a limit, a day.
  const std::int64_t budget = timeout > 0 ? timeout / 2 : most_nanoseconds;
  text += "\ndefine void @graft_main() noreturn nounwind {\nentry:\n" + say("hello") +
          "  br label %kernel\nkernel:\n  %k = phi i64 [ 0, %entry ], [ %k_next, %done ]\n";
  if (!checks_itself) text += say("begins") + "  call void @write_number(i64 %k)\n" + say("closes");
  text += fmt::format("  call void @alarm(i64 {}, i64 {})\n", timeout / 1'000'000'000, timeout % 1'000'000'000 / 1000);
  const auto filled = [](const Data& data) {
    return fmt::format("  call void @fill(ptr @{}, i64 {})\n", data.name, data.bytes);
  };
  for (const std::vector<Data>* all : {&operands.data, &memory})
    for (const Data& data : *all)
      if (!data.constant) text += filled(data);
  text += fmt::format(R"(
  %prepare = call ptr @entry_of(ptr @prepares, i64 %k)
  %run = call ptr @entry_of(ptr @runs, i64 %k)
  %arguments = call ptr @entry_of(ptr @arguments, i64 %k)
  call void %prepare(ptr %arguments, ptr @prepared, ptr @scratch)
{fill_scratch}  %measured = call i64 @graft.timed(ptr %run, ptr %arguments, ptr @prepared, ptr @scratch, ptr @graft.serial_for, ptr null, i64 1)
  %first = call i64 @at_least_1(i64 %measured)
  %short_by = add i64 %first, {minimum_less_1}
  %wanted = udiv i64 %short_by, %first
  %affordable = udiv i64 {budget}, %first
  %fitting = call i64 @smaller(i64 %wanted, i64 %affordable)
  %runs_of_one = call i64 @at_least_1(i64 %fitting)
  %one = mul i64 %runs_of_one, %first
  %most = udiv i64 {budget}, %one
  %some = call i64 @at_least_1(i64 %most)
  %timed = call i64 @smaller(i64 %some, i64 {repetitions})
  %slow = icmp sgt i64 %first, {abort}
  %repetitions = select i1 %slow, i64 0, i64 %timed
  br label %repeat
repeat:
  %r = phi i64 [ 0, %kernel ], [ %r_next, %repetition ]
  %enough = icmp sge i64 %r, %repetitions
  br i1 %enough, label %report, label %repetition
repetition:
  %took = call i64 @graft.timed(ptr %run, ptr %arguments, ptr @prepared, ptr @scratch, ptr @graft.serial_for, ptr null, i64 %runs_of_one)
  %time = getelementptr i64, ptr @times, i64 %r
  store i64 %took, ptr %time
  %r_next = add i64 %r, 1
  br label %repeat
report:
  call void @alarm(i64 0, i64 0)
)",
                      fmt::arg("fill_scratch", filled(memory.back())),
                      fmt::arg("minimum_less_1", std::max<std::int64_t>(minimum, 1) - 1), fmt::arg("budget", budget),
                      fmt::arg("repetitions", settings.repetitions), fmt::arg("abort", abort));
  text += checks_itself ? self_check_text(operands, say) : report_text(operands, say);
  return text + fmt::format(R"(  br label %done
done:
  %k_next = add i64 %k, 1
  %others = icmp slt i64 %k_next, {}
  br i1 %others, label %kernel, label %end
end:
{}  call void @leave(i64 %code)
  unreachable
}}
)",
                            count, checks_itself ? "  %code = load i64, ptr @status\n" : "  %code = add i64 0, 0\n");
}

}  // namespace

Operands operands_of(const std::vector<const Code*>& objects, const Computation& computation,
                     const Reference& reference) {
  std::vector<int> tensors;
  for (std::size_t t = 0; t < computation.tensors.size(); ++t)
    if (computation.tensors[t].role != Role::temporary) tensors.push_back(int(t));
  Operands result;
  result.names.resize(objects.size());
  for (std::size_t p = 0; p < tensors.size(); ++p) {
    std::vector<std::pair<const Parameter*, std::string>> known;  // names of symbols with their content
    std::int64_t most_bytes = 0;
    const std::string name = fmt::format("data{}", p);
    for (std::size_t k = 0; k < objects.size(); ++k) {
      assert(tensors.size() == objects[k]->signature.parameters.size());
      const Parameter& parameter = objects[k]->signature.parameters[p];
      if (parameter.role == Role::output) {
        most_bytes = std::max(most_bytes, parameter.bytes);
        result.names[k].push_back(name);
        continue;
      }
      const auto found = std::find_if(known.begin(), known.end(), [&](const auto& one) {
        return one.first->layout == parameter.layout && one.first->shape == parameter.shape;
      });
      if (found != known.end()) {
        result.names[k].push_back(found->second);
        continue;
      }
      const std::string own = known.empty() ? name : fmt::format("{}_{}", name, known.size());
      result.names[k].push_back(own);
      known.emplace_back(&parameter, own);
      result.data.push_back(
          {own,
           packed(parameter.layout, parameter.shape, reference.tensors[std::size_t(tensors[p])]).bytes(parameter.dtype),
           parameter.bytes, true});
    }
    if (most_bytes == 0) continue;
    result.data.push_back({name, "", whole_words(most_bytes), false});
    result.outputs.push_back(name);
  }
  return result;
}

Operands operands_of(const Code& object, const std::vector<std::string>& inputs) {
  Operands result;
  result.names.resize(1);
  std::size_t taken = 0;
  for (const Parameter& parameter : object.signature.parameters) {
    const std::string name = fmt::format("data{}", result.names[0].size());
    result.names[0].push_back(name);
    if (parameter.role == Role::output) {
      result.data.push_back({name, "", whole_words(parameter.bytes), false});
      result.outputs.push_back(name);
      continue;
    }
    assert(taken < inputs.size() && std::int64_t(inputs[taken].size()) == parameter.bytes);
    result.data.push_back({name, inputs[taken++], parameter.bytes, true});
  }
  return result;
}

base::Result<std::string> harness(const std::vector<const Code*>& objects, const Target& target,
                                  const std::function<Operands()>& make_operands, const RunSettings& settings,
                                  bool prepared_elsewhere) {
  assert(!objects.empty() && settings.repetitions >= 0);
  const auto calls = system_calls(target);
  if (!calls) return base::Reason{fmt::format("executable: no system calls known for {}", target.triple)};
  std::vector<Data> memory = {{"prepared", "", 64, prepared_elsewhere}, {"scratch", "", 64, false}};
  std::int64_t all_bytes = 0;
  for (const Code* object : objects) {
    memory[0].bytes = std::max(memory[0].bytes, whole_words(object->signature.prepared_bytes));
    memory[1].bytes = std::max(memory[1].bytes, whole_words(object->signature.most_scratch_bytes()));
    std::int64_t own = 0;
    for (const Parameter& parameter : object->signature.parameters) own += parameter.bytes;
    all_bytes = std::max(all_bytes, own);
  }
  // Code addresses its data by 32 bits with a sign.
  constexpr std::int64_t most_bytes = (std::int64_t(1) << 31) - (std::int64_t(1) << 26);
  all_bytes += memory[0].bytes + memory[1].bytes;
  if (all_bytes > most_bytes)
    return base::Reason{fmt::format("executable: its tensors take {}, it can hold {}", base::bytes_text(all_bytes),
                                    base::bytes_text(most_bytes))};
  const Operands operands = make_operands();
  // Quick to compile, for it is compiled with every batch of kernels, and what it does is not timed but for the calls.
  const Pipeline pipeline{"harness", "", "", 0, {}};
  const std::string text = program_text(objects, operands, memory, *calls, settings);
  return code_of_text(text, target, pipeline, [&](llvm::Module& module) {
    // Externals of the text are data made here.
    const auto define = [&](const Data& data) {
      llvm::Constant* const content =
          data.content.empty() ? static_cast<llvm::Constant*>(llvm::ConstantAggregateZero::get(llvm::ArrayType::get(
                                     llvm::Type::getInt8Ty(module.getContext()), std::uint64_t(data.bytes))))
                               : llvm::ConstantDataArray::getString(module.getContext(), data.content, false);
      llvm::GlobalVariable* declared = module.getNamedGlobal(data.name);
      declared->setName("");
      auto* variable = new llvm::GlobalVariable(module, content->getType(), data.constant,
                                                llvm::GlobalValue::InternalLinkage, content, data.name);
      variable->setAlignment(llvm::Align(64));
      declared->replaceAllUsesWith(variable);
      declared->eraseFromParent();
    };
    for (const Data& data : operands.data) define(data);
    for (const Data& data : memory)
      if (!(prepared_elsewhere && data.name == "prepared")) define(data);
  });
}

}  // namespace graft::codegen
