// The settings of every request, as values (study/inputs/setting.h): made of the tables study/inputs/settings/*.def,
// which also declare the requests' fields.
#pragma once

#include <string>
#include <vector>

#include "base/document.h"
#include "study/inputs/setting.h"
#include "study/inputs/settings.h"

namespace graft::study {

// They refer to the request.
Settings settings_of(struct TuneRequest& request);
Settings settings_of(struct NetworkRequest& request);  // those of each kernel's search, too
Settings settings_of(struct PredictNetworkRequest& request);
Settings settings_of(struct RunNetworkRequest& request);
Settings settings_of(struct OwnRequest& request);  // without those of searches
Settings settings_of(struct ReplayRequest& request);
Settings settings_of(struct AdaptRequest& request);
Settings settings_of(struct CollectRequest& request);
Settings settings_of(struct TrainRequest& request);
Settings settings_of(struct EvaluateRequest& request);
Settings settings_of(struct ValidateRequest& request);
Settings settings_of(struct CompareRequest& request);
Settings settings_of(struct NetworkOptions& options, const NetworkOptions& usual);

// FieldError for the first setting of the request that is beyond its range.
template <class Request>
void check_settings(Request request) {
  check(settings_of(request));
}
// Adds the settings that decide the result.
template <class Request>
void put_settings(Request request, base::Document& identity) {
  put_deciding(settings_of(request), identity);
}

// All that have settings, for the reference.
struct SettledCall {
  std::string name;             // "tune", the command and the function
  Settings settings;            // of a request that lives as long as the program
  bool by_experiments = false;  // experiments make such requests
};
const std::vector<SettledCall>& settled_calls();

}  // namespace graft::study
