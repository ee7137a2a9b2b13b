// Parts of HTML that several sections of a page are made of; `escaped` of plot.h is for their texts.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/output.h"
#include "cli/report/plot.h"

namespace graft::cli {

std::string html_table(const Table& table);
// A list of names with what they stand for; the texts are escaped here.
std::string html_facts(const std::vector<std::pair<std::string, std::string>>& facts);
// What is shown on request, under a title; nothing for an empty body, which is HTML.
std::string html_folded(const std::string& title, const std::string& body, bool open = false);
// Text as it is, under a title of its own; nothing for an empty text.
std::string html_listing(const std::string& title, const std::string& text);
// One self-contained page; `body` is HTML.
std::string whole_page(const std::string& title, const std::string& about, const std::string& body);

}  // namespace graft::cli
