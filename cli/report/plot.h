// Line plots, scatter plots and heat maps as SVG text for the page: axes with units and round ticks, bands for
// intervals, dots with tooltips. Colours are the page's CSS variables, so a plot follows the reader's light or dark
// mode. No scripts.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace graft::cli {

constexpr int series_colours = 8;  // of the page's palette; series take turns, and the last one is grey

struct Point {
  double x = 0, y = 0;
  double low = 0, high = 0;  // of the band, if the series has one; NaN: none at this point
};

struct Series {
  std::string name;
  int colour = 0;      // position in the page's palette
  bool steps = false;  // holds its value until the next point
  bool band = false;
  bool dashed = false;     // a second series of the same colour
  bool dots_only = false;  // scattered, faint, not in the legend
  bool thin = false;       // context for the others: grey, without dots and band
  int marker = 0;          // the form of its dots: a circle, or one of the others (plot.cpp)
  std::vector<Point> points;
};

struct Plot {
  std::string x_label, y_label;  // with units
  bool log_x = false, log_y = false;
  bool x_from_zero = true;
  // What is far below the rest of the points, such as methods that know nothing yet, leaves the frame of a linear axis
  // if the rest would else share less than half of it. A mark at the lower edge says where, and the legend how far.
  bool leave_out_far = false;
  bool name_at_end = false;  // as a file: each line's name stands at its end, in its colour
  std::vector<Series> series;
};

// A figure: the SVG, once for wide and once for narrow screens (classes wide and narrow, of which the page shows one),
// and, for more than one series, a legend below. Empty text for a plot without points.
std::string figure(const Plot& plot, const std::string& caption);

// The same as a separate file, with the legend inside; light or dark like the reader's system.
std::string svg_file(const Plot& plot, const std::string& caption);

// The plots of a page as separate files: roofline-1.svg, search-1.svg, search-2.svg.
class Figures {
 public:
  // figure(plot, caption), which becomes the next file of this kind, too.
  std::string add(const std::string& kind, const Plot& plot, const std::string& caption);
  const std::map<std::string, std::string>& files() const { return files_; }

 private:
  std::map<std::string, std::string> files_;
  std::map<std::string, int> of_kind_;
};

// Colours of the page and of plots as CSS variables, light and dark; and the style of the parts of plots.
std::string palette_style();
extern const char* const plot_style;

// The limits of the values that a frame shows with leave_out_far: from the least that is not far below the middle half.
std::pair<double, double> near_limits(std::vector<double> values);

// Chooses what a plot of many lines shows: at most seven in colours of their own, each with its own marker: those whose
// names are in `first`, then those that end highest, without what runs along one of them. The others become thin.
void distinguish(Plot& plot, const std::vector<std::string>& first);

// Places for labels, centred at these heights, with at least `apart` between neighbours, within low .. high: as near to
// their own heights as can be.
std::vector<double> spread_out(const std::vector<double>& heights, double apart, double low, double high);

struct HeatMap {
  std::string label;  // what rows and columns are
  std::vector<std::string> rows, columns;
  struct Cell {
    double shade = 0;  // -1 .. 1: the colour of one side or of the other, the stronger the further from 0
    std::string text;  // short; an empty cell is drawn without either
    std::string tooltip;
  };
  std::vector<std::vector<Cell>> cells;  // [row][column]
  int colour = 0, negative_colour = 1;   // positions in the page's palette
};

// The same for a table of numbers. Column heads are upright; a cell shows its text on its shade.
std::string figure(const HeatMap& map, const std::string& caption);

// One bar, divided into what a whole consists of, in its order.
struct Bar {
  std::string label;  // of the axis, with the unit
  struct Part {
    double length = 0;
    int colour = 0;
    std::string text;  // within the part, where there is room
    std::string tooltip;
  };
  std::vector<Part> parts;
  std::vector<std::pair<std::string, int>> legend;  // names of colours
};

// A figure, as of a plot; empty text for a bar of length 0.
std::string figure(const Bar& bar, const std::string& caption);

std::string escaped(const std::string& text);  // for HTML and SVG

// Round numbers that cover low .. high, about `count` of them; the logarithmic ones powers of ten, and over fewer
// `decades` 2 and 5 times these, too.
std::vector<double> linear_ticks(double low, double high, int count);
std::vector<double> log_ticks(double low, double high, double decades);

}  // namespace graft::cli
