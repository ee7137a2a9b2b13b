// How a search selects where nobody said: by the kind of its space.
#pragma once

#include "codegen/space/space.h"
#include "search/selection.h"

namespace graft::search {

// As asked; but the usual selection among rows of tables compares them by expected improvement where the model knows
// this search alone: rounds are small there, and a model of few columns is soon sure of too much
// (docs/notebook/2026-11-26-against-kernel-tuner.md). `informed`: other devices taught it.
SelectionSettings selection_in(const codegen::Space& space, bool informed, const SelectionSettings& asked);

}  // namespace graft::search
