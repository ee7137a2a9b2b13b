#include "codegen/program/forms.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cassert>
#include <cstdlib>
#include <limits>
#include <span>

#include "base/error.h"
#include "base/text.h"
#include "codegen/expression/value_text.h"
#include "codegen/program/check.h"
#include "codegen/program/intrinsic.h"

namespace graft::codegen {
namespace {

constexpr std::size_t largest_text = 256 << 10;  // bytes; reading is quadratic in lines (see line_cursor)
constexpr std::int64_t largest_integer = std::int64_t(1) << 40;  // in an index: sums of them stay inside 64 bits

constexpr std::array combines{Combine::sum, Combine::product, Combine::max, Combine::min,
                              Combine::none};  // "=" last: it begins no other

// --- writing

class Writer {
 public:
  explicit Writer(const LoopProgram& program) : program_(program) {
    for (const Loop& loop : program.loops) loop_names_.push_back(loop.name);
  }

  std::string text(const Store& store) const {
    assert(!store.value.nodes.empty());
    return fmt::format(
        "{} {} {}", text(store.target), name_of(store.combine),
        to_text(store.value,
                {[&](const Access& access, std::span<const std::string> gathered) {
                   std::vector<std::string> marked;
                   for (const std::string& index : gathered) marked.push_back(fmt::format("at({})", index));
                   return text(access, marked);
                 },
                 [&](const Affine& form) { return fmt::format("position({})", to_text(form, loop_names_)); }},
                ", "));
  }

  std::string text(const Access& access, std::span<const std::string> gathered = {}) const {
    return access_text(program_.buffers[std::size_t(access.tensor)].name, access, loop_names_, gathered);
  }

 private:
  const LoopProgram& program_;
  std::vector<std::string> loop_names_;
};

void write_body(const LoopProgram& program, const Body& body, std::string& text) {
  const Writer writer(program);
  std::vector<int> ends;
  for (int n = 0; n < int(body.size()); ++n) {
    while (!ends.empty() && ends.back() == n) ends.pop_back();
    const Node& node = body[std::size_t(n)];
    text.append(2 * (ends.size() + 1), ' ');
    if (node.kind == Node::Kind::loop) {
      const Loop& loop = program.loops[std::size_t(node.item)];
      text += fmt::format("for {} {}", loop.name, loop.extent);
      if (loop.kind != LoopKind::serial) text += fmt::format(" {}", name_of(loop.kind));
      if (loop.intrinsic >= 0)
        text += fmt::format(" intrinsic {}", program.intrinsics[std::size_t(loop.intrinsic)]->name);
      for (std::size_t i = 0; i < loop.prefetches.size(); ++i)
        text += (i == 0 ? " prefetch " : ", ") + writer.text(loop.prefetches[i]);
      ends.push_back(node.end);
    } else {
      text += writer.text(program.stores[std::size_t(node.item)]);
    }
    text += '\n';
  }
}

// --- reading names

// The value of that name; `fail` throws its argument.
template <class Enum, std::size_t N, class Fail>
Enum named(std::string_view word, const std::array<Enum, N>& all, std::string_view what, Fail fail) {
  std::vector<std::string> known;
  for (const Enum one : all) {
    if (name_of(one) == word) return one;
    known.emplace_back(name_of(one));
  }
  fail(fmt::format("unknown {} '{}'{}", what, word, base::did_you_mean(word, known)));
  std::abort();  // not reached: fail throws
}

template <class Enum, std::size_t N>
Enum named(std::string_view word, const std::array<Enum, N>& all, std::string_view what, const base::Cursor& cursor) {
  return named(word, all, what, [&](const std::string& message) { cursor.fail(message); });
}

template <class Enum, std::size_t N>
Enum named(const base::Document& word, const std::array<Enum, N>& all, std::string_view what) {
  return named(word.as_string(), all, what,
               [&](const std::string& message) { throw base::UserError(word.place(), message); });
}

constexpr std::array loop_kinds{
#define X(name) LoopKind::name,
    GRAFT_LOOP_KINDS(X)
#undef X
};
constexpr std::array dtypes{
#define X(name, element) DType::name,
    GRAFT_DTYPES(X)
#undef X
};
constexpr std::array roles{Role::input, Role::constant, Role::output, Role::temporary};
constexpr std::array scopes{Scope::memory, Scope::registers, Scope::group};

Layout layout_from(std::string_view text, const std::string& place) {
  const std::vector<std::string_view> words = base::words(text);
  return parse_layout(std::vector<std::string>(words.begin(), words.end()), place);
}

// --- reading stores

// Reads one store, or what a loop prefetches, from a cursor that ends with it; `open` are the loops around it.
class StoreReader : private ValueReader {
 public:
  StoreReader(base::Cursor cursor, const LoopProgram& program, std::span<const int> open)
      : ValueReader(std::move(cursor)), program_(program), open_(open) {}

  Store store() {
    Store result;
    result.target = access(cursor_.identifier());
    result.combine = combine();
    result.value = sum(0);
    if (!cursor_.at_end()) cursor_.fail("expected an operation or the end of the store");
    return result;
  }

  std::vector<Access> prefetches() {
    std::vector<Access> result;
    do result.push_back(access(cursor_.identifier()));
    while (cursor_.accept(","));
    if (!cursor_.at_end()) cursor_.fail("expected ',' or the end of the prefetches");
    return result;
  }

 private:
  Combine combine() {
    for (const Combine one : combines)
      if (cursor_.accept(name_of(one))) return one;
    cursor_.fail("expected '=', '+=', '*=', 'max=' or 'min='");
  }

  Access access(const std::string& name) {
    Access result;
    result.tensor = buffer_named(name);
    cursor_.expect("[");
    if (cursor_.accept("]")) return result;
    do result.index.push_back(form());
    while (cursor_.accept(","));
    cursor_.expect("]");
    return result;
  }

  // An index of a load is a form, or at(value).
  Value load(const std::string& name, int depth) {
    Access access;
    access.tensor = buffer_named(name);
    cursor_.expect("[");
    std::vector<Value> gathered;
    if (cursor_.accept("]")) return Value::load(std::move(access));
    do {
      if (!cursor_.accept("at(")) {
        access.index.push_back(form());
        continue;
      }
      if (gathered.size() == 3) cursor_.fail("more than 3 indices that are values");
      access.gathered.push_back(int(access.index.size()));
      access.index.emplace_back(0);
      gathered.push_back(sum(depth + 1));
      cursor_.expect(")");
    } while (cursor_.accept(","));
    cursor_.expect("]");
    return Value::load(std::move(access), gathered);
  }

  int buffer_named(const std::string& name) const {
    std::vector<std::string> known;
    for (std::size_t b = 0; b < program_.buffers.size(); ++b) {
      if (program_.buffers[b].name == name) return int(b);
      known.push_back(program_.buffers[b].name);
    }
    cursor_.fail(fmt::format("unknown buffer '{}'{}", name, base::did_you_mean(name, known)));
  }

  int loop_named(const std::string& name) const {
    std::vector<std::string> known;
    for (const int loop : open_) {
      known.push_back(program_.loops[std::size_t(loop)].name);
      if (known.back() == name) return loop;
    }
    cursor_.fail(fmt::format("no loop '{}' around this store{}", name, base::did_you_mean(name, known)));
  }

  std::int64_t integer() {
    const std::int64_t value = cursor_.integer();
    if (value > largest_integer || value < -largest_integer)
      cursor_.fail(fmt::format("{} is too large for an index", value));
    return value;
  }

  // [-] part {(+|-) part}, a part being a number, a loop, or a product of both.
  Affine form() {
    Affine result;
    bool negative = cursor_.accept("-");
    for (int parts = 1;; ++parts) {
      if (parts > 1024) cursor_.fail("an index of more than 1024 parts");
      result += part() * (negative ? -1 : 1);
      if (cursor_.accept("+"))
        negative = false;
      else if (cursor_.accept("-"))
        negative = true;
      else
        return result;
    }
  }

  Affine part() {
    if (cursor_.at_number()) {
      const std::int64_t factor = integer();
      return cursor_.accept("*") ? Affine::variable(loop_named(cursor_.identifier()), factor) : Affine(factor);
    }
    const int loop = loop_named(cursor_.identifier());
    return Affine::variable(loop, cursor_.accept("*") ? integer() : 1);
  }

  Value leaf(int depth) override {
    if (cursor_.at_number()) return Value::constant(cursor_.number());
    const bool negative = cursor_.accept("-");  // only an infinity is left: neg() is a call
    const std::string name = cursor_.identifier();
    if (name == "inf" && cursor_.peek() != '[') {
      const double infinity = std::numeric_limits<double>::infinity();
      return Value::constant(negative ? -infinity : infinity);
    }
    if (negative) cursor_.fail("a minus sign before something that is not a number; write neg(...)");
    if (cursor_.peek() != '(') return load(name, depth);
    const Op op = function_named(name);
    if (op == Op::load && name != "position") cursor_.fail(unknown_function(name, {"position"}));
    cursor_.expect("(");
    if (op == Op::load) {
      Value position = Value::position(form());
      cursor_.expect(")");
      return position;
    }
    return operation(op, depth + 1);
  }

  const LoopProgram& program_;
  std::span<const int> open_;
};

// --- building bodies, common to both forms

// Appends nodes to bodies and keeps the places of the parts read, for the check.
class Builder {
 public:
  explicit Builder(std::string_view place) { places_.whole = place; }

  LoopProgram program;

  void begin(Body& body) { body_ = &body; }
  bool in_body() const { return body_ != nullptr; }
  std::size_t depth() const { return nodes_.size(); }
  std::span<const int> open() const { return open_; }

  void intrinsic(IntrinsicPointer intrinsic, const std::string& place) {
    append_intrinsic(program.intrinsics, std::move(intrinsic), place);
  }
  int intrinsic_at(const std::string& name, const std::string& place) const {
    std::vector<std::string> known;
    for (std::size_t i = 0; i < program.intrinsics.size(); ++i) {
      known.push_back(program.intrinsics[i]->name);
      if (known.back() == name) return int(i);
    }
    throw base::UserError(place, fmt::format("unknown intrinsic '{}'{}", name, base::did_you_mean(name, known)));
  }
  void buffer(Buffer buffer, std::string place) {
    program.buffers.push_back(std::move(buffer));
    places_.buffers.push_back(std::move(place));
  }
  void open_loop(Loop loop, std::string place) {
    const int item = int(program.loops.size());
    program.loops.push_back(std::move(loop));
    places_.loops.push_back(std::move(place));
    nodes_.push_back(int(body_->size()));
    body_->push_back({Node::Kind::loop, item, 0});
    open_.push_back(item);
  }
  // After open_loop: prefetched elements may depend on the loop itself.
  void prefetches(std::vector<Access> accesses) {
    std::vector<Access>& all = program.loops[std::size_t(open_.back())].prefetches;
    all.insert(all.end(), accesses.begin(), accesses.end());
  }
  void close_loop() {
    (*body_)[std::size_t(nodes_.back())].end = int(body_->size());
    nodes_.pop_back();
    open_.pop_back();
  }
  void store(Store store, std::string place) {
    const int item = int(program.stores.size());
    program.stores.push_back(std::move(store));
    places_.stores.push_back(std::move(place));
    body_->push_back({Node::Kind::store, item, int(body_->size()) + 1});
  }
  LoopProgram checked() && {
    check(program, places_);
    return std::move(program);
  }

 private:
  Body* body_ = nullptr;
  Places places_;
  std::vector<int> nodes_;  // of open loops, in *body_
  std::vector<int> open_;
};

// --- the text form

class TextReader {
 public:
  TextReader(std::string_view text, std::string_view place) : text_(text), place_(place), builder_(place) {}

  LoopProgram read() {
    if (text_.size() > largest_text)
      throw base::UserError(place_, fmt::format("a program of more than {} KiB", largest_text >> 10));
    const std::vector<std::string_view> lines = base::split(text_, '\n');
    for (std::size_t number = 0; number < lines.size();) {
      const std::string place = fmt::format("{}:{}", place_, number + 1);
      if (lines[number].starts_with("intrinsic ")) {
        builder_.intrinsic(parse_intrinsic(lines, number, place_), place);
        continue;
      }
      const std::size_t begin = std::size_t(lines[number].data() - text_.data());
      line(begin, begin + lines[number].size(), place);
      ++number;
    }
    while (builder_.depth() > 0) builder_.close_loop();
    return std::move(builder_).checked();
  }

 private:
  // A cursor at `begin` that ends at `end`, and still reports the right line and column.
  base::Cursor line_cursor(std::size_t begin, std::size_t end) const {
    base::Cursor cursor(text_.substr(0, end), place_);
    cursor.accept(base::trim(text_.substr(0, begin)));
    cursor.peek();  // moves over the indentation, so that errors point at the line's first word
    return cursor;
  }

  void line(std::size_t begin, std::size_t end, const std::string& place) {
    const std::string_view content = text_.substr(begin, end - begin);
    if (base::trim(content).empty()) return;
    const std::size_t indent = content.find_first_not_of(' ');
    base::Cursor cursor = line_cursor(begin, end);
    if (indent == 0) {
      while (builder_.depth() > 0) builder_.close_loop();
      section(cursor, place);
      return;
    }
    if (!builder_.in_body()) cursor.fail("an indented line outside of 'prepare' and 'run'");
    const std::size_t level = indent / 2 - 1;  // loops around this line
    if (indent % 2 != 0 || level > builder_.depth())
      cursor.fail(fmt::format("{} spaces; two for each level, at most {} here", indent, 2 * (builder_.depth() + 1)));
    while (builder_.depth() > level) builder_.close_loop();
    statement(cursor, place);
  }

  void section(base::Cursor& cursor, const std::string& place) {
    const std::string word = cursor.identifier();
    if (word == "buffer") {
      if (builder_.in_body()) cursor.fail("buffers are declared before 'prepare' and 'run'");
      buffer(cursor, place);
    } else if (word == "prepare" || word == "run") {
      Body& body = word == "run" ? builder_.program.run : builder_.program.prepare;
      if (!body.empty()) cursor.fail(fmt::format("a second '{}'", word));
      builder_.begin(body);
    } else {
      const std::vector<std::string> known{"buffer", "prepare", "run"};
      cursor.fail(fmt::format("unknown word '{}'{}", word, base::did_you_mean(word, known)));
    }
    if (!cursor.at_end()) cursor.fail("expected the end of the line");
  }

  void buffer(base::Cursor& cursor, const std::string& place) {
    Buffer buffer;
    buffer.name = cursor.identifier();
    buffer.dtype = named(cursor.identifier(), dtypes, "type", cursor);
    cursor.expect("[");
    if (!cursor.accept("]")) {
      do buffer.shape.push_back(cursor.integer());
      while (cursor.accept(","));
      cursor.expect("]");
    }
    buffer.role = named(cursor.identifier(), roles, "role", cursor);
    if (cursor.accept("{")) {
      do buffer.values.push_back(cursor.number());
      while (cursor.accept(","));
      cursor.expect("}");
    }
    if (cursor.accept("stored")) {
      cursor.expect("{");
      const std::string_view words = cursor.rest().substr(0, cursor.rest().find('}'));
      buffer.layout = layout_from(words, place);
      cursor.accept(base::trim(words));
      cursor.expect("}");
    }
    if (!cursor.at_end()) buffer.scope = named(cursor.identifier(), scopes, "scope", cursor);
    builder_.buffer(std::move(buffer), place);
  }

  void statement(base::Cursor& cursor, const std::string& place) {
    // A buffer may be called "for", but a store of it continues with a bracket.
    base::Cursor ahead = cursor;
    if (ahead.identifier() == "for" && ahead.peek() != '[') {
      cursor = ahead;
      Loop loop;
      loop.name = cursor.identifier();
      loop.extent = cursor.integer();
      std::string word = cursor.at_end() ? "" : cursor.identifier();
      const auto next = [&] { word = cursor.at_end() ? "" : cursor.identifier(); };
      if (!word.empty() && word != "prefetch") {
        loop.kind = named(word, loop_kinds, "kind of loop", cursor);
        next();
      }
      if (word == "intrinsic") {
        loop.intrinsic = builder_.intrinsic_at(cursor.identifier(), place);
        next();
      }
      if (!word.empty() && word != "prefetch") cursor.fail("expected 'intrinsic', 'prefetch' or the end of the line");
      builder_.open_loop(std::move(loop), place);
      if (!word.empty()) builder_.prefetches(StoreReader(cursor, builder_.program, builder_.open()).prefetches());
    } else {
      builder_.store(StoreReader(cursor, builder_.program, builder_.open()).store(), place);
    }
  }

  std::string_view text_;
  std::string place_;
  Builder builder_;
};

// --- the JSON form
//
// {"buffers": [{"name", "dtype", "shape", "role", "scope", "values", "stored"}], "prepare": [node], "run": [node]}, a
// node being
// {"for": name, "extent": n, "kind": kind, "body": [node]} or {"store": text of the store}. With intrinsics,
// "intrinsics": [text] comes first, and a loop may have "intrinsic": name. A loop that prefetches has "prefetch": [text
// of the element].

base::Document to_document(const LoopProgram& program, const Body& body, int begin, int end) {
  const Writer writer(program);
  base::Document list = base::Document::list();
  for (int n = begin; n < end; n = body[std::size_t(n)].end) {
    const Node& node = body[std::size_t(n)];
    base::Document entry = base::Document::map();
    if (node.kind == Node::Kind::loop) {
      const Loop& loop = program.loops[std::size_t(node.item)];
      entry.set("for", loop.name);
      entry.set("extent", loop.extent);
      entry.set("kind", std::string(name_of(loop.kind)));
      if (loop.intrinsic >= 0) entry.set("intrinsic", program.intrinsics[std::size_t(loop.intrinsic)]->name);
      if (!loop.prefetches.empty()) {
        base::Document elements = base::Document::list();
        for (const Access& access : loop.prefetches) elements.push(writer.text(access));
        entry.set("prefetch", std::move(elements));
      }
      entry.set("body", to_document(program, body, n + 1, node.end));
    } else {
      entry.set("store", writer.text(program.stores[std::size_t(node.item)]));
    }
    list.push(std::move(entry));
  }
  return list;
}

class DocumentReader {
 public:
  explicit DocumentReader(const base::Document& document) : document_(document), builder_(document.place()) {}

  LoopProgram read() {
    document_.only_keys({"intrinsics", "buffers", "prepare", "run"});
    if (const base::Document* intrinsics = document_.find("intrinsics")) {
      for (const base::Document& entry : intrinsics->as_list())
        for (IntrinsicPointer& intrinsic : parse_intrinsics(entry.as_string(), entry.place()))
          builder_.intrinsic(std::move(intrinsic), entry.place());
    }
    for (const base::Document& entry : document_.at("buffers").as_list()) buffer(entry);
    if (const base::Document* prepare = document_.find("prepare")) {
      builder_.begin(builder_.program.prepare);
      nodes(*prepare);
    }
    builder_.begin(builder_.program.run);
    nodes(document_.at("run"));
    return std::move(builder_).checked();
  }

 private:
  void buffer(const base::Document& entry) {
    entry.only_keys({"name", "dtype", "shape", "role", "scope", "values", "stored"});
    Buffer buffer;
    buffer.name = entry.at("name").as_string();
    buffer.dtype = named(entry.at("dtype"), dtypes, "type");
    for (const base::Document& extent : entry.at("shape").as_list()) buffer.shape.push_back(extent.as_integer());
    buffer.role = named(entry.at("role"), roles, "role");
    if (const base::Document* scope = entry.find("scope")) buffer.scope = named(*scope, scopes, "scope");
    if (const base::Document* values = entry.find("values"))
      for (const base::Document& value : values->as_list()) buffer.values.push_back(value.as_number());
    if (const base::Document* stored = entry.find("stored"))
      buffer.layout = layout_from(stored->as_string(), stored->place());
    builder_.buffer(std::move(buffer), entry.place());
  }

  void nodes(const base::Document& list) {
    // As deep as check() allows; here so that the recursion is bounded too.
    if (builder_.depth() > deepest_nest)
      throw base::UserError(list.place(), fmt::format("more than {} loops in each other", deepest_nest));
    for (const base::Document& entry : list.as_list()) {
      if (const base::Document* store = entry.find("store")) {
        entry.only_keys({"store"});
        const base::Cursor cursor(store->as_string(), store->place() + ":store");
        builder_.store(StoreReader(cursor, builder_.program, builder_.open()).store(), entry.place());
        continue;
      }
      entry.only_keys({"for", "extent", "kind", "intrinsic", "prefetch", "body", "store"});
      Loop loop;
      loop.name = entry.at("for").as_string();
      loop.extent = entry.at("extent").as_integer();
      if (const base::Document* kind = entry.find("kind")) loop.kind = named(*kind, loop_kinds, "kind of loop");
      if (const base::Document* intrinsic = entry.find("intrinsic"))
        loop.intrinsic = builder_.intrinsic_at(intrinsic->as_string(), intrinsic->place());
      builder_.open_loop(std::move(loop), entry.place());
      if (const base::Document* elements = entry.find("prefetch")) {
        for (const base::Document& element : elements->as_list()) {
          const base::Cursor cursor(element.as_string(), element.place());
          builder_.prefetches(StoreReader(cursor, builder_.program, builder_.open()).prefetches());
        }
      }
      nodes(entry.at("body"));
      builder_.close_loop();
    }
  }

  const base::Document& document_;
  Builder builder_;
};

}  // namespace

std::string to_text(const LoopProgram& program) {
  std::string text;
  for (const IntrinsicPointer& intrinsic : program.intrinsics) text += to_text(*intrinsic);
  for (const Buffer& buffer : program.buffers) {
    text += fmt::format("buffer {} {} [{}] {}", buffer.name, name_of(buffer.dtype), fmt::join(buffer.shape, ","),
                        name_of(buffer.role));
    if (buffer.is_literal()) text += fmt::format(" {{{}}}", fmt::join(buffer.values, ", "));
    if (!buffer.layout.is_plain()) text += fmt::format(" stored {{{}}}", to_text(buffer.layout));
    if (buffer.scope != Scope::memory) text += fmt::format(" {}", name_of(buffer.scope));
    text += '\n';
  }
  if (!program.prepare.empty()) {
    text += "prepare\n";
    write_body(program, program.prepare, text);
  }
  text += "run\n";
  write_body(program, program.run, text);
  return text;
}

LoopProgram parse_program(std::string_view text, std::string_view place) {
  return TextReader(text, place).read();
}

base::Document to_document(const LoopProgram& program) {
  base::Document buffers = base::Document::list();
  for (const Buffer& buffer : program.buffers) {
    base::Document entry = base::Document::map();
    entry.set("name", buffer.name);
    entry.set("dtype", std::string(name_of(buffer.dtype)));
    base::Document shape = base::Document::list();
    for (const std::int64_t extent : buffer.shape) shape.push(extent);
    entry.set("shape", std::move(shape));
    entry.set("role", std::string(name_of(buffer.role)));
    entry.set("scope", std::string(name_of(buffer.scope)));
    if (buffer.is_literal()) {
      base::Document values = base::Document::list();
      for (const double value : buffer.values) values.push(value);
      entry.set("values", std::move(values));
    }
    if (!buffer.layout.is_plain()) entry.set("stored", to_text(buffer.layout));
    buffers.push(std::move(entry));
  }
  base::Document document = base::Document::map();
  if (!program.intrinsics.empty()) {
    base::Document intrinsics = base::Document::list();
    for (const IntrinsicPointer& intrinsic : program.intrinsics) intrinsics.push(to_text(*intrinsic));
    document.set("intrinsics", std::move(intrinsics));
  }
  document.set("buffers", std::move(buffers));
  document.set("prepare", to_document(program, program.prepare, 0, int(program.prepare.size())));
  document.set("run", to_document(program, program.run, 0, int(program.run.size())));
  return document;
}

LoopProgram program_from(const base::Document& document) {
  return DocumentReader(document).read();
}

}  // namespace graft::codegen
