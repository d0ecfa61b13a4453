// LP and QUAD with minimums: from an answer that knows none to one that meets them.
#pragma once

#include "../../stop.hpp"
#include "../problem.hpp"

namespace muster {

// Let the answers of instances begin..end-1, which solve them without minimums, meet them.
//
// minimums [B, M]: the load that a task gets at least if it gets anybody; required [B, M]: whether it has to get that;
// previous [B, N]: the previous plan, or no rows. An answer that is optimal and meets the minimums stays. `nodes` is how
// much branch and bound may take.
void meet_minimums(Index begin, Index end, const Problem& problem, const Settings& settings, const Output& out, Stop& stop,
                   const Array2<const double>& minimums, const Array2<const bool>& required,
                   const Array2<const Index>& previous, Index nodes);

}  // namespace muster
