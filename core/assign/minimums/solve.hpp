// LP and QUAD with minimums: from an answer that ignores them to one that meets them.
#pragma once

#include "../../stop.hpp"
#include "../problem.hpp"

namespace muster {

// Let the answers of instances begin..end-1, which solve them without minimums, meet them.
//
// minimums [B, M]: the least load of a task that has agents; required [B, M]: whether the task has to reach it;
// previous [B, N]: the previous plan, or no rows. An answer that is optimal and meets the minimums stays. `nodes` are
// those that branch and bound may use.
void meet_minimums(Index begin, Index end, const Problem& problem, const Settings& settings, const Output& out, Stop& stop,
                   const Array2<const double>& minimums, const Array2<const bool>& required,
                   const Array2<const Index>& previous, Index nodes);

}  // namespace muster
