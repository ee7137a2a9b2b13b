#include "cli/report/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "base/text.h"

namespace graft::cli {

namespace {

struct Colour {
  const char *name, *light, *dark;
};
// Those of series are Okabe and Ito's, which colour-blind readers can distinguish, a little lighter on dark
// backgrounds.
constexpr Colour colours[] = {{"ground", "#fdfdfc", "#12161c"},
                              {"card", "#fff", "#1a2029"},
                              {"ink", "#1c2430", "#e6e9ee"},
                              {"soft", "#5d6877", "#9aa5b3"},
                              {"line", "#dfe3e8", "#303946"},
                              {"c0", "#0072b2", "#5ab4e8"},
                              {"c1", "#d55e00", "#ff8a4c"},
                              {"c2", "#009e73", "#3fd0a5"},
                              {"c3", "#b4478d", "#e58cc4"},
                              {"c4", "#b8860b", "#e8bf45"},
                              {"c5", "#3f88c5", "#8fc1ff"},
                              {"c6", "#6b4fa0", "#b79cf0"},
                              {"c7", "#777", "#aaa"}};

std::string variables(bool dark) {
  std::string text = ":root{";
  for (const Colour& colour : colours) text += fmt::format("--{}:{};", colour.name, dark ? colour.dark : colour.light);
  return text + "}";
}

// The text with colours in place of variables.
std::string coloured(std::string text, bool dark) {
  for (const Colour& colour : colours) {
    const std::string variable = fmt::format("var(--{})", colour.name);
    for (std::size_t at = 0; (at = text.find(variable, at)) != std::string::npos;)
      text.replace(at, variable.size(), dark ? colour.dark : colour.light);
  }
  return text;
}

}  // namespace

std::string palette_style() {
  return variables(false) + "\n@media (prefers-color-scheme:dark){" + variables(true) + "}\n";
}

const char* const plot_style =
    ".grid{stroke:var(--line)}.mark{stroke:var(--soft)}\n"
    ".cell{stroke:var(--card)}.part{stroke:var(--card);stroke-width:.6;fill-opacity:.6}.value{fill:var(--ink);font-"
    "size:11px}\n"
    ".tick{fill:var(--soft);font-size:12px}.label{fill:var(--ink);font-size:13px}\n"
    ".line{fill:none;stroke-width:2.2;stroke-linejoin:round}.thin{stroke-width:1;opacity:.55}.name{font-size:12px}."
    "dashed{stroke-dasharray:6 "
    "4}.band{opacity:.13}.faint{opacity:.35}\n";

namespace {

constexpr double kWidth = 720, kHeight = 340;
constexpr double kLeft = 68, kRight = 16;
constexpr double kDecades = 2.5;

// A plot's size; letters have the same size in each, so a small one has room for fewer ticks.
struct Layout {
  double width, height, left, right, top, bottom;
  int x_ticks, y_ticks;
  double x_decades;  // a logarithmic x axis of fewer decades shows 2 and 5 times the powers of ten, too
  const char* name;  // of its parts that others refer to
  double names;      // of lines, at their ends: their width; 0: none
};
constexpr Layout kWide{kWidth, kHeight, kLeft, kRight, 12, 52, 8, 6, kDecades, "w", 0};
constexpr Layout kNarrow{390, 290, 62, 10, 10, 50, 4, 5, 1.5, "n", 0};

// Heat maps: the width of a letter of a tick, and how strong the colour of a shade of 1 is: text stays readable on it.
constexpr double kLetter = 7, kStrongest = 0.6;
constexpr double kLineOfText = 14;  // the height of one

// Data to pixels.
class Scale {
 public:
  Scale(double low, double high, double from, double to, bool logarithmic)
      : low_(logarithmic ? std::log10(low) : low),
        high_(logarithmic ? std::log10(high) : high),
        from_(from),
        to_(to),
        logarithmic_(logarithmic) {}
  double operator()(double value) const {
    const double v = logarithmic_ ? std::log10(value) : value;
    return from_ + (v - low_) / (high_ - low_) * (to_ - from_);
  }

 private:
  double low_, high_, from_, to_;
  bool logarithmic_;
};

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();
  void take(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

std::string tick_text(double value) {
  return fmt::format("{:.6g}", std::abs(value) < 1e-12 ? 0.0 : value);
}

std::string path_of(const Series& series, const Scale& x, const Scale& y) {
  std::string path;
  double before = 0;
  for (const Point& point : series.points) {
    if (path.empty()) {
      path = fmt::format("M{:.1f} {:.1f}", x(point.x), y(point.y));
    } else {
      if (series.steps) path += fmt::format("L{:.1f} {:.1f}", x(point.x), y(before));
      path += fmt::format("L{:.1f} {:.1f}", x(point.x), y(point.y));
    }
    before = point.y;
  }
  return path;
}

constexpr double kMarker = 4;  // half a marker's width

// A circle, square, triangle, diamond, cross, triangle on its tip, plus.
constexpr int kMarkers = 7;
std::string marker_path(int marker, double x, double y) {
  constexpr double r = kMarker, bar = 1.3;
  switch (marker % kMarkers) {
    case 1:
      return fmt::format("M{:.1f} {:.1f}h{}v{}h-{}Z", x - r + 0.4, y - r + 0.4, 2 * r - 0.8, 2 * r - 0.8, 2 * r - 0.8);
    case 2:
      return fmt::format("M{:.1f} {:.1f}L{:.1f} {:.1f}H{:.1f}Z", x, y - r - 0.5, x + r + 0.5, y + r - 0.5, x - r - 0.5);
    case 3:
      return fmt::format("M{:.1f} {:.1f}l{} {}l-{} {}l-{} -{}Z", x, y - r - 1, r + 1, r + 1, r + 1, r + 1, r + 1,
                         r + 1);
    case 4:  // two bars along the diagonals
      return fmt::format(
          "M{:.1f} {:.1f}l{d} -{d}L{:.1f} {:.1f}l-{d} {d}ZM{:.1f} {:.1f}l{d} {d}L{:.1f} {:.1f}l-{d} -{d}Z", x - r,
          y - r + bar, x + r, y + r - bar, x - r, y + r - bar, x + r, y - r + bar, fmt::arg("d", bar));
    case 5:
      return fmt::format("M{:.1f} {:.1f}L{:.1f} {:.1f}H{:.1f}Z", x, y + r + 0.5, x + r + 0.5, y - r + 0.5, x - r - 0.5);
    case 6:
      return fmt::format("M{:.1f} {:.1f}h{}v{}h{}v{}h-{}v{}h-{}v-{}h-{}v-{}h{}Z", x - bar, y - r, 2 * bar, r - bar,
                         r - bar, 2 * bar, r - bar, r - bar, 2 * bar, r - bar, r - bar, 2 * bar, r - bar);
    default:
      return fmt::format("M{:.1f} {:.1f}a{r} {r} 0 1 0 {d} 0a{r} {r} 0 1 0 -{d} 0Z", x - r + 0.5, y,
                         fmt::arg("r", r - 0.5), fmt::arg("d", 2 * r - 1));
  }
}

std::string band_of(const Series& series, const Scale& x, const Scale& y) {
  std::string path;
  for (const Point& point : series.points) {
    if (std::isfinite(point.high))
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x(point.x), y(point.high));
  }
  for (auto point = series.points.rbegin(); point != series.points.rend(); ++point) {
    if (std::isfinite(point->low)) path += fmt::format("L{:.1f} {:.1f}", x(point->x), y(point->low));
  }
  return path.empty() ? path : path + "Z";
}

std::vector<double> values_of(const Plot& plot) {
  std::vector<double> values;
  for (const Series& series : plot.series) {
    for (const Point& point : series.points) values.push_back(point.y);
  }
  return values;
}

bool leaves_out_far(const Plot& plot) {
  const std::vector<double> values = values_of(plot);
  if (!plot.leave_out_far || plot.log_y || values.empty()) return false;
  const auto [low, high] = near_limits(values);
  return high - low < 0.5 * (high - *std::min_element(values.begin(), values.end()));
}

// The least value of a series if it leaves the frame.
std::optional<double> left_out(const Plot& plot, const Series& series) {
  if (!leaves_out_far(plot) || series.points.empty()) return std::nullopt;
  double least = std::numeric_limits<double>::infinity();
  for (const Point& point : series.points) least = std::min(least, point.y);
  return least < near_limits(values_of(plot)).first ? std::optional(least) : std::nullopt;
}

int colour_of(const Series& series) {
  return series.thin ? series_colours - 1 : series.colour;
}

const char* class_of(const Series& series) {
  return series.thin ? " thin" : series.dashed ? " dashed" : "";
}

// An entry of the legend: what is drawn, and for whom.
struct LegendEntry {
  std::string text;
  const Series* series;
};
std::vector<LegendEntry> legend_of(const Plot& plot, bool named) {
  std::vector<LegendEntry> entries;
  std::string thin;
  const Series* first_thin = nullptr;
  for (const Series& series : plot.series) {
    if (series.dots_only) continue;
    const std::optional<double> least = left_out(plot, series);
    const std::string text = least ? fmt::format("{} (\u25be from {:.3g})", series.name, *least) : series.name;
    if (series.thin) {
      if (first_thin == nullptr) first_thin = &series;
      thin += (thin.empty() ? "" : ", ") + text;
    } else if (named || least) {
      entries.push_back({text, &series});
    }
  }
  if (first_thin != nullptr) entries.push_back({thin, first_thin});
  return entries;
}

// Which values an axis of a plot shows.
struct Ranges {
  Range x, y;
  bool is_cut = false;  // values far below are drawn at the edge
};

// None for a plot without points.
std::optional<Ranges> ranges_of(const Plot& plot) {
  Ranges out;
  Range &xs = out.x, &ys = out.y;
  for (const Series& series : plot.series) {
    for (const Point& point : series.points) {
      xs.take(point.x);
      ys.take(point.y);
      if (series.band && !series.thin) {
        ys.take(point.low);
        ys.take(point.high);
      }
    }
  }
  if (xs.low > xs.high) return std::nullopt;
  out.is_cut = leaves_out_far(plot);
  if (out.is_cut) std::tie(ys.low, ys.high) = near_limits(values_of(plot));
  if (plot.x_from_zero && !plot.log_x) xs.take(0);
  if (xs.low == xs.high) xs.high += plot.log_x ? xs.high : 1;
  if (plot.log_y) {
    const double margin = std::pow(std::max(ys.high / ys.low, 1.2), 0.05);
    ys.low /= margin;
    ys.high *= margin;
  } else {
    const double margin = ys.high > ys.low ? 0.06 * (ys.high - ys.low) : std::max(0.1 * std::abs(ys.high), 1e-3);
    ys.low -= margin;
    ys.high += margin;
  }
  return out;
}

// A plot in its frame, part by part, in the order in which they are drawn.
class Drawing {
 public:
  Drawing(const Plot& plot, const Layout& layout, const Ranges& ranges)
      : plot_(plot),
        layout_(layout),
        ranges_(ranges),
        x_(ranges.x.low, ranges.x.high, left_, right_, plot.log_x),
        y_(ranges.y.low, ranges.y.high, bottom_, layout.top, plot.log_y) {}

  std::string axes() const {
    const Range &xs = ranges_.x, &ys = ranges_.y;
    std::string out;
    for (const double tick :
         plot_.log_y ? log_ticks(ys.low, ys.high, kDecades) : linear_ticks(ys.low, ys.high, layout_.y_ticks)) {
      out += fmt::format("<line class=\"grid\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>", left_, right_,
                         y_(tick), y_(tick));
      out += fmt::format("<text class=\"tick\" text-anchor=\"end\" x=\"{}\" y=\"{:.1f}\">{}</text>\n", left_ - 8,
                         y_(tick) + 4, tick_text(tick));
    }
    for (const double tick :
         plot_.log_x ? log_ticks(xs.low, xs.high, layout_.x_decades) : linear_ticks(xs.low, xs.high, layout_.x_ticks)) {
      out += fmt::format("<line class=\"mark\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\"/>", x_(tick),
                         bottom_, bottom_ + 5);
      out += fmt::format("<text class=\"tick\" text-anchor=\"middle\" x=\"{:.1f}\" y=\"{}\">{}</text>\n", x_(tick),
                         bottom_ + 19, tick_text(tick));
    }
    out += fmt::format("<line class=\"mark\" x1=\"{}\" x2=\"{}\" y1=\"{}\" y2=\"{}\"/>\n", left_, right_, bottom_,
                       bottom_);
    out += fmt::format("<text class=\"label\" text-anchor=\"middle\" x=\"{:.1f}\" y=\"{}\">{}</text>\n",
                       (left_ + right_) / 2, layout_.height - 10, escaped(plot_.x_label));
    return out + fmt::format(
                     "<text class=\"label\" text-anchor=\"middle\" transform=\"translate(16 {:.1f}) "
                     "rotate(-90)\">{}</text>\n",
                     (layout_.top + bottom_) / 2, escaped(plot_.y_label));
  }

  std::string lines() const {
    std::string out;
    if (ranges_.is_cut) {
      out += fmt::format("<clipPath id=\"{}\"><rect x=\"0\" y=\"0\" width=\"{}\" height=\"{}\"/></clipPath>\n",
                         layout_.name, layout_.width, bottom_);
      out += fmt::format("<g clip-path=\"url(#{})\">\n", layout_.name);
    }
    for (const Series& series : plot_.series) {
      const std::string band = series.band && !series.thin ? band_of(series, x_, y_) : "";
      if (!band.empty())
        out += fmt::format("<path class=\"band\" style=\"fill:var(--c{})\" d=\"{}\"/>\n", series.colour, band);
    }
    for (const bool thin : {true, false}) {  // in the background
      for (const Series& series : plot_.series) {
        if (series.dots_only || series.thin != thin) continue;
        out += fmt::format("<path class=\"line{}\" style=\"stroke:var(--c{})\" d=\"{}\"><title>{}</title></path>\n",
                           class_of(series), colour_of(series), path_of(series, x_, y_), escaped(series.name));
      }
    }
    return ranges_.is_cut ? out + "</g>\n" : out;
  }

  std::string dots() const {
    std::string out;
    for (const Series& series : plot_.series) {
      for (const Point& point : series.points) out += dot(series, point);
    }
    return out;
  }

  // The series' names, next to the ends of their lines.
  std::string names() const {
    std::vector<const Series*> named;
    std::vector<double> heights;
    for (const Series& series : plot_.series) {
      if (series.dots_only || series.thin || series.points.empty()) continue;
      named.push_back(&series);
      heights.push_back(std::min(y_(series.points.back().y), bottom_));
    }
    const std::vector<double> places = spread_out(heights, kLineOfText, layout_.top + 4, bottom_ - 4);
    std::string out;
    for (std::size_t i = 0; i < named.size(); ++i) {
      const double end = x_(named[i]->points.back().x) + kMarker + 2;
      out += fmt::format(
          "<path class=\"mark\" style=\"stroke:var(--c{})\" d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\"/><text class=\"name\" "
          "style=\"fill:var(--c{})\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
          named[i]->colour, end, heights[i], right_ + 14, places[i], named[i]->colour, right_ + 17, places[i] + 4,
          escaped(named[i]->name));
    }
    return out;
  }

 private:
  std::string dot(const Series& series, const Point& point) const {
    const std::string title =
        fmt::format("<title>{}: {:.6g} at {:.6g}</title>", escaped(series.name), point.y, point.x);
    if (ranges_.is_cut && point.y < ranges_.y.low)
      return fmt::format("<path class=\"dot\" style=\"fill:var(--c{})\" d=\"M{:.1f} {:.1f}h9l-4.5 6Z\">{}</path>\n",
                         colour_of(series), x_(point.x) - 4.5, bottom_ - 7, title);
    if (!series.dots_only && series.marker != 0)
      return fmt::format("<path class=\"dot\" style=\"fill:var(--c{})\" d=\"{}\">{}</path>\n", series.colour,
                         marker_path(series.marker, x_(point.x), y_(point.y)), title);
    if (series.thin) return "";
    return fmt::format(
        "<circle class=\"{}\" style=\"fill:var(--c{})\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\">{}</circle>\n",
        series.dots_only ? "faint" : "dot", series.colour, x_(point.x), y_(point.y), series.dots_only ? 2.5 : 3.5,
        title);
  }

  const Plot& plot_;
  const Layout& layout_;
  const Ranges ranges_;
  const double left_ = layout_.left, right_ = layout_.width - layout_.right, bottom_ = layout_.height - layout_.bottom;
  const Scale x_, y_;
};

// The drawing alone; empty text for a plot without points. `inside`: what is drawn first, `attributes` of the svg;
// `height`: of the whole, with what is drawn below the plot.
std::string drawing(const Plot& plot, const std::string& caption, const Layout& layout, double height,
                    const std::string& attributes, const std::string& inside) {
  const std::optional<Ranges> ranges = ranges_of(plot);
  if (!ranges) return "";
  const Drawing parts(plot, layout, *ranges);
  return fmt::format("<svg{} viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n{}", attributes, layout.width,
                     height, escaped(caption), inside) +
         parts.axes() + parts.lines() + parts.dots() + (layout.names > 0 ? parts.names() : "") + "</svg>\n";
}

std::string drawing(const Bar& bar, const std::string& caption, const Layout& layout, const char* shown) {
  constexpr double left = 8, top = 8, thickness = 54, bottom = top + thickness, height = bottom + 50;
  const double right = layout.width - layout.right;
  double length = 0;
  for (const Bar::Part& part : bar.parts) length += part.length;
  if (!(length > 0)) return "";
  const Scale x(0, length, left, right, false);
  std::string out = fmt::format("<svg class=\"{}\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n", shown,
                                layout.width, height, escaped(caption));
  double begin = 0;
  for (const Bar::Part& part : bar.parts) {
    const double from = x(begin), width = x(begin + part.length) - from;
    begin += part.length;
    if (!(part.length > 0)) continue;
    out += fmt::format(
        "<g><rect class=\"part\" style=\"fill:var(--c{})\" x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\"/>",
        part.colour, from, top, width, thickness);
    // A text along the bar where it fits, else upright.
    const double letters = kLetter * double(part.text.size()) + 8;
    if (letters <= width)
      out += fmt::format("<text class=\"value\" text-anchor=\"middle\" x=\"{:.1f}\" y=\"{}\">{}</text>",
                         from + width / 2, top + thickness / 2 + 4, escaped(part.text));
    else if (letters <= thickness && width >= kLineOfText)
      out += fmt::format(
          "<text class=\"value\" text-anchor=\"middle\" transform=\"translate({:.1f} {}) rotate(-90)\">{}</text>",
          from + width / 2 + 4, top + thickness / 2, escaped(part.text));
    out += fmt::format("<title>{}</title></g>\n", escaped(part.tooltip));
  }
  for (const double tick : linear_ticks(0, length, layout.x_ticks)) {
    out += fmt::format("<line class=\"mark\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\"/>", x(tick), bottom,
                       bottom + 5);
    out += fmt::format("<text class=\"tick\" text-anchor=\"{}\" x=\"{:.1f}\" y=\"{}\">{}</text>\n",
                       tick > 0 ? "middle" : "start", tick > 0 ? x(tick) : 0, bottom + 19, tick_text(tick));
  }
  return out + fmt::format("<text class=\"label\" text-anchor=\"middle\" x=\"{:.1f}\" y=\"{}\">{}</text>\n</svg>\n",
                           (left + right) / 2, height - 8, escaped(bar.label));
}

std::string legend_item(const std::string& name, int colour, bool dashed) {
  return fmt::format("<li><span{} style=\"color:var(--c{})\"></span>{}</li>", dashed ? " class=\"dashes\"" : "", colour,
                     escaped(name));
}

std::int64_t shown_series(const Plot& plot) {
  return std::count_if(plot.series.begin(), plot.series.end(), [](const Series& s) { return !s.dots_only; });
}

}  // namespace

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::pair<double, double> near_limits(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto quarter = [&](std::size_t i) { return values[i * (values.size() - 1) / 4]; };
  const double fence = quarter(1) - (quarter(3) - quarter(1));
  return {*std::lower_bound(values.begin(), values.end(), fence), values.back()};
}

void distinguish(Plot& plot, const std::vector<std::string>& first) {
  constexpr double along = 0.002;
  std::vector<Series*> chosen, rest;
  const auto take = [&](Series& series) {
    if (int(chosen.size()) < series_colours - 1) chosen.push_back(&series);
  };
  for (Series& series : plot.series) {
    if (std::find(first.begin(), first.end(), series.name) != first.end()) take(series);
  }
  for (Series& series : plot.series) {
    if (std::find(chosen.begin(), chosen.end(), &series) == chosen.end()) rest.push_back(&series);
  }
  std::stable_sort(rest.begin(), rest.end(),
                   [](const Series* a, const Series* b) { return a->points.back().y > b->points.back().y; });
  const bool all_fit = int(plot.series.size()) <= series_colours - 1;
  for (Series* const series : rest) {
    const bool known = std::any_of(chosen.begin(), chosen.end(), [&](const Series* other) {
      return std::equal(series->points.begin(), series->points.end(), other->points.begin(), other->points.end(),
                        [](const Point& a, const Point& b) { return std::abs(a.y - b.y) < along; });
    });
    if (all_fit || !known) take(*series);
  }
  int colour = 0;
  for (Series& series : plot.series) {
    series.thin = std::find(chosen.begin(), chosen.end(), &series) == chosen.end();
    series.colour = series.marker = series.thin ? 0 : colour++;
  }
}

std::vector<double> spread_out(const std::vector<double>& heights, double apart, double low, double high) {
  // Neighbours that are too near join a block, which is centred at the mean of their heights.
  struct Block {
    double sum = 0, count = 0;
  };
  std::vector<std::size_t> order(heights.size());
  std::iota(order.begin(), order.end(), std::size_t(0));
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return heights[a] < heights[b]; });
  const auto top = [&](const Block& block) {
    const double half = apart * (block.count - 1) / 2, centre = block.sum / block.count;
    return std::max(std::min(centre + half, high) - 2 * half, low);
  };
  std::vector<Block> blocks;
  for (const std::size_t i : order) {
    blocks.push_back({heights[i], 1});
    while (blocks.size() > 1) {
      const Block last = blocks.back(), before = blocks[blocks.size() - 2];
      if (top(before) + apart * before.count <= top(last)) break;
      blocks.pop_back();
      blocks.back() = {before.sum + last.sum, before.count + last.count};
    }
  }
  std::vector<double> out(heights.size());
  std::size_t next = 0;
  for (const Block& block : blocks) {
    for (int i = 0; i < int(block.count); ++i) out[order[next++]] = top(block) + apart * i;
  }
  return out;
}

std::vector<double> linear_ticks(double low, double high, int count) {
  const double raw = (high - low) / count;
  const double power = std::pow(10, std::floor(std::log10(raw)));
  double step = 10 * power;
  for (const double nice : {1.0, 2.0, 5.0}) {
    if (nice * power >= raw) {
      step = nice * power;
      break;
    }
  }
  std::vector<double> ticks;
  for (double k = std::ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; ++k) ticks.push_back(k * step);
  return ticks;
}

std::vector<double> log_ticks(double low, double high, double decades) {
  const bool few = std::log10(high / low) < decades;
  std::vector<double> ticks;
  for (double decade = std::floor(std::log10(low)); decade <= std::ceil(std::log10(high)); ++decade) {
    for (const double nice : {1.0, 2.0, 5.0}) {
      const double value = nice * std::pow(10, decade);
      if ((few || nice == 1.0) && value >= low * (1 - 1e-9) && value <= high * (1 + 1e-9)) ticks.push_back(value);
    }
  }
  return ticks;
}

std::string figure(const HeatMap& map, const std::string& caption) {
  if (map.rows.empty() || map.columns.empty()) return "";
  const auto widest = [](const std::vector<std::string>& names) {
    std::size_t most = 0;
    for (const std::string& name : names) most = std::max(most, name.size());
    return kLetter * double(most);
  };
  const double left = widest(map.rows) + 14, top = widest(map.columns) + (map.label.empty() ? 14 : 34);
  const double side = std::min(52.0, (kWidth - left - kRight) / double(map.columns.size()));
  const double line = std::min(side, 30.0);
  const double bottom = top + line * double(map.rows.size());
  std::string out =
      fmt::format("<figure class=\"map\">\n<svg viewBox=\"0 0 {} {:.0f}\" role=\"img\" aria-label=\"{}\">\n", kWidth,
                  bottom + 8, escaped(caption));
  for (std::size_t c = 0; c < map.columns.size(); ++c) {
    const double x = left + side * (double(c) + 0.5) + 4;
    out += fmt::format("<text class=\"tick\" transform=\"translate({:.1f} {:.1f}) rotate(-90)\">{}</text>\n", x,
                       top - 6, escaped(map.columns[c]));
  }
  for (std::size_t r = 0; r < map.rows.size(); ++r) {
    const double y = top + line * double(r);
    out += fmt::format("<text class=\"tick\" text-anchor=\"end\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", left - 7,
                       y + line / 2 + 4, escaped(map.rows[r]));
    for (std::size_t c = 0; c < map.columns.size(); ++c) {
      const HeatMap::Cell& cell = map.cells[r][c];
      const double x = left + side * double(c);
      if (cell.text.empty()) continue;
      out += fmt::format(
          "<g><rect class=\"cell\" style=\"fill:var(--c{});fill-opacity:{:.2f}\" x=\"{:.1f}\" y=\"{:.1f}\" "
          "width=\"{:.1f}\" "
          "height=\"{:.1f}\"/><text class=\"value\" text-anchor=\"middle\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>"
          "<title>{}</title></g>\n",
          cell.shade < 0 ? map.negative_colour : map.colour, kStrongest * std::min(std::abs(cell.shade), 1.0), x, y,
          side, line, x + side / 2, y + line / 2 + 4, escaped(cell.text), escaped(cell.tooltip));
    }
  }
  if (!map.label.empty()) {
    out += fmt::format("<text class=\"label\" x=\"4\" y=\"14\">{}</text>\n", escaped(map.label));
  }
  return out + fmt::format("</svg>\n<figcaption>{}</figcaption>\n</figure>\n", escaped(caption));
}

std::string figure(const Bar& bar, const std::string& caption) {
  std::string out = drawing(bar, caption, kWide, "wide");
  if (out.empty()) return out;
  out = "<figure>\n" + out + drawing(bar, caption, kNarrow, "narrow") + "<ul class=\"legend\">";
  for (const auto& [name, colour] : bar.legend) out += legend_item(name, colour, false);
  return out + fmt::format("</ul>\n<figcaption>{}</figcaption>\n</figure>\n", escaped(caption));
}

std::string figure(const Plot& plot, const std::string& caption) {
  std::string out = drawing(plot, caption, kWide, kWide.height, " class=\"wide\"", "");
  if (out.empty()) return out;
  out = "<figure>\n" + out + drawing(plot, caption, kNarrow, kNarrow.height, " class=\"narrow\"", "");
  if (shown_series(plot) > 1) {
    out += "<ul class=\"legend\">";
    for (const LegendEntry& entry : legend_of(plot, true))
      out += legend_item(entry.text, colour_of(*entry.series), entry.series->dashed);
    out += "</ul>\n";
  }
  return out + fmt::format("<figcaption>{}</figcaption>\n</figure>\n", escaped(caption));
}

std::string Figures::add(const std::string& kind, const Plot& plot, const std::string& caption) {
  std::string shown = figure(plot, caption);
  if (!shown.empty()) files_[fmt::format("{}-{}.svg", kind, ++of_kind_[kind])] = svg_file(plot, caption);
  return shown;
}

namespace {

// A text as long as several lines, broken between its words.
std::vector<std::string> broken_to(const std::string& text, double width) {
  std::vector<std::string> lines{""};
  for (const std::string_view word : base::split(text, ' ')) {
    std::string& last = lines.back();
    if (!last.empty() && kLetter * double(last.size() + 1 + word.size()) > width) {
      lines.emplace_back(word);
    } else {
      last += (last.empty() ? "" : " ") + std::string(word);
    }
  }
  return lines;
}

// The legend below the plot; `y` is moved to its end.
std::string legend_below(const std::vector<LegendEntry>& entries, double& y) {
  constexpr double line = 20, sample = 21;  // heights and widths
  std::string legend;
  double x = kLeft;
  y += line / 2;
  const auto next_line = [&] { x = kLeft, y += line; };
  for (const LegendEntry& entry : entries) {
    const Series& series = *entry.series;
    const std::vector<std::string> lines = broken_to(entry.text, kWidth - kLeft - sample);
    const double width = 38 + kLetter * double(lines.front().size());
    if (x > kLeft && (x + width > kWidth || lines.size() > 1)) next_line();
    legend += fmt::format("<path class=\"line{}\" style=\"stroke:var(--c{})\" d=\"M{:.0f} {:.0f}h16\"/>",
                          class_of(series), colour_of(series), x, y + 6);
    if (series.marker != 0 && !series.thin)
      legend += fmt::format("<path class=\"dot\" style=\"fill:var(--c{})\" d=\"{}\"/>", series.colour,
                            marker_path(series.marker, x + 8, y + 6));
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (i > 0) next_line();
      legend += fmt::format("<text class=\"tick\" x=\"{:.0f}\" y=\"{:.0f}\">{}</text>\n", x + sample, y + 10,
                            escaped(lines[i]));
    }
    x += width;
    if (lines.size() > 1) next_line();
  }
  if (!entries.empty() && x > kLeft) y += line;
  return legend;
}

// Styles that use classes in place of variables, which programs that draw SVG do not know, and the background.
std::string style_of_file(double height) {
  std::string classes;
  for (int c = 0; c < series_colours; ++c)
    classes += fmt::format(".s{0}{{stroke:var(--c{0})}}.f{0}{{fill:var(--c{0})}}", c);
  const std::string rules = fmt::format(".card{{fill:var(--card)}}\n{}{}\n", plot_style, classes);
  return fmt::format(
      "<style>svg{{font-family:system-ui,\"Segoe UI\",Roboto,\"DejaVu Sans\",sans-serif}}\n{}@media "
      "(prefers-color-scheme:dark){{\n{}}}</style>\n<rect class=\"card\" width=\"{}\" height=\"{}\"/>\n",
      coloured(rules, false), coloured(rules, true), kWidth, height);
}

std::string with_classes(std::string drawn) {
  for (int c = 0; c < series_colours; ++c) {
    for (const auto& [property, letter] : {std::pair{"stroke", 's'}, {"fill", 'f'}}) {
      const std::string inline_style = fmt::format("\" style=\"{}:var(--c{})\"", property, c);
      const std::string in_class = fmt::format(" {}{}\"", letter, c);
      for (std::size_t at = 0; (at = drawn.find(inline_style, at)) != std::string::npos;)
        drawn.replace(at, inline_style.size(), in_class);
    }
  }
  return drawn;
}

}  // namespace

std::string svg_file(const Plot& plot, const std::string& caption) {
  Layout layout = kWide;
  const bool has_several = shown_series(plot) > 1;
  if (plot.name_at_end && has_several) {
    for (const Series& series : plot.series) {
      if (!series.thin && !series.dots_only)
        layout.names = std::max(layout.names, kLetter * double(series.name.size()) + 20);
    }
    layout.right += layout.names;
  }
  double height = kHeight;
  const std::string legend =
      legend_below(has_several ? legend_of(plot, layout.names == 0) : std::vector<LegendEntry>(), height);
  return with_classes(drawing(plot, caption, layout, height,
                              fmt::format(" xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\"", kWidth),
                              style_of_file(height) + legend));
}

}  // namespace graft::cli
