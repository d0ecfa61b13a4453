// A tighter bound for QUAD at the higher efforts: that of a concave instance which is worth no less.
#pragma once

#include "../../stop.hpp"
#include "../problem.hpp"

namespace muster {

// Tighten the bounds of the answers in rows[begin:end], which QUAD has not proven; no more tasks than kCurvatureTasks.
void tighten_bounds(Index begin, Index end, const Problem& problem, const Settings& settings, const Output& out,
                    Stop& stop, const Array1<const Index>& rows);

}  // namespace muster
