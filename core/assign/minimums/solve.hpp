// LP and QUAD with minimums: from an answer that knows none to one that meets them.
#pragma once

#include "../../stop.hpp"
#include "../problem.hpp"

namespace muster {

// What tasks need, for a batch.
struct Needs {
  Array2<const double> minimums;  // [B, M] load that a task gets at least if it gets anybody
  Array2<const bool> required;    // [B, M] whether it has to get its minimum
  Array2<const Index> previous;   // [B, N] the previous plan, or no rows
};

// Let the answers of instances begin..end-1, which solve them without minimums, meet them.
//
// An answer that is optimal and meets the minimums stays. `nodes` is how much branch and bound may take.
void meet_minimums(Index begin, Index end, const Problem& problem, const Needs& needs, const Settings& settings, Index nodes,
                   const Output& out, Stop& stop);

}  // namespace muster
