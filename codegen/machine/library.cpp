#include "codegen/machine/library.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/GlobalVariable.h>
#include <llvm/TargetParser/Triple.h>

#include <algorithm>
#include <cassert>
#include <cctype>
#include <cstring>
#include <optional>
#include <set>
#include <utility>

#include "base/one_line.h"
#include "base/text.h"
#include "codegen/machine/backend.h"
#include "codegen/machine/c_names.h"
#include "codegen/machine/fatal.h"
#include "codegen/machine/library_text.h"
#include "codegen/machine/link.h"
#include "codegen/machine/needs.h"
#include "codegen/machine/object_file.h"
#include "codegen/machine/system_calls.h"

namespace graft::codegen {
namespace {

bool same_storage(const std::vector<Parameter>& a, const std::vector<Parameter>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Parameter& x, const Parameter& y) {
    return x.role == y.role && x.dtype == y.dtype && x.shape == y.shape && x.layout == y.layout;
  });
}

// The parameters that the caller passes.
std::vector<Parameter> parameters(const LibraryVariant& variant) {
  std::vector<Parameter> all = variant.object.signature.parameters;
  std::erase_if(all, [&](const Parameter& parameter) { return !variant.passes(parameter); });
  return all;
}

void check_platforms(const Library& library) {
  const LibraryPlatform& first = library.platforms.front();
  for (const LibraryPlatform& other : library.platforms) {
    if (llvm::Triple(other.target.triple).getArch() != llvm::Triple(first.target.triple).getArch())
      throw base::UserError(library.name,
                            fmt::format("{} is {}, {} is {}; a library is for one architecture", first.name,
                                        first.target.triple, other.name, other.target.triple));
  }
  if (library.platforms.size() > 1 && !system_calls(first.target))
    throw base::UserError(library.name, fmt::format("no code for {} asks which platform it is on; give runs on one",
                                                    first.target.triple));
}

}  // namespace

void check(const Library& library) {
  assert(!library.functions.empty() && !library.platforms.empty());
  check_platforms(library);
  check_header_name("library name", library.name);
  std::set<std::string> names;
  for (const LibraryFunction& function : library.functions) {
    assert(!function.variants.empty());
    if (!is_c_identifier(function.name))
      throw base::UserError("function name", fmt::format("'{}' is not a C identifier", function.name));
    if (!names.insert(function.name).second)
      throw base::UserError("function name", fmt::format("'{}' occurs twice", function.name));
    for (const LibraryVariant& variant : function.variants) {
      assert(variant.constants.empty() == function.variants.front().constants.empty());
      if (!same_storage(parameters(variant), parameters(function.variants.front())))
        throw base::UserError(function.name,
                              "its variants store their parameters differently; a function has one layout");
    }
  }
}

void check(const Interface& interface) {
  std::set<std::string> names;
  for (const std::string& name : interface.names()) {
    if (is_c_word(name) || is_c_function(name))
      throw base::UserError("function name",
                            fmt::format("'{}' means something else in C or C++; choose another", name));
    if (!names.insert(name).second)
      throw base::UserError("function name", fmt::format("'{}' is what two functions need; choose another", name));
  }
}

namespace {

using Kind = Interface::Argument::Kind;

// An argument's type and name in the IR.
std::string argument_text(const Interface::Argument& argument) {
  switch (argument.kind) {
    case Kind::tensor:
      return fmt::format("ptr %p{}", argument.tensor);
    case Kind::prepared:
      return "ptr %prepared";
    case Kind::scratch:
      return "ptr %scratch";
    case Kind::budget_ns:
      return "i64 %budget";
    case Kind::parallel_for:
      return "ptr %for";
    case Kind::context:
      return "ptr %context";
    case Kind::weights:
    case Kind::arena:
    case Kind::extent:  // of sequences
      break;
  }
  return "";
}

// "ptr %p0, ptr %p1, ptr %scratch".
std::string arguments_text(const std::vector<Interface::Argument>& arguments) {
  std::vector<std::string> texts;
  for (const Interface::Argument& argument : arguments) texts.push_back(argument_text(argument));
  return fmt::format("{}", fmt::join(texts, ", "));
}

bool takes(const Interface::Call& call, Kind kind, int tensor = -1) {
  return std::any_of(call.arguments.begin(), call.arguments.end(), [&](const Interface::Argument& argument) {
    return argument.kind == kind && argument.tensor == tensor;
  });
}

// The first line of a call's definition, and what makes of its arguments those of a kernel (compile.h): %list, and
// `kernel_memory`.
std::string begin_text(const Interface::Function& function, const Interface::Call& call, std::string_view returns) {
  std::string text =
      fmt::format("define {} @{}({}) nounwind {{\n", returns, call.symbol, arguments_text(call.arguments));
  std::vector<std::string> passed;
  for (std::size_t t = 0; t < function.tensors.size(); ++t)
    if (function.tensors[t].is_passed())
      passed.push_back(takes(call, Kind::tensor, int(t)) ? fmt::format("%p{}", t) : "null");
  text += fmt::format("  %list = alloca [{} x ptr], align 16\n", passed.size());
  for (std::size_t p = 0; p < passed.size(); ++p)
    text +=
        fmt::format("  %at{0} = getelementptr ptr, ptr %list, i64 {0}\n  store ptr {1}, ptr %at{0}\n", p, passed[p]);
  return text;
}

// "ptr %list, ptr %prepared, ptr null".
std::string kernel_memory(const Interface::Call& call) {
  return fmt::format("ptr %list, ptr {}, ptr {}", takes(call, Kind::prepared) ? "%prepared" : "null",
                     takes(call, Kind::scratch) ? "%scratch" : "null");
}

std::string table(const std::vector<std::string>& entries) {
  return fmt::format("[{0} x ptr] [ptr @{1}]", entries.size(), fmt::join(entries, ", ptr @"));
}

std::string constant_name(const LibraryVariant& variant, std::size_t constant) {
  return fmt::format("{}.constant{}", variant.object.symbol, constant);
}

// The kernel of a variant with built-in constants: takes the caller's parameters, and adds them.
std::string with_constants(const LibraryVariant& variant) {
  const std::vector<Parameter>& all = variant.object.signature.parameters;
  std::string text, list = fmt::format("  %list = alloca [{} x ptr], align 16\n", all.size());
  std::size_t handed_over = 0, constant = 0;
  for (std::size_t p = 0; p < all.size(); ++p) {
    std::string value = "null";
    if (variant.passes(all[p])) {
      value = fmt::format("%p{}", p);
      list += fmt::format("  %from{0} = getelementptr ptr, ptr %given, i64 {1}\n  %p{0} = load ptr, ptr %from{0}\n", p,
                          handed_over++);
    } else if (const std::string& content = variant.constants[constant++]; !content.empty()) {
      value = "@" + constant_name(variant, constant - 1);
      // Its content is set once the text is parsed.
      text += fmt::format("{} = internal constant [{} x i8] zeroinitializer, align 64\n", value, content.size());
    }
    list += fmt::format("  %at{0} = getelementptr ptr, ptr %list, i64 {0}\n  store ptr {1}, ptr %at{0}\n", p, value);
  }
  return text +
         fmt::format(
             "define internal void @{0}.run(ptr %given, ptr %prepared, ptr %scratch, ptr %for, ptr %context) nounwind "
             "{{\n{1}  call void @{0}_run(ptr %list, ptr %prepared, ptr %scratch, ptr %for, ptr %context)\n  ret "
             "void\n}}\n",
             variant.object.symbol, list);
}

// The functions of one workload. @kept: which variant runs; -1: the first one whose platform @graft.chosen finds.
std::string function_text(const LibraryFunction& function, const Interface::Function& interface, bool chooses) {
  const std::size_t count = function.variants.size();
  chooses = chooses && count > 1;
  const std::string& name = function.name;
  std::string text;
  std::vector<std::string> prepare, run, platforms;
  for (const LibraryVariant& variant : function.variants) {
    const std::string& symbol = variant.object.symbol;
    text += fmt::format(
        "declare hidden void @{0}_prepare(ptr, ptr, ptr)\ndeclare hidden void @{0}_run(ptr, ptr, ptr, ptr, ptr)\n",
        symbol);
    if (!variant.constants.empty()) text += with_constants(variant);
    prepare.push_back(symbol + "_prepare");
    run.push_back(symbol + (variant.constants.empty() ? "_run" : ".run"));
    platforms.push_back(fmt::format("i64 {}", variant.platform));
  }
  text += fmt::format("@{0}.prepares = internal constant {1}\n@{0}.runs = internal constant {2}\n", name,
                      table(prepare), table(run));
  text += fmt::format("@{}.platforms = internal constant [{} x i64] [{}]\n", name, count, fmt::join(platforms, ", "));
  text += fmt::format("@{}.kept = internal global i64 {}\n", name, chooses ? -1 : 0);
  const auto entry = [&](std::string_view of) {
    if (count == 1) return fmt::format("  %code = load ptr, ptr @{}.{}\n", name, of);
    const std::string kept =
        chooses ? fmt::format("call i64 @graft.chosen(ptr @{0}.kept, ptr @{0}.platforms, i64 {1})", name, count)
                : fmt::format("load atomic i64, ptr @{}.kept monotonic, align 8", name);
    return fmt::format(
        "  %kept = {2}\n  %code_at = getelementptr ptr, ptr @{0}.{1}, i64 %kept\n  %code = load ptr, ptr %code_at\n",
        name, of, kept);
  };
  const std::string loop =
      "  %none = icmp eq ptr %for, null\n  %loop = select i1 %none, ptr @graft.serial_for, ptr %for\n";
  if (interface.prepare) {
    text += begin_text(interface, *interface.prepare, "void") + entry("prepares");
    text += fmt::format("  call void %code({})\n  ret void\n}}\n", kernel_memory(*interface.prepare));
  }
  text += begin_text(interface, interface.run, "void") + entry("runs");
  text += fmt::format("  call void %code({}, ptr @graft.serial_for, ptr null)\n  ret void\n}}\n",
                      kernel_memory(interface.run));
  if (interface.parallel) {
    text += begin_text(interface, *interface.parallel, "void") + entry("runs") + loop;
    text += fmt::format("  call void %code({}, ptr %loop, ptr %context)\n  ret void\n}}\n",
                        kernel_memory(*interface.parallel));
  }
  if (interface.select) {
    text += begin_text(interface, *interface.select, "i64") + loop;
    text += fmt::format(
        "  %best = alloca [{1} x i64], align 16\n"
        "  %chosen = call i64 @graft.fastest(ptr @{0}.prepares, ptr @{0}.runs, ptr @{0}.platforms, i64 {1}, ptr %best, "
        "{2}, i64 %budget, "
        "ptr %loop, ptr %context)\n"
        "  store atomic i64 %chosen, ptr @{0}.kept monotonic, align 8\n"
        "  %code_at = getelementptr ptr, ptr @{0}.prepares, i64 %chosen\n  %code = load ptr, ptr %code_at\n"
        "  call void %code({2})\n  ret i64 %chosen\n}}\n",
        name, count, kernel_memory(*interface.select));
  }
  return text;
}

// Which of `count` variants is fastest here: rounds over all of them, in each of which a variant is prepared, run once
// untimed, and timed three times over as many runs as take 20 us or more; its least time counts. From the third round
// on those that are 1.3 times slower than the best are left out; those that cannot run here always. Ends
// after the first round that ends after `budget` nanoseconds, but not before the fifth, and after 1,000 rounds.
const char* const fastest_text = R"(
define internal i64 @graft.fastest(ptr %prepares, ptr %runs, ptr %platforms, i64 %count, ptr %best, ptr %list, ptr %prepared, ptr %scratch, i64 %budget, ptr %for, ptr %context) noinline nounwind {
entry:
  %begin = call i64 @graft.now()
  br label %clear
clear:
  %c = phi i64 [ 0, %entry ], [ %c_next, %clear ]
  %c_at = getelementptr i64, ptr %best, i64 %c
  %c_platform_at = getelementptr i64, ptr %platforms, i64 %c
  %c_platform = load i64, ptr %c_platform_at
  %c_runs = call i1 @graft.is_for_here(i64 %c_platform)
  %c_best = select i1 %c_runs, i64 9223372036854775807, i64 -1
  store i64 %c_best, ptr %c_at
  %c_next = add i64 %c, 1
  %c_more = icmp slt i64 %c_next, %count
  br i1 %c_more, label %clear, label %round
round:
  %r = phi i64 [ 0, %clear ], [ %r_next, %rounded ]
  %least = phi i64 [ 9223372036854775807, %clear ], [ %least_after, %rounded ]
  %first = phi i64 [ 0, %clear ], [ %first_after, %rounded ]
  br label %variant
variant:
  %v = phi i64 [ 0, %round ], [ %v_next, %done ]
  %least_now = phi i64 [ %least, %round ], [ %least_then, %done ]
  %first_now = phi i64 [ %first, %round ], [ %first_then, %done ]
  %best_at = getelementptr i64, ptr %best, i64 %v
  %known = load i64, ptr %best_at
  %share = sdiv i64 %least, 10
  %three = mul i64 %share, 3
  %bound = add i64 %least, %three
  %slow = icmp sgt i64 %known, %bound
  %late = icmp sge i64 %r, 2
  %left_out = and i1 %slow, %late
  %never = icmp slt i64 %known, 0
  %skip = or i1 %left_out, %never
  br i1 %skip, label %done, label %prepare
prepare:
  %prepare_at = getelementptr ptr, ptr %prepares, i64 %v
  %prepare_code = load ptr, ptr %prepare_at
  call void %prepare_code(ptr %list, ptr %prepared, ptr %scratch)
  %run_at = getelementptr ptr, ptr %runs, i64 %v
  %run = load ptr, ptr %run_at
  %warm = call i64 @graft.timed(ptr %run, ptr %list, ptr %prepared, ptr %scratch, ptr %for, ptr %context, i64 1)
  %warm_some = call i64 @llvm.smax.i64(i64 %warm, i64 1)
  %fit = sdiv i64 20000, %warm_some
  %fit_one = add i64 %fit, 1
  br label %sample
sample:
  %s = phi i64 [ 0, %prepare ], [ %s_next, %sample ]
  %took = call i64 @graft.timed(ptr %run, ptr %list, ptr %prepared, ptr %scratch, ptr %for, ptr %context, i64 %fit_one)
  %scaled = mul i64 %took, 16
  %time = sdiv i64 %scaled, %fit_one
  %before = load i64, ptr %best_at
  %lesser = call i64 @llvm.smin.i64(i64 %before, i64 %time)
  store i64 %lesser, ptr %best_at
  %s_next = add i64 %s, 1
  %s_more = icmp slt i64 %s_next, 3
  br i1 %s_more, label %sample, label %compare
compare:
  %fastest = icmp slt i64 %lesser, %least_now
  %least_new = select i1 %fastest, i64 %lesser, i64 %least_now
  %first_new = select i1 %fastest, i64 %v, i64 %first_now
  br label %done
done:
  %least_then = phi i64 [ %least_now, %variant ], [ %least_new, %compare ]
  %first_then = phi i64 [ %first_now, %variant ], [ %first_new, %compare ]
  %v_next = add i64 %v, 1
  %v_more = icmp slt i64 %v_next, %count
  br i1 %v_more, label %variant, label %rounded
rounded:
  %least_after = phi i64 [ %least_then, %done ]
  %first_after = phi i64 [ %first_then, %done ]
  %r_next = add i64 %r, 1
  %now = call i64 @graft.now()
  %spent = sub i64 %now, %begin
  %over = icmp sge i64 %spent, %budget
  %enough = icmp sge i64 %r_next, 5
  %stops = and i1 %over, %enough
  %many = icmp sge i64 %r_next, 1000
  %ends = or i1 %stops, %many
  br i1 %ends, label %end, label %round
end:
  ret i64 %first_after
}

declare i64 @llvm.smax.i64(i64, i64)
declare i64 @llvm.smin.i64(i64, i64)
)";

// A call of a function under the type that all shapes of an operator have: with both kinds of memory.
std::string uniform_text(const Interface::Call& call) {
  std::vector<Interface::Argument> arguments = call.arguments;
  std::erase_if(arguments, [](const Interface::Argument& argument) { return argument.kind != Kind::tensor; });
  arguments.insert(arguments.end(), {{Kind::prepared}, {Kind::scratch}});
  return fmt::format("define internal void @{0}.uniform({1}) nounwind {{\n  call void @{0}({2})\n  ret void\n}}\n",
                     call.symbol, arguments_text(arguments), arguments_text(call.arguments));
}

// One dispatcher for each operator: its shapes in order.
std::string dispatcher_text(const Interface& interface, const Interface::Shapes& shapes) {
  std::string text;
  std::vector<std::string> extents;
  for (std::size_t e = 0; e < shapes.extents.size(); ++e) extents.push_back(fmt::format("i64 %e{}", e));
  std::string body = "entry:\n  br label %shape0\n";
  for (std::size_t f = 0; f < shapes.entries.size(); ++f) {
    const Interface::Function& function = interface.functions[std::size_t(shapes.entries[f].function)];
    const std::string entry = fmt::format("@{}.kernel", function.name);
    text += uniform_text(function.run);
    if (function.prepare) text += uniform_text(*function.prepare);
    text += fmt::format(
        "{} = internal constant {{ ptr, ptr, i64, i64, i64 }} {{ ptr {}, ptr @{}.uniform, i64 {}, i64 {}, i64 {} }}\n",
        entry, function.prepare ? fmt::format("@{}.uniform", function.prepare->symbol) : "null", function.run.symbol,
        function.prepared_bytes, function.prepare_scratch_bytes, function.scratch_bytes);
    body += shape_branch_text(f, shapes.entries[f].extents, "eq") + fmt::format("  ret ptr {}\n", entry);
  }
  body += fmt::format("shape{}:\n  ret ptr null\n", shapes.entries.size());
  return text + fmt::format("define ptr @{}({}) nounwind {{\n{}}}\n", shapes.symbol, fmt::join(extents, ", "), body);
}

// `i64 @graft.chosen(kept, platforms, count)`: the variant that runs, of `count` for these platforms: the kept one; or,
// which it keeps, the first one for the platform that was asked for, else for one that runs here. None: the last one.
const char* const chosen_text = R"(
@graft.platform = internal global i64 -1
define internal i64 @graft.chosen(ptr %kept, ptr %platforms, i64 %count) noinline nounwind {
entry:
  %known = load atomic i64, ptr %kept monotonic, align 8
  %is_known = icmp sge i64 %known, 0
  br i1 %is_known, label %end, label %asked
asked:
  %wanted = load atomic i64, ptr @graft.platform monotonic, align 8
  br label %variant
variant:
  %v = phi i64 [ 0, %asked ], [ %v_next, %next ]
  %at = getelementptr i64, ptr %platforms, i64 %v
  %platform = load i64, ptr %at
  %is_wanted = icmp eq i64 %platform, %wanted
  br i1 %is_wanted, label %keep, label %next
next:
  %v_next = add i64 %v, 1
  %v_more = icmp slt i64 %v_next, %count
  br i1 %v_more, label %variant, label %machine
machine:
  %m = phi i64 [ 0, %next ], [ %m_next, %other ]
  %m_next = add i64 %m, 1
  %is_last = icmp eq i64 %m_next, %count
  br i1 %is_last, label %keep, label %look
look:
  %m_at = getelementptr i64, ptr %platforms, i64 %m
  %m_platform = load i64, ptr %m_at
  %runs = call i1 @graft.is_for_here(i64 %m_platform)
  br i1 %runs, label %keep, label %other
other:
  br label %machine
keep:
  %found = phi i64 [ %v, %variant ], [ %m, %machine ], [ %m, %look ]
  store atomic i64 %found, ptr %kept monotonic, align 8
  br label %end
end:
  %variant_is = phi i64 [ %known, %entry ], [ %found, %keep ]
  ret i64 %variant_is
}
)";

// NAME_runs_here, and where there are several platforms NAME_use_platform and what functions ask. Code for one platform
// is run, whatever the machine says: whoever calls it has decided.
std::string platforms_text(const Library& library, const Interface& interface) {
  const std::size_t count = library.platforms.size();
  std::vector<Target> targets;
  for (const LibraryPlatform& platform : library.platforms) targets.push_back(platform.target);
  std::string text = machine_text(targets);
  if (count == 1)
    return text + "define internal i1 @graft.is_for_here(i64 %platform) nounwind {\n  ret i1 true\n}\n" +
           runs_here_text(interface.runs_here);
  std::string cases, blocks, first, all, forget;
  for (std::size_t p = 0; p < count; ++p) {
    cases += fmt::format(" i64 {0}, label %is{0}", p);
    blocks += fmt::format("is{0}:\n  %runs{0} = call i1 @graft.runs{0}()\n  ret i1 %runs{0}\n", p);
    first += fmt::format("  %here{0} = call i1 @graft.runs{1}()\n  %best{0} = select i1 %here{0}, i32 {1}, i32 {2}\n",
                         p, count - 1 - p, p == 0 ? "-1" : fmt::format("%best{}", p - 1));
  }
  for (std::size_t f = 0; f < library.functions.size(); ++f) {
    const LibraryFunction& function = library.functions[f];
    for (std::size_t v = 0; v < function.variants.size(); ++v)
      all += fmt::format("  %is{0}.{1} = call i1 @graft.is_for_here(i64 {2})\n  %some{0}.{1} = or i1 {3}, %is{0}.{1}\n",
                         f, v, function.variants[v].platform, v == 0 ? "false" : fmt::format("%some{}.{}", f, v - 1));
    all += fmt::format("  %all{0} = and i1 {1}, %some{0}.{2}\n", f, f == 0 ? "true" : fmt::format("%all{}", f - 1),
                       function.variants.size() - 1);
    if (function.variants.size() > 1)
      forget += fmt::format("  store atomic i64 -1, ptr @{}.kept monotonic, align 8\n", function.name);
  }
  return text + chosen_text +
         fmt::format(R"(
define internal i1 @graft.is_for_here(i64 %platform) noinline nounwind {{
  switch i64 %platform, label %none [{cases}]
{blocks}none:
  ret i1 false
}}
define i32 @{runs_here}() nounwind {{
{all}  %is = zext i1 %all{last_function} to i32
  ret i32 %is
}}
define i32 @{use_platform}(i32 %wanted) nounwind {{
entry:
  %number = sext i32 %wanted to i64
  %automatic = icmp eq i32 %wanted, -1
  br i1 %automatic, label %set, label %given
given:
  %can = call i1 @graft.is_for_here(i64 %number)
  br i1 %can, label %set, label %refused
set:
  store atomic i64 %number, ptr @graft.platform monotonic, align 8
{forget}{first}  %used = select i1 %automatic, i32 %best{last_platform}, i32 %wanted
  ret i32 %used
refused:
  ret i32 -1
}}
)",
                     fmt::arg("cases", cases), fmt::arg("blocks", blocks), fmt::arg("all", all),
                     fmt::arg("forget", forget), fmt::arg("first", first), fmt::arg("runs_here", interface.runs_here),
                     fmt::arg("use_platform", interface.use_platform),
                     fmt::arg("last_function", library.functions.size() - 1), fmt::arg("last_platform", count - 1));
}

std::string wrappers_text(const Library& library, const Interface& interface) {
  const auto calls = system_calls(library.platforms.front().target);
  std::string text = serial_for_text() + platforms_text(library, interface);
  if (calls) text += system_text(*calls);
  const bool selects = std::any_of(interface.functions.begin(), interface.functions.end(),
                                   [](const Interface::Function& function) { return function.select.has_value(); });
  if (selects) {
    if (!calls)
      throw base::UserError(library.name, fmt::format("no clock is known for {}; give one variant of each function",
                                                      library.platforms.front().target.triple));
    text += clock_text(*calls) + timed_text() + fastest_text;
  }
  for (std::size_t f = 0; f < library.functions.size(); ++f)
    text += function_text(library.functions[f], interface.functions[f], library.platforms.size() > 1);
  for (const Interface::Shapes& shapes : interface.shapes) text += dispatcher_text(interface, shapes);
  return text;
}

base::Result<std::string> wrappers(const Library& library, const Interface& interface) {
  const Pipeline pipeline{"library", "", "", 1, {}};
  // On lesser machines this code is what says that the rest cannot run.
  const Target target = least_target(library.platforms.front().target);
  return code_of_text(wrappers_text(library, interface), target, pipeline, [&](llvm::Module& module) {
    for (const LibraryFunction& function : library.functions) {
      for (const LibraryVariant& variant : function.variants) {
        for (std::size_t c = 0; c < variant.constants.size(); ++c) {
          llvm::GlobalVariable* const data = module.getNamedGlobal(constant_name(variant, c));
          if (data != nullptr)
            data->setInitializer(llvm::ConstantDataArray::getString(module.getContext(), variant.constants[c], false));
        }
      }
    }
  });
}

}  // namespace

std::string identifier(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      out += c;
    } else if (!out.empty() && out.back() != '_') {
      out += '_';
    }
  }
  while (!out.empty() && out.back() == '_') out.pop_back();
  if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0])) != 0) out.insert(0, "kernel_");
  return out;
}

std::map<std::string, std::string> library_files(const Library& library, LibraryFormat format) {
  check(library);
  const Interface interface = interface_of(library);
  check(interface);
  auto around = guarded(library.platforms.front().target, [&] { return wrappers(library, interface); });
  if (!around) throw base::Failure("library: " + around.reason().text);
  std::vector<std::string> parts = {library.exported ? std::move(around).value() : hidden(std::move(around).value())};
  for (const LibraryFunction& function : library.functions) {
    for (const LibraryVariant& variant : function.variants) parts.push_back(hidden(variant.object.bytes));
  }
  std::map<std::string, std::string> files;
  auto linked = link_relocatable({parts.begin(), parts.end()});
  if (!linked) throw base::Failure(linked.reason().text);
  const std::string code = format == LibraryFormat::object ? library.name + ".o" : fmt::format("lib{}.a", library.name);
  std::int64_t threads = 1;
  for (const Interface::Function& function : interface.functions) threads = std::max(threads, function.threads);
  add_headers(library.name, header_text(interface), threads, files);
  files[library.name + ".json"] = to_document(interface, code).to_pretty_json() + "\n";
  if (format == LibraryFormat::object) {
    files[code] = std::move(linked).value();
    return files;
  }
  files[code] = archive(library.name + ".o", *linked);
  files[library.name + ".pc"] = pkg_config_text(interface.name, interface.platform_names());
  files[library.name + "Config.cmake"] = cmake_config_text(interface.name, code, threads);
  return files;
}

}  // namespace graft::codegen
