// Random numbers for exploration, each row from its own slot's generator: independent of the batch.
#pragma once

#include <cstdint>

#include "array.hpp"

namespace muster {

// Standard normals [B, size]; advances the states [B].
void draw_normals(Array1<std::uint64_t> states, Array2<float> draws);

// Standard exponentials [B, size].
void draw_exponentials(Array1<std::uint64_t> states, Array2<float> draws);

}  // namespace muster
