#include "base/document.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <utility>

#include "base/error.h"
#include "base/one_line.h"

namespace graft::base {
namespace {

// Deeper trees come from mistakes and attacks only, and everything that walks a tree here is recursive.
constexpr std::size_t deepest = 200;
// YAML aliases copy what they name, so ten short lines can represent 10^10 nodes.
constexpr std::int64_t most_alias_nodes = 1'000'000;

[[noreturn]] void refuse(const std::string& place, std::string_view message) {
  if (place.empty()) throw UserError(std::string(message));
  throw UserError(place, message);
}

// The length of the UTF-8 character that begins at `at`, 0 if there is none.
std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const unsigned first = byte(at), second = byte(at + 1);
  const auto continues = [&](std::size_t i) { return (byte(i) & 0xc0u) == 0x80u; };
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return continues(at + 1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    // Overlong forms and surrogates are not UTF-8.
    if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f)) return 0;
    return continues(at + 1) && continues(at + 2) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    if ((first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f)) return 0;
    return continues(at + 1) && continues(at + 2) && continues(at + 3) ? 4 : 0;
  }
  return 0;
}

void write_string(std::string& out, std::string_view text) {
  out += '"';
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    const std::size_t length = utf8_length(text, i);
    if (length == 0) {
      out += "\xef\xbf\xbd";  // U+FFFD: what a crashed program printed may be anything, the file must stay JSON
      ++i;
      continue;
    }
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", int(c));
    } else {
      out += text.substr(i, length);
    }
    i += length;
  }
  out += '"';
}

void write_number(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  const std::size_t begin = out.size();
  fmt::format_to(std::back_inserter(out), "{}", value);
  // Read back it shall be a double again.
  if (out.find_first_of(".e", begin) == std::string::npos) out += ".0";
}

// indent < 0: on one line.
void write(std::string& out, const Document& document, int indent) {
  const auto new_line = [&](int depth) {
    out += '\n';
    out.append(std::size_t(2 * depth), ' ');
  };
  const int inner = indent < 0 ? indent : indent + 1;
  if (document.is_map()) {
    const Document::Map& map = document.as_map();
    out += '{';
    bool first = true;
    for (const auto& [key, value] : map) {
      if (!std::exchange(first, false)) out += ',';
      if (indent >= 0) new_line(inner);
      write_string(out, key);
      out += indent < 0 ? ":" : ": ";
      write(out, value, inner);
    }
    if (indent >= 0 && !map.empty()) new_line(indent);
    out += '}';
  } else if (document.is_list()) {
    const Document::List& list = document.as_list();
    // A list of plain values reads better on one line.
    const bool broken = indent >= 0 && std::any_of(list.begin(), list.end(), [](const Document& item) {
                          return item.is_list() || item.is_map();
                        });
    out += '[';
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (i > 0) out += indent >= 0 && !broken ? ", " : ",";
      if (broken) new_line(inner);
      write(out, list[i], inner);
    }
    if (broken) new_line(indent);
    out += ']';
  } else if (document.is_string()) {
    write_string(out, document.as_string());
  } else if (document.is_bool()) {
    out += document.as_bool() ? "true" : "false";
  } else if (document.is_integer()) {
    fmt::format_to(std::back_inserter(out), "{}", document.as_integer());
  } else if (document.is_number()) {
    write_number(out, document.as_number());
  } else {
    out += "null";
  }
}

// The value of this node, for messages.
std::string shown(const Document& document) {
  if (document.is_null()) return "nothing";
  if (document.is_list()) return "a list";
  if (document.is_map()) return "a map";
  std::string text = document.is_string() ? document.as_string() : document.to_json();
  constexpr std::size_t longest = 60;
  if (text.size() > longest) {
    std::size_t end = longest;
    while (end > 0 && (text[end] & 0xc0) == 0x80) --end;
    text = text.substr(0, end) + "...";
  }
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';  // a message is one line
  }
  return fmt::format("'{}'", text);
}

[[noreturn]] void refuse_type(const Document& document, std::string_view expected) {
  refuse(document.place(), fmt::format("expected {}, got {}", expected, shown(document)));
}

template <class Number>
std::optional<Number> whole(std::string_view text, int base) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

Document::Document(bool value) : value_(value) {}
Document::Document(std::int64_t value) : value_(value) {}
Document::Document(std::size_t value) {
  if (value <= std::size_t(std::numeric_limits<std::int64_t>::max())) {
    value_ = std::int64_t(value);
  } else {
    value_ = fmt::format("0x{:016x}", value);
  }
}
Document::Document(double value) : value_(value) {}
Document::Document(std::string value) : value_(std::move(value)) {}
Document::Document(List value) : value_(std::move(value)) {}
Document::Document(Map value) : value_(std::move(value)) {}

bool Document::is_null() const {
  return std::holds_alternative<std::monostate>(value_);
}
bool Document::is_bool() const {
  return std::holds_alternative<bool>(value_);
}
bool Document::is_integer() const {
  return std::holds_alternative<std::int64_t>(value_);
}
bool Document::is_number() const {
  return is_integer() || std::holds_alternative<double>(value_);
}
bool Document::is_string() const {
  return std::holds_alternative<std::string>(value_);
}
bool Document::is_list() const {
  return std::holds_alternative<List>(value_);
}
bool Document::is_map() const {
  return std::holds_alternative<Map>(value_);
}

bool Document::as_bool() const {
  if (!is_bool()) refuse_type(*this, "true or false");
  return std::get<bool>(value_);
}

std::int64_t Document::as_integer() const {
  if (is_integer()) return std::get<std::int64_t>(value_);
  // 1e3 is a way to write 1000; from 2^53 on a double does not say which integer was meant.
  if (const double* number = std::get_if<double>(&value_)) {
    if (std::trunc(*number) == *number && std::abs(*number) < 0x1p53) return std::int64_t(*number);
  }
  refuse_type(*this, "an integer");
}

std::uint64_t Document::as_u64() const {
  if (is_integer() && std::get<std::int64_t>(value_) >= 0) return std::uint64_t(std::get<std::int64_t>(value_));
  if (is_string()) {
    const std::string_view text = std::get<std::string>(value_);
    const auto value =
        text.starts_with("0x") ? whole<std::uint64_t>(text.substr(2), 16) : whole<std::uint64_t>(text, 10);
    if (value) return *value;
  }
  refuse_type(*this, "an integer of 64 bits without sign, as a number or as a string (decimal or 0x...)");
}

double Document::as_number() const {
  if (is_integer()) return double(std::get<std::int64_t>(value_));
  if (!is_number()) refuse_type(*this, "a number");
  return std::get<double>(value_);
}

const std::string& Document::as_string() const& {
  if (!is_string()) refuse_type(*this, "a string");
  return std::get<std::string>(value_);
}

const Document::List& Document::as_list() const& {
  if (!is_list()) refuse_type(*this, "a list");
  return std::get<List>(value_);
}

const Document::Map& Document::as_map() const& {
  if (!is_map()) refuse_type(*this, "a map");
  return std::get<Map>(value_);
}

std::string Document::as_string() && {
  return std::move(const_cast<std::string&>(std::as_const(*this).as_string()));
}

Document::List Document::as_list() && {
  return std::move(const_cast<List&>(std::as_const(*this).as_list()));
}

Document::Map Document::as_map() && {
  return std::move(const_cast<Map&>(std::as_const(*this).as_map()));
}

Document Document::at(std::string_view key) && {
  return std::move(const_cast<Document&>(std::as_const(*this).at(key)));
}

const Document* Document::find(std::string_view key) const& {
  for (const auto& [name, value] : as_map()) {
    if (name == key) return &value;
  }
  return nullptr;
}

const Document& Document::at(std::string_view key) const& {
  if (const Document* found = find(key)) return *found;
  refuse(place_, fmt::format("missing key '{}'", key));
}

void Document::only_keys(std::initializer_list<std::string_view> known) const {
  only_keys(std::vector<std::string_view>(known));
}

void Document::only_keys(const std::vector<std::string_view>& known) const {
  for (const auto& [name, value] : as_map()) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::vector<std::string> names(known.begin(), known.end());
    refuse(value.place().empty() ? place_ : value.place(),
           fmt::format("unknown key '{}'{}", name, did_you_mean(name, names)));
  }
}

Document& Document::set(std::string key, Document value) & {
  if (is_null()) value_ = Map{};
  assert(is_map());
  Map& map = std::get<Map>(value_);
  for (auto& [name, old] : map) {
    if (name == key) {
      old = std::move(value);
      return *this;
    }
  }
  map.emplace_back(std::move(key), std::move(value));
  return *this;
}

Document& Document::push(Document value) & {
  if (is_null()) value_ = List{};
  assert(is_list());
  std::get<List>(value_).push_back(std::move(value));
  return *this;
}

Document Document::set(std::string key, Document value) && {
  return std::move(set(std::move(key), std::move(value)));
}

Document Document::push(Document value) && {
  return std::move(push(std::move(value)));
}

std::string Document::to_json() const {
  std::string out;
  write(out, *this, -1);
  return out;
}

std::string Document::to_pretty_json() const {
  std::string out;
  write(out, *this, 0);
  return out;
}

bool Document::operator==(const Document& other) const {
  return value_ == other.value_;
}

namespace {

// Puts a tree together from the events of a parser. The parsers report each node's place.
class Builder {
 public:
  bool in_map() const { return !open_.empty() && open_.back().is_map; }
  bool awaits_key() const { return in_map() && !open_.back().has_key; }
  bool in_list() const { return !open_.empty() && !open_.back().is_map; }
  std::size_t list_size() const { return open_.back().list.size(); }
  const std::string& container_place() const { return open_.back().place; }
  // The key that awaits its value, and its place.
  const std::string& pending_key() const { return open_.back().key; }
  const std::string& pending_key_place() const { return open_.back().key_place; }
  std::size_t depth() const { return open_.size(); }

  void begin(bool is_map, std::string place) {
    if (open_.size() == deepest) refuse(place, fmt::format("nested deeper than {} levels", deepest));
    open_.push_back({.is_map = is_map, .place = std::move(place)});
  }

  void key(std::string name, std::string place) {
    open_.back().has_key = true;
    open_.back().key = std::move(name);
    open_.back().key_place = std::move(place);
  }

  // Gives the finished node, so that an anchor can keep it.
  const Document& end() {
    Frame frame = std::move(open_.back());
    open_.pop_back();
    if (frame.is_map) refuse_duplicates(frame.map);
    Document done = frame.is_map ? Document(std::move(frame.map)) : Document(std::move(frame.list));
    done.set_place(std::move(frame.place));
    return add(std::move(done));
  }

  const Document& value(Document document, std::string place) {
    document.set_place(std::move(place));
    return add(std::move(document));
  }

  Document take() { return std::move(root_); }

 private:
  struct Frame {
    bool is_map = false;
    bool has_key = false;
    std::string place = {}, key = {}, key_place = {};
    Document::List list = {};
    Document::Map map = {};
  };

  const Document& add(Document document) {
    if (open_.empty()) return root_ = std::move(document);
    Frame& frame = open_.back();
    if (!frame.is_map) return frame.list.emplace_back(std::move(document));
    frame.has_key = false;
    return frame.map.emplace_back(std::move(frame.key), std::move(document)).second;
  }

  static void refuse_duplicates(const Document::Map& map) {
    std::vector<const Document::Map::value_type*> order;  // equal keys in the file's order
    for (const auto& entry : map) order.push_back(&entry);
    std::stable_sort(order.begin(), order.end(), [](const auto* x, const auto* y) { return x->first < y->first; });
    const auto twice = std::adjacent_find(order.begin(), order.end(),
                                          [](const auto* x, const auto* y) { return x->first == y->first; });
    if (twice == order.end()) return;
    const auto& [name, value] = **std::next(twice);
    refuse(value.place(), fmt::format("key '{}' is given twice", name));
  }

  std::vector<Frame> open_;
  Document root_;
};

// The place of a byte: "<name>:<line>:<column>". If the name ends in a line number, lines are counted from there.
std::string place_of_byte(std::string_view text, std::string_view name, std::size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte, text.size()));
  auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t newline = before.rfind('\n');
  const std::size_t column = newline == std::string_view::npos ? before.size() + 1 : before.size() - newline;
  if (const std::size_t colon = name.rfind(':'); colon != std::string_view::npos) {
    if (const auto first_line = whole<std::uint32_t>(name.substr(colon + 1), 10)) {
      line += *first_line - 1;
      name = name.substr(0, colon);
    }
  }
  return fmt::format("{}:{}:{}", name, line, column);
}

// nlohmann's events carry no position, so places are paths of keys: "run.json: best.seconds".
class JsonEvents : public nlohmann::json_sax<nlohmann::json> {
 public:
  JsonEvents(std::string_view text, std::string_view name) : text_(text), name_(name) {}

  bool null() override { return value({}); }
  bool boolean(bool given) override { return value(given); }
  bool number_integer(number_integer_t given) override { return value(std::int64_t(given)); }
  bool number_unsigned(number_unsigned_t given) override {
    constexpr std::uint64_t largest = std::numeric_limits<std::int64_t>::max();
    return given <= largest ? value(std::int64_t(given)) : value(double(given));
  }
  bool number_float(number_float_t given, const string_t&) override { return value(given); }
  bool string(string_t& given) override { return value(std::move(given)); }
  bool binary(binary_t&) override { return false; }  // never in text
  bool start_object(std::size_t) override { return begin(true); }
  bool start_array(std::size_t) override { return begin(false); }
  bool key(string_t& given) override {
    builder_.key(std::move(given), "");
    return true;
  }
  bool end_object() override { return end(); }
  bool end_array() override { return end(); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while ..."
    std::string_view message = error.what();
    if (const std::size_t end = message.find("] "); end != std::string_view::npos) message.remove_prefix(end + 2);
    if (message.starts_with("parse error at ")) message.remove_prefix(std::min(message.find(": ") + 2, message.size()));
    refuse(place_of_byte(text_, name_, position == 0 ? 0 : position - 1),
           fmt::format("not valid JSON: {}", one_line(message)));
  }

  Document take() { return builder_.take(); }

 private:
  bool value(Document given) {
    builder_.value(std::move(given), place());
    return true;
  }
  bool begin(bool is_map) {
    builder_.begin(is_map, place());
    return true;
  }
  bool end() {
    builder_.end();
    return true;
  }
  std::string place() const {
    if (builder_.depth() == 0) return name_;
    const std::string& outer = builder_.container_place();
    std::string result;
    result.reserve(outer.size() + 24);
    result = outer;
    if (builder_.depth() == 1) result += ": ";
    if (builder_.in_list()) {
      fmt::format_to(std::back_inserter(result), "[{}]", builder_.list_size());
    } else {
      if (builder_.depth() > 1) result += '.';
      result += builder_.pending_key();
    }
    return result;
  }

  std::string_view text_;
  std::string name_;
  Builder builder_;
};

std::int64_t count_nodes(const Document& document) {
  std::int64_t count = 1;
  if (document.is_list()) {
    for (const Document& item : document.as_list()) count += count_nodes(item);
  } else if (document.is_map()) {
    for (const auto& [name, value] : document.as_map()) count += count_nodes(value);
  }
  return count;
}

// Plain (unquoted) scalars by the core schema of YAML 1.2: `yes` and `on` are strings.
Document plain_scalar(const std::string& text) {
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  const bool negative = text.starts_with('-');
  const std::string_view unsigned_text = std::string_view(text).substr(negative || text.starts_with('+') ? 1 : 0);
  const auto begins_with_digit = [](std::string_view part) {
    return !part.empty() && part.front() >= '0' && part.front() <= '9';
  };
  if (begins_with_digit(unsigned_text) ||
      (unsigned_text.starts_with('.') && begins_with_digit(unsigned_text.substr(1)))) {
    const std::string_view number = negative ? std::string_view(text) : unsigned_text;
    if (const auto decimal = whole<std::int64_t>(number, 10)) return *decimal;
    const int base = text.starts_with("0x") ? 16 : text.starts_with("0o") ? 8 : 0;
    if (base != 0) {
      const std::string_view digits = unsigned_text.substr(2);
      // A hash of 64 bits stays a string, which as_u64 reads.
      if (const auto value = whole<std::int64_t>(digits, base); value && !digits.starts_with('-')) return *value;
      return text;
    }
    double value = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (error == std::errc{} && end == number.data() + number.size()) return value;
    return text;
  }
  if (unsigned_text == ".inf" || unsigned_text == ".Inf" || unsigned_text == ".INF") {
    return negative ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  }
  if (text == ".nan" || text == ".NaN" || text == ".NAN") return std::numeric_limits<double>::quiet_NaN();
  return text;
}

class YamlEvents : public YAML::EventHandler {
 public:
  explicit YamlEvents(std::string_view name) : name_(name) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (builder_.awaits_key()) refuse(place(mark), "expected a key, got nothing");
    keep(anchor, builder_.value({}, value_place(mark)));
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (builder_.awaits_key()) refuse(place(mark), "expected a key, got an alias");
    const auto found = anchors_.find(anchor);
    // yaml-cpp refuses unknown names by itself; here the anchor's own node is still open.
    if (found == anchors_.end()) refuse(place(mark), "an alias stands inside the node that it names");
    alias_nodes_ += found->second.nodes;
    if (alias_nodes_ > most_alias_nodes) {
      refuse(place(mark), fmt::format("aliases stand for more than {} nodes", most_alias_nodes));
    }
    // The node keeps the place where it is written: that is where a wrong value must be mended.
    const std::string where = found->second.node.place();
    builder_.value(found->second.node, where);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    if (builder_.awaits_key()) {
      builder_.key(text, place(mark));
      return;
    }
    const bool plain = tag == "?" || tag.empty();
    if (!plain && tag != "!" && tag != "tag:yaml.org,2002:str") refuse_tag(mark, tag);
    keep(anchor, builder_.value(plain ? plain_scalar(text) : Document(text), value_place(mark)));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    begin(false, mark, tag, anchor);
  }
  void OnSequenceEnd() override { end(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    begin(true, mark, tag, anchor);
  }
  void OnMapEnd() override { end(); }

  std::string place(const YAML::Mark& mark) const {
    return fmt::format("{}:{}:{}", name_, mark.line + 1, mark.column + 1);
  }
  Document take() { return builder_.take(); }

 private:
  struct Anchor {
    Document node;
    std::int64_t nodes = 0;
  };

  // A value's place is that of its key: people look for the key in the file, and a block's own mark is its first
  // entry.
  std::string value_place(const YAML::Mark& mark) const {
    return builder_.in_map() ? builder_.pending_key_place() : place(mark);
  }

  void begin(bool is_map, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    if (builder_.awaits_key()) refuse(place(mark), "expected a key, got a list or a map");
    if (!tag.empty() && tag != "?" && tag != "!") refuse_tag(mark, tag);
    builder_.begin(is_map, value_place(mark));
    open_anchors_.push_back(anchor);
  }

  void end() {
    const YAML::anchor_t anchor = open_anchors_.back();
    open_anchors_.pop_back();
    keep(anchor, builder_.end());
  }

  void keep(YAML::anchor_t anchor, const Document& node) {
    if (anchor != 0) anchors_[anchor] = {node, count_nodes(node)};
  }

  [[noreturn]] void refuse_tag(const YAML::Mark& mark, const std::string& tag) const {
    refuse(place(mark), fmt::format("tag '{}' is not supported; remove it", tag));
  }

  std::string name_;
  Builder builder_;
  std::map<YAML::anchor_t, Anchor> anchors_;
  std::vector<YAML::anchor_t> open_anchors_;
  std::int64_t alias_nodes_ = 0;
};

}  // namespace

Document parse_json(std::string_view text, std::string_view name) {
  if (text.starts_with("\x89HDF"))
    refuse(std::string(name), "an HDF5 file, and JSON is expected here; graft inspect describes it");
  JsonEvents events(text, name);
  nlohmann::json::sax_parse(text.begin(), text.end(), &events);
  return events.take();
}

Document parse_yaml(std::string_view text, std::string_view name) {
  // The library takes any bytes, and what is then written would not be read again.
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    if (length == 0)
      refuse(fmt::format("{}:{}", name, 1 + std::count(text.begin(), text.begin() + std::ptrdiff_t(at), '\n')),
             "not UTF-8");
    at += length;
  }
  YamlEvents events(name);
  std::istringstream stream{std::string(text)};
  try {
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(events)) {
      Document empty;
      empty.set_place(fmt::format("{}:1:1", name));
      return empty;
    }
    Document document = events.take();
    YamlEvents rest(name);
    if (parser.HandleNextDocument(rest)) refuse(rest.take().place(), "a second document; expected one in a file");
    return document;
  } catch (const YAML::Exception& error) {
    refuse(events.place(error.mark), fmt::format("not valid YAML: {}", one_line(error.msg)));
  }
}

}  // namespace graft::base
