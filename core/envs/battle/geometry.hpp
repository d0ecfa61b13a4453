// Lengths, directions and boxes, in the engine's integer arithmetic.
#pragma once

#include <array>
#include <cstdlib>

#include "layout.hpp"

namespace muster::battle {

// Unit vectors of the 256 directions, in 1/256.
extern const std::array<std::int32_t, 256> kUnitX, kUnitY;

// The engine's cheap length: exact along the axes, within about 8 % elsewhere.
//
// 32 bits suffice for any place on a map, and many at once fit into a processor's vectors.
template <class Integer>
inline Integer length(Integer x, Integer y) {
  const Integer a = std::max(std::abs(x), std::abs(y));
  const Integer b = std::min(std::abs(x), std::abs(y));
  return (a >> 2) < b ? a - (a >> 4) + (b * 3 >> 3) - (a >> 6) + (b * 3 >> 8) : a;
}

// A difference of directions in -128..127.
inline Index wrap(Index difference) { return ((difference + 128) & 255) - 128; }

// Direction 0..255 of the vector (x, y); up where it is zero.
Index direction(Index x, Index y);

// Distance between the boxes of two units, as every range in the engine measures it.
inline Index gap(const Battle& battle, Index i, Index j) {
  const Unit a = battle.unit(i);
  const Unit b = battle.unit(j);
  const Index* const type_a = battle.type(i);
  const Index* const type_b = battle.type(j);
  const Index dx = b[PX] - a[PX];
  const Index dy = b[PY] - a[PY];
  const Index gap_x = (dx >= 0 ? dx - type_b[T_LEFT] - type_a[T_RIGHT] : -dx - type_b[T_RIGHT] - type_a[T_LEFT]) - 1;
  const Index gap_y = (dy >= 0 ? dy - type_b[T_UP] - type_a[T_DOWN] : -dy - type_b[T_DOWN] - type_a[T_UP]) - 1;
  return length(std::max(gap_x, Index{0}), std::max(gap_y, Index{0}));
}

// Whether a unit of type a at (ax, ay) and one of type b at (bx, by) would overlap.
inline bool boxes_overlap(const Index* a, Index ax, Index ay, const Index* b, Index bx, Index by) {
  return bx - b[T_LEFT] <= ax + a[T_RIGHT] && ax - a[T_LEFT] <= bx + b[T_RIGHT] && by - b[T_UP] <= ay + a[T_DOWN] &&
         ay - a[T_UP] <= by + b[T_DOWN];
}

// Where the centre of a unit may not be for the box of another: the open rectangle between these edges.
struct Box {
  Index left, up, right, down;
};
inline Box blocked_box(const Index* mover, const Index* other, Index x, Index y) {
  return {x - other[T_LEFT] - mover[T_RIGHT] - 1, y - other[T_UP] - mover[T_DOWN] - 1,
          x + other[T_RIGHT] + mover[T_LEFT] + 1, y + other[T_DOWN] + mover[T_UP] + 1};
}

// Direction from a unit's pixel to a point.
inline Index direction_to(Unit unit, Index x, Index y) { return direction(x - unit[PX], y - unit[PY]); }

// Length in pixels from the walk tile of a unit to the walk tile (x, y).
inline Index tile_distance(Unit unit, Index x, Index y) {
  return length(kTile * ((unit[PX] >> 3) - x), kTile * ((unit[PY] >> 3) - y));
}

}  // namespace muster::battle
