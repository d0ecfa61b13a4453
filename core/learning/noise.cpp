#include "learning/noise.hpp"

#include "random.hpp"

namespace muster {

void draw_normals(Array1<std::uint64_t> states, Array2<float> draws) {
  for (Index slot = 0; slot < draws.rows; ++slot) {
    for (float& draw : draws.row(slot)) draw = static_cast<float>(normal(states[slot]));
  }
}

void draw_exponentials(Array1<std::uint64_t> states, Array2<float> draws) {
  for (Index slot = 0; slot < draws.rows; ++slot) {
    for (float& draw : draws.row(slot)) draw = static_cast<float>(-std::log(1.0 - uniform(states[slot])));
  }
}

}  // namespace muster
