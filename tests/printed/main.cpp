// Outputs of programs that are made of numbers: units, locales, colours, spreads, several times, JSON, cut lines.
// Nothing is read in them that a person would not read, and what is certain is read.
//
//   test_printed [--outputs N] [--seed S] [--first I]
//
// An output depends on the seed and its number alone: `--seed S --first I --outputs 1` reads output I of that seed.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <exception>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "tasks/printed.h"

namespace graft::tasks {
namespace {

// An output that is made of a number, and what a person would read in it.
class Made {
 public:
  explicit Made(base::Stream& stream) : stream_(stream) {}

  struct Output {
    std::string text, flag;
    std::vector<double> seconds;  // may be read
    bool must_be_read = true;     // otherwise it may be refused
    bool must_be_refused = false;
  };

  Output output() {
    Output out;
    has_unit_in_name_ = pick(4) == 0, flag_unit_ = pick(5), name_unit_ = pick(5), form_ = pick(3),
    list_place_ = pick(6);
    out.flag = flag_unit_ == 4 ? "time" : std::string("time:") + units[flag_unit_].name;
    const std::string before =
        std::vector<std::string>{"", "[INFO] ", "12:03:11 ", "kernel ", "run 3: ", "- "}[pick(6)];
    word_ = std::vector<std::string>{"time", "time", "Time", "TIME"}[pick(4)];
    const std::size_t times = 1 + pick(3);
    noise(out);
    if (pick(8) == 0) {
      out.text += "setup time: 0.25 s\n";
      out.must_be_refused = before == "kernel " || before == "run 3: " || before == "[INFO] ";
    }
    const bool is_list = pick(6) == 0;
    if (is_list) {
      out.text += before + name() + ": [";
      for (std::size_t i = 0; i < times; ++i)
        out.text += (i == 0 ? "" : std::vector<std::string>{" ", ", "}[pick(2)]) + value(out, true);
      out.text += "]" + after() + line_end();
    }
    for (std::size_t i = 0; !is_list && i < times; ++i) {
      const std::string number = value(out, false);
      const std::string separator = std::vector<std::string>{": ", " = ", "=", " ", "\t", " ... ", " -> "}[pick(7)];
      out.text += before + colour(name()) + separator + colour(number) + after() + line_end();
      if (pick(3) == 0) noise(out);
    }
    return out;
  }

 private:
  struct Unit {
    const char* name;
    double seconds;
  };
  static constexpr Unit units[] = {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}, {"", 1}};

  std::size_t pick(int count) { return std::size_t(stream_.below(count)); }
  std::string name() {
    if (!has_unit_in_name_ || name_unit_ == 4) return word_;
    return word_ +
           fmt::format(fmt::runtime(std::vector<std::string>{" ({})", "_{}", " [{}]"}[form_]), units[name_unit_].name);
  }
  std::string colour(const std::string& text) {
    return pick(6) == 0 ? fmt::format("\x1b[1;3{}m{}\x1b[0m", pick(8), text) : text;
  }
  std::string after() {
    return std::vector<std::string>{"", "", ", ok", " (best)", " checksum 42", "; gflops 3.1", "  ", " done."}[pick(8)];
  }
  std::string line_end() { return std::vector<std::string>{"\n", "\n", "\r\n"}[pick(3)]; }
  void noise(Output& out) {
    out.text += std::vector<std::string>{
        "",   "n: 5\n",    "GFLOPS: 12.5\n", "done\n", "timeout 7\n", "time zone UTC\n", "sometime: 4 ms\n",
        "\n", "10%\r50%\r"}[pick(9)];
  }

  // Digits in groups of three.
  static std::string grouped(std::string digits, const std::string& mark) {
    for (std::size_t at = digits.size(); at > 3;) at -= 3, digits.insert(at, mark);
    return digits;
  }

  // "1m30.5s"
  std::string duration(Output& out) {
    const std::int64_t minutes = stream_.below(90), tenths = stream_.below(600);
    out.seconds.push_back(double(minutes) * 60 + double(tenths) / 10);
    return fmt::format("{}m{}.{}s", minutes, tenths / 10, tenths % 10);
  }

  std::string value(Output& out, bool in_list) {
    if (!in_list && !has_unit_in_name_ && pick(12) == 0) return duration(out);
    const std::int64_t whole = stream_.below(std::vector<std::int64_t>{10, 1000, 100000, 10000000}[pick(4)]);
    const std::size_t places = pick(5);
    std::string fraction;
    for (std::size_t i = 0; i < places; ++i) fraction += char('0' + pick(10));
    const std::string digits = std::to_string(whole);
    double number = std::stod(digits + "." + fraction + "0");
    std::string text;
    std::size_t style = pick(9);
    // "63.339" has a point everywhere.
    if (style == 2 && fraction.empty() && digits.size() > 3 && digits.size() <= 6) style = 8;
    const auto with = [&](const std::string& mark, const std::string& point) {
      return grouped(digits, mark) + (fraction.empty() ? "" : point + fraction);
    };
    bool is_certain = true;
    switch (style) {
      case 0:
        text = with(",", "."), is_certain = digits.size() <= 3 || (!fraction.empty() && !in_list);
        break;
      case 1:
        text = with("", ","), is_certain = (fraction.size() != 3 || whole == 0 || digits.size() > 3) && !in_list;
        break;
      case 2:
        text = with(".", ","), is_certain = !in_list && (fraction.size() != 3 || digits.size() > 3) &&
                                            (digits.size() <= 3 || digits.size() > 6 || !fraction.empty());
        break;
      case 3:
        text = with("'", ".");
        break;
      case 4:
        text = with("\xc2\xa0", ","),
        is_certain = !in_list && (fraction.size() != 3 || digits.size() > 3 || whole == 0);
        break;
      case 5:
        text = fmt::format("{:.4e}", number), number = std::stod(text);
        break;
      case 6: {
        text = fmt::format("{:.4e}", number), number = std::stod(text);
        text.replace(text.find('e'), 1, "D");
        break;
      }
      case 7:
        text = fmt::format("{:a}", number);
        break;
      default:
        text = with("", ".");
    }
    if (number == 0 && !in_list) is_certain = true;
    const std::size_t place = in_list ? list_place_ : pick(6);
    std::size_t unit = has_unit_in_name_ && name_unit_ != 4 ? name_unit_ : flag_unit_ == 4 ? 0 : flag_unit_;
    if (place < 4 && !(has_unit_in_name_ && name_unit_ != 4)) {
      unit = pick(4);
      const std::string spread = std::vector<std::string>{" \xc2\xb1 0.5", " +/- 1", " \xc2\xb1  0.25"}[pick(3)];
      if (!in_list && pick(10) == 0) text += spread;
      text += std::vector<std::string>{" ", "", "\xc2\xa0", " "}[place] + units[unit].name;
      if (pick(10) == 0) text += std::vector<std::string>{"/iter", "/op", " per loop"}[pick(3)];
    }
    out.must_be_read = out.must_be_read && is_certain;
    out.seconds.push_back(number * units[unit].seconds);
    return text;
  }

  base::Stream& stream_;
  std::string word_;
  bool has_unit_in_name_ = false;
  std::size_t flag_unit_ = 0, name_unit_ = 0, form_ = 0, list_place_ = 0;
};

struct Counts {
  std::int64_t read = 0, refused = 0, cut = 0, cut_read = 0, mistakes = 0;
};

bool is_near(double a, double b) {
  return std::abs(a - b) <= 1e-9 * std::abs(b);
}

// What is wrong with what was found; "" if it is what a person reads.
std::string mistake_in(const PrintedMeasure::Found& found, const Made::Output& made) {
  if (found.values.empty() != !found.problem.empty()) return "values and a problem";
  if (found.values.empty()) return made.must_be_refused || !made.must_be_read ? "" : "is refused: " + found.problem;
  if (made.must_be_refused) return "is read, and is in doubt";
  return std::equal(found.values.begin(), found.values.end(), made.seconds.begin(), made.seconds.end(), is_near)
             ? ""
             : fmt::format("is read as {}", fmt::join(found.values, ", "));
}

// The same for the beginning of an output: it is read so, or not at all, but for a number that is itself cut.
std::string mistake_in_cut(const PrintedMeasure::Found& found, const std::vector<PrintedLine>& lines,
                           const Made::Output& made) {
  const auto is_of_word = [](char c) { return std::isalnum((unsigned char)c) != 0; };
  for (std::size_t v = 0; v < found.values.size(); ++v) {
    if (v < made.seconds.size() && is_near(found.values[v], made.seconds[v])) continue;
    const PrintedPart& last = found.parts.back();
    const std::string after = lines[last.line].text.substr(last.end);
    const bool is_cut = last.line + 1 == lines.size() && std::none_of(after.begin(), after.end(), is_of_word);
    if (v + 1 < found.values.size() || !is_cut) return fmt::format("is read as {}", fmt::join(found.values, ", "));
  }
  return "";
}

void check(std::uint64_t seed, std::int64_t number, Counts& counts) {
  base::Stream stream(seed, fmt::format("output {}", number));
  const Made::Output made = Made(stream).output();
  const PrintedMeasure time(made.flag, "time", true);
  const auto tell = [&](const std::string& mistake, const std::string& text) {
    if (mistake.empty()) return;
    ++counts.mistakes;
    std::printf("--seed %llu --first %lld --outputs 1 with %s: %s:\n%s\n", (unsigned long long)seed, (long long)number,
                made.flag.c_str(), mistake.c_str(), text.c_str());
  };
  const PrintedMeasure::Found found = time.find(printed_lines(made.text));
  tell(mistake_in(found, made), made.text);
  ++(found.values.empty() ? counts.refused : counts.read);
  if (found.values.empty() || made.text.find("setup") != std::string::npos) return;
  const std::string cut = made.text.substr(0, std::size_t(stream.below(std::int64_t(made.text.size()) + 1)));
  const std::vector<PrintedLine> lines = printed_lines(cut);
  const PrintedMeasure::Found rest = time.find(lines);
  tell(mistake_in_cut(rest, lines, made), cut + "\n(cut)");
  ++counts.cut;
  counts.cut_read += !rest.values.empty();
}

int run(const std::vector<std::string>& words) {
  std::map<std::string, std::int64_t> options = {{"--outputs", 20000}, {"--seed", 7}, {"--first", 0}};
  for (std::size_t i = 0; i < words.size(); i += 2) {
    const auto option = options.find(words[i]);
    if (option == options.end() || i + 1 == words.size())
      throw base::UserError(words[i], "expected --outputs N, --seed S or --first I");
    option->second = base::Cursor(words[i + 1], words[i]).integer();
  }
  const std::int64_t outputs = options.at("--outputs"), first = options.at("--first");
  Counts counts;
  for (std::int64_t i = 0; i < outputs; ++i) check(std::uint64_t(options.at("--seed")), first + i, counts);
  std::printf("%lld outputs: %lld read, %lld refused; %lld beginnings of them, %lld read; %lld mistakes\n",
              (long long)outputs, (long long)counts.read, (long long)counts.refused, (long long)counts.cut,
              (long long)counts.cut_read, (long long)counts.mistakes);
  const bool has_both = outputs < 1000 || (counts.read > outputs / 2 && counts.refused > outputs / 100);
  return counts.mistakes == 0 && has_both ? 0 : 1;
}

}  // namespace
}  // namespace graft::tasks

int main(int argc, char** argv) {
  try {
    return graft::tasks::run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 2;
  }
}
