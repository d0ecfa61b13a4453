// Baselines of pursuit that follow a rule of thumb.
#pragma once

#include <cstdint>

#include "../../array.hpp"

namespace muster::pursuit {

// assignment [B, N]: the nearest free evader of each pursuer by distances [B, N, M]; ties at random, from the slot's own
// generator.
void send_to_closest(Array3<const Index> distances, Array2<const bool> free, Array1<std::uint64_t> rng,
                     Array2<Index> assignment);

// assignment [B, N]: groups of `needed`, the one that can gather soonest first, of several the one with the least total
// distance, then the lower number; pursuers that are left over go for the nearest evader without a group.
void gather_greedily(Array3<const Index> distances, Array2<const bool> free, Index needed, Array2<Index> assignment);

}  // namespace muster::pursuit
