// From a relaxed assignment to an assignment.
#pragma once

#include "../plan.hpp"
#include "relaxation.hpp"

namespace muster {

// Agents by decreasing largest relaxed value take their largest task with capacity left.
//
// Ties go to the larger score, then to the lower index. kStrict never exceeds a capacity and then lets agents that found
// none join, best first, where that gains. kOriginal asks only for some capacity left, so the last agent may exceed it, and
// for a relaxed value of 0.1.
void round_point(Plan& plan, const Instance& instance, const Point& point, Index rounding, Ranking& ranking);

}  // namespace muster
