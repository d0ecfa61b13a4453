#include "geometry.hpp"

#include <cmath>
#include <numbers>

namespace muster::battle {

namespace {

std::array<std::int32_t, 256> tabulate(double (*function)(double)) {
  std::array<std::int32_t, 256> table{};
  for (int k = 0; k < 256; k++) {
    table[k] = static_cast<std::int32_t>(std::rint(256 * function(k * (2 * std::numbers::pi / 256))));
  }
  return table;
}

// One more than the tangents, in 1/256, of the 64 angles half-way between neighbouring directions of a quadrant.
const std::array<Index, 64> kTangents = [] {
  std::array<Index, 64> table{};
  for (int k = 0; k < 64; k++) {
    table[k] = 1 + static_cast<Index>(std::floor(256 * std::tan((k + 0.5) * std::numbers::pi / 128)));
  }
  return table;
}();

}  // namespace

const std::array<std::int32_t, 256> kUnitX = tabulate([](double angle) { return std::sin(angle); });
const std::array<std::int32_t, 256> kUnitY = tabulate([](double angle) { return -std::cos(angle); });

Index direction(Index x, Index y) {
  if (x == 0) return y <= 0 ? 0 : 128;
  const Index width = std::abs(x);
  const Index height = std::abs(y) * 256;
  // How many of the tangents the vector reaches: the slope floored, against each, without a division.
  Index reached = 0;
  for (Index step = 32; step > 0; step /= 2) {
    if (kTangents[reached + step - 1] * width <= height) reached += step;
  }
  if (reached == 63 && kTangents[63] * width <= height) reached = 64;
  const Index steep = (x > 0) == (y > 0) ? reached : -reached;
  return ((x > 0 ? 64 : 192) + steep) & 255;
}

}  // namespace muster::battle
