// Result of one step of B environments.
#pragma once

#include "../array.hpp"

namespace muster {

struct StepResult {
  Array1<double> reward;
  Array1<bool> terminated;
  Array1<bool> truncated;

  void clear(Index slot) const {
    reward[slot] = 0.0;
    terminated[slot] = false;
    truncated[slot] = false;
  }
};

}  // namespace muster
