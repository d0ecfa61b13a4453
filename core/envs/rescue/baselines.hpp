// Baselines of search and rescue that follow a rule of thumb, or routes that were computed before.
#pragma once

#include <cstdint>

#include "../../array.hpp"

namespace muster::rescue {

// assignment [B, N]: the nearest open victim of each ambulance; ties at random, from the slot's own generator.
void send_to_closest(Array3<const Index> agents, Array3<const Index> victims, Array2<const bool> open, bool manhattan,
                     Array1<std::uint64_t> rng, Array2<Index> assignment);

// assignment [B, N]: the first victim on each route [B, N, M] that is still waiting; -1 ends a route.
void follow_routes(Array3<const Index> routes, Array2<const bool> waiting, Array2<Index> assignment);

}  // namespace muster::rescue
