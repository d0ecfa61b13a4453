#include "models/pairs.hpp"

#include <bit>

namespace muster {

Twins::Twins(const PairInputs& inputs, Arena& arena)
    : inputs_(inputs),
      living_(arena.make1<Index>(inputs.rights())),
      firsts_(arena.make1<Index>(inputs.lefts())),
      keys_(arena.make1<std::uint64_t>(inputs.lefts())) {}

void Twins::begin(Index slot) {
  slot_ = slot;
  count_ = others_ = 0;
  const Array1<const bool> alive = inputs_.right_alive.row(slot);
  for (Index j = 0; j < alive.size; ++j) {
    if (alive[j]) living_[count_++] = j;
  }
}

// A hash of some of the object's features, in which most objects differ already.
std::uint64_t Twins::key_of(Index i) const {
  std::uint64_t key = 0, factor = 0x9E3779B97F4A7C15u;
  const auto mix = [&](const float* values, Index count) {
    for (Index k = 0; k < count; ++k, factor += 0xBF58476D1CE4E5B8u) key += std::bit_cast<std::uint32_t>(values[k]) * factor;
  };
  mix(inputs_.left.row(slot_, i).data, inputs_.left.columns);
  mix(inputs_.pair.block(slot_).row(i, living_[0]).data, inputs_.pair.columns);
  if (inputs_.prior.layers > 0) key += std::bit_cast<std::uint64_t>(inputs_.prior(slot_, i, living_[0])) * factor;
  return key;
}

Index Twins::first_like(Index i) {
  const std::uint64_t key = key_of(i);
  for (Index c = 0; c < others_; ++c) {
    if (keys_[c] == key && are_alike(i, firsts_[c])) return firsts_[c];
  }
  keys_[others_] = key;
  firsts_[others_++] = i;
  return i;
}

bool Twins::are_alike(Index i, Index other) const {
  const Array2<const float> left = inputs_.left.layer(slot_);
  for (Index k = 0; k < left.columns; ++k) {
    if (left(i, k) != left(other, k)) return false;
  }
  const Array3<const float> pair = inputs_.pair.block(slot_);
  for (Index c = 0; c < count_; ++c) {
    const Index j = living_[c];
    const bool allowed = inputs_.is_allowed(slot_, i, j);
    if (allowed != inputs_.is_allowed(slot_, other, j)) return false;
    if (!allowed) continue;
    if (inputs_.prior.layers > 0 && inputs_.prior(slot_, i, j) != inputs_.prior(slot_, other, j)) return false;
    for (Index k = 0; k < pair.columns; ++k) {
      if (pair(i, j, k) != pair(other, j, k)) return false;
    }
  }
  return true;
}

}  // namespace muster
