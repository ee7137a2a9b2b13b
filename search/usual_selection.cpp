#include "search/usual_selection.h"

#include "search/point.h"

namespace graft::search {

SelectionSettings selection_in(const codegen::Space& space, bool informed, const SelectionSettings& asked) {
  SelectionSettings selection = asked;
  if (!informed && asked == SelectionSettings{} && is_of_tables(space)) selection.acquisition = Acquisition::ei;
  return selection;
}

}  // namespace graft::search
