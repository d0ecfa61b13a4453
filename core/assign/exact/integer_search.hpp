// Integer assignments for the scores alone, from where rounding the linear programme left off: LP's `fast` and `best`.
//
// FAST is one oscillation. BEST goes on with oscillations from crossovers of the best assignments found: where two of
// them agree, so does the next start; where they differ, it takes from either (as in Yagiura, Ibaraki and Glover's path
// relinking, 2006, without the path). Of tiny instances all assignments are enumerated.
#pragma once

#include "../../stop.hpp"
#include "../problem.hpp"

namespace muster {

// Improve the answers in rows[begin:end], which LP has solved, proven and rounded.
void improve_batch(Index begin, Index end, const Problem& problem, const Settings& settings, const Output& out,
                   Stop& stop, const Array1<const Index>& rows);

}  // namespace muster
