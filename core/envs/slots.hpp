// Checks of an environment's arguments: an index outside an array would corrupt memory.
#pragma once

#include "../bindings.hpp"

namespace muster {

// Raise an exception unless there is a seed for each slot, and slots are 0..n_envs-1.
inline void check_slots(Array1<const Index> slots, Array1<const std::uint64_t> seeds, Index n_envs) {
  require(slots.size == seeds.size, "give one seed for each slot");
  for (const Index slot : slots) {
    if (slot < 0 || slot >= n_envs) throw nb::index_error("slots are 0 to the number of environments - 1");
  }
}

// Flat index of the first entry of an assignment outside -1..M-1, or -1.
inline Index first_bad_task(Array2<const Index> assignment, Index n_tasks) {
  for (Index k = 0; k < assignment.rows * assignment.columns; ++k) {
    if (assignment.data[k] < -1 || assignment.data[k] >= n_tasks) return k;
  }
  return -1;
}

}  // namespace muster
