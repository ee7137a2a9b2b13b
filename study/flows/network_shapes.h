// One network for several shapes of its inputs. Each is tuned as a network of its own (network.h), in a folder within a
// common one, one after another: what two of them compute alike is searched once, and a search begins with what is
// known of other shapes. Their constants are one file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/document.h"
#include "base/monitor.h"
#include "graph/onnx.h"
#include "study/flows/network.h"

namespace graft::study {

struct ShapedNetworks {
  struct Part {
    TunedNetwork network;
    double use = 1;  // how often it is run, relative to the others
  };
  std::filesystem::path folder;
  std::vector<Part> parts;  // one: the network is for one shape, and `folder` is its own
  bool complete = true;     // false: stopped; the same request continues it
};

// Tunes it for each of the shapes (graph::each_shape). Trials and the budget are shared by use. Shapes that the folder
// has from before stay. Errors as tune_network; UserError for a use of an extent that none of these shapes has.
ShapedNetworks tune_networks(const NetworkRequest& request, base::Monitor& monitor);

// Whether a folder has networks for several shapes.
bool is_shaped(const std::filesystem::path& folder);
// The folders of the networks in a folder: itself, or one for each shape.
std::vector<std::filesystem::path> networks_in(const std::filesystem::path& folder);

// What tune_networks gave; UserError as read_tuned_network.
ShapedNetworks read_networks(const std::filesystem::path& folder);

// What several shapes differ in.
struct Extents {
  std::vector<std::string> names;                   // of dimensions, or "x_0": the first extent of an input
  std::vector<std::vector<std::int64_t>> by_shape;  // in the order of the names
};
Extents extents_of(const std::vector<graph::Shapes>& shapes);
std::string to_text(const std::vector<std::string>& names, const std::vector<std::int64_t>& extents);  // "batch=4"

// {"kind":"networks","model":...,"networks":[...]}; of one shape, that of its network.
base::Document to_document(const ShapedNetworks& networks);

}  // namespace graft::study
