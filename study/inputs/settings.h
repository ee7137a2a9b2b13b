// The settings of parts that several requests have, as values (study/inputs/setting.h); those of requests are in
// study/flows/settings.h.
#pragma once

#include <vector>

#include "search/selection.h"
#include "study/inputs/data.h"
#include "study/inputs/model_choice.h"
#include "study/inputs/request.h"
#include "study/inputs/setting.h"
#include "study/inputs/space.h"
#include "tasks/command.h"

namespace graft::study {

// They refer to the part; `usual`: its defaults.
Settings settings_of(Timing& timing, const Timing& usual = {});
Settings settings_of(SpaceSource& space, const SpaceSource& usual = {});
Settings settings_of(search::SelectionSettings& selection, const search::SelectionSettings& usual = {});
Settings settings_of(DataSource& data, const DataSource& usual = {});
Settings settings_of(ModelChoice& choice, const ModelChoice& usual = ModelChoice());
Settings settings_of(tasks::Command& command, const tasks::Command& usual = {});
// Appends a part's to those of a request.
void append(Settings& all, Settings part);

}  // namespace graft::study
