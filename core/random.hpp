// Random numbers whose stream depends on one 64-bit SplitMix state alone: the same in any batch, with any number of threads.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace muster {

// The next 64 random bits; advances the state.
inline std::uint64_t next_u64(std::uint64_t& state) {
  state += 0x9E3779B97F4A7C15u;
  std::uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

// Uniform in [0, 1).
inline double uniform(std::uint64_t& state) {
  return static_cast<double>(next_u64(state) >> 11) * (1.0 / 9007199254740992.0);
}

// Uniform integer in 0..n-1 (n up to 2^32, by multiply and shift).
inline std::int64_t below(std::uint64_t& state, std::int64_t n) {
  return static_cast<std::int64_t>(((next_u64(state) >> 32) * static_cast<std::uint64_t>(n)) >> 32);
}

// Standard normal, by Box and Muller (one of the pair, so that the state is all there is to save).
inline double normal(std::uint64_t& state) {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform(state)));
  return radius * std::cos(2.0 * std::numbers::pi * uniform(state));
}

}  // namespace muster
