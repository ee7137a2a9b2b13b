#include "cli/report/html.h"

#include <fmt/format.h>

#include "cli/report/plot.h"

namespace graft::cli {
namespace {

// On narrow screens figures are drawn for their width, and listings stand one below the other.
constexpr const char* page_style = R"(*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);font:16px/1.5 system-ui,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
main{max-width:1040px;margin:0 auto;padding:32px 20px 60px}
h1{font-size:1.7rem;margin:0 0 4px}h2{font-size:1.25rem;margin:40px 0 8px;overflow-wrap:anywhere}h3{font-size:1rem;margin:24px 0 6px}
p,figcaption{color:var(--soft);margin:4px 0 12px;max-width:80ch}
figure{margin:12px 0 20px;padding:14px;background:var(--card);border:1px solid var(--line);border-radius:10px;max-width:860px}
figcaption{font-size:.86rem;margin:8px 0 0}
svg{width:100%;height:auto;display:block}svg.narrow{display:none}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:4px 18px;margin:8px 0 0;padding:0;font-size:.9rem}
.legend span{display:inline-block;width:20px;border-top:4px solid;margin-right:7px;vertical-align:middle}
.legend .dashes{border-top-style:dashed}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums}
th,td{padding:5px 14px 5px 0;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}
th:first-child,td:first-child,.text{text-align:left}td.text{white-space:normal;min-width:16ch}th{color:var(--soft);font-weight:600}
pre{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:10px 14px;overflow:auto;max-height:30rem;font-size:.85rem;line-height:1.4;tab-size:8;margin:4px 0 12px}
.pair{display:grid;grid-template-columns:repeat(2,minmax(0,1fr));gap:0 20px}
summary{cursor:pointer;color:var(--soft);padding:4px 0}.wrap pre{white-space:pre-wrap;overflow-wrap:anywhere}
dl{display:grid;grid-template-columns:max-content 1fr;gap:2px 18px;margin:8px 0}dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}
@media (max-width:640px){main{padding:20px 12px 40px}figure{padding:10px 6px}figcaption{padding:0 4px}
svg.wide{display:none}svg.narrow{display:block}.map{overflow-x:auto}.map svg{min-width:600px}
.pair{grid-template-columns:minmax(0,1fr)}dl{grid-template-columns:minmax(0,1fr)}dd{margin-bottom:6px}}
)";

}  // namespace

std::string html_table(const Table& table) {
  const auto cells_of = [&](const std::vector<std::string>& cells, const char* tag) {
    std::string out = "<tr>";
    for (std::size_t c = 0; c < cells.size(); ++c)
      out += fmt::format("<{0}{1}>{2}</{0}>", tag, c > 0 && !table.has_numbers(c) ? " class=\"text\"" : "",
                         escaped(cells[c]));
    return out + "</tr>\n";
  };
  std::string out = "<div class=\"scroll\"><table><thead>" + cells_of(table.head(), "th") + "</thead><tbody>\n";
  for (const auto& row : table.rows()) out += cells_of(row, "td");
  return out + "</tbody></table></div>\n";
}

std::string html_facts(const std::vector<std::pair<std::string, std::string>>& facts) {
  std::string out = "<dl>";
  for (const auto& [name, value] : facts) out += fmt::format("<dt>{}</dt><dd>{}</dd>\n", escaped(name), escaped(value));
  return out + "</dl>\n";
}

std::string html_folded(const std::string& title, const std::string& body, bool open) {
  return body.empty() ? ""
                      : fmt::format("<details{}><summary>{}</summary>\n{}</details>\n", open ? " open" : "",
                                    escaped(title), body);
}

std::string html_listing(const std::string& title, const std::string& text) {
  return text.empty() ? "" : fmt::format("<div><h3>{}</h3>\n<pre>{}</pre></div>\n", escaped(title), escaped(text));
}

std::string whole_page(const std::string& title, const std::string& about, const std::string& body) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width,initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<title>{0}</title>\n<style>{1}</style>\n</head>\n<body>\n<main>\n<h1>{0}</h1>\n<p>{2}</p>\n{3}"
      "</main>\n</body>\n</html>\n",
      escaped(title), palette_style() + plot_style + page_style, escaped(about), body);
}

}  // namespace graft::cli
