// The exact optimum of min-max routing: several vehicles visit every stop, and the last arrival is as early as can be.
//
// Dynamic programming over subsets gives each vehicle's fastest route through each subset; then the makespan is raised
// from a lower bound until the vehicles can cover every stop within it. Distances are integers that satisfy the triangle
// inequality, so that leaving a stop out never makes a route longer.
#pragma once

#include <cstdint>

#include "../../array.hpp"
#include "../../stop.hpp"

namespace muster::rescue {

// The least makespan for distances [N, M] from each vehicle and [M, M] between stops; the stops of each vehicle in order,
// then -1, are written to routes [N, M]. -1 if stopped.
Index find_fastest_routes(Array2<const Index> from_vehicles, Array2<const Index> between, Array2<Index> routes, Stop& stop);

}  // namespace muster::rescue
