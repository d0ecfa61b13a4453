#include "collision.hpp"

namespace muster::battle {

namespace {

// Blocked frames after which a walker counts as standing.
constexpr Index kStubborn = 30;
// A walker whose course is further off its way than this does not slide.
constexpr Index kSlideTurn = 80;
// Cardinal directions.
constexpr Index kUp = 0, kRight = 64, kDown = 128, kLeft = 192;

enum Side { kAbove, kRightOf, kBelow, kLeftOf };

// On which side of unit i unit j is.
Side side_of(const Battle& battle, Index i, Index j) {
  const Index* const a = battle.type(i);
  const Index* const b = battle.type(j);
  const Index dx = battle.units(PX, j) - battle.units(PX, i);
  const Index dy = battle.units(PY, j) - battle.units(PY, i);
  if (dx + b[T_RIGHT] < -a[T_LEFT]) return kLeftOf;
  if (dx - b[T_LEFT] > a[T_RIGHT]) return kRightOf;
  return dy < 0 ? kAbove : kBelow;
}

// Along which edge to pass an obstacle on that side, by the quadrant (0: up to right, clockwise) one wants to go; -1: none.
Index edge_direction(Side side, Index quadrant) {
  switch (side) {
    case kAbove: return quadrant == 3 ? kLeft : quadrant == 0 ? kRight : -1;
    case kRightOf: return quadrant == 0 ? kUp : quadrant == 1 ? kDown : -1;
    case kBelow: return quadrant == 1 ? kRight : quadrant == 2 ? kLeft : -1;
    default: return quadrant == 2 ? kDown : quadrant == 3 ? kUp : -1;
  }
}

// The cardinal direction in which to slide along standing unit j to a free corner of it; -1 if there is none.
Index slide_direction(const Battle& battle, Index i, Index j) {
  const Unit unit = battle.unit(i);
  const Unit other = battle.unit(j);
  const Index wanted = direction_to(unit, unit[WAY_X], unit[WAY_Y]);
  if (std::abs(wrap(wanted - unit[CURRENT_DIR])) >= kSlideTurn) return -1;
  const Box box = blocked_box(battle.type(i), battle.type(j), other[PX], other[PY]);
  const Side side = side_of(battle, i, j);
  Index slide = edge_direction(side, wanted / 64);
  if (slide < 0) return -1;
  Index x = side == kRightOf ? box.left : box.right;
  Index y = side == kBelow ? box.up : box.down;
  for (int attempt = 0; attempt < 2; attempt++) {
    if (slide == kUp) {
      y = box.up;
    } else if (slide == kDown) {
      y = box.down;
    } else {
      x = slide == kRight ? box.right : box.left;
    }
    if (!blocked_at(battle, i, x, y, false)) return slide;
    slide = (slide + 128) & 255;
  }
  return -1;
}

// Whether unit c, in the way of unit i, moves out of it.
bool going_away(const Battle& battle, Index i, Index c) {
  const Index heading = battle.units(VELOCITY_DIR, c);
  switch (side_of(battle, i, c)) {
    case kAbove: return heading <= kRight || heading >= kLeft;
    case kRightOf: return heading <= kDown;
    case kBelow: return kRight <= heading && heading <= kLeft;
    default: return heading == kUp || heading >= kDown;
  }
}

}  // namespace

Response respond_to_collision(const Battle& battle, Index i, Index c) {
  const Unit unit = battle.unit(i);
  const Unit other = battle.unit(c);
  const Index* const type = battle.type(i);
  const Index* const other_type = battle.type(c);
  const Index target = unit[TARGET_UNIT];
  if (target >= 0 && gap(battle, i, target) == 0) return Response::kStay;
  // Whether c, where it is or where it goes, covers a place that unit i wants.
  const auto covers = [&](UnitField x, UnitField y, UnitField place_x, UnitField place_y) {
    return boxes_overlap(other_type, other[x], other[y], type, unit[place_x], unit[place_y]);
  };
  if (covers(PX, PY, TARGET_X, TARGET_Y)) {
    if (other[BLOCKED] >= kStubborn || covers(TARGET_X, TARGET_Y, TARGET_X, TARGET_Y)) {
      return target >= 0 ? Response::kReplan : Response::kStayImmovable;
    }
  } else if (!covers(PX, PY, WAY_X, WAY_Y)) {
    if (other[FLAGS] & MOVING) {
      if (going_away(battle, i, c)) return Response::kWait;
      if (other[BLOCKED] <= 2 && !at_target(other)) {
        if (other[STATE] == FOLLOW) return Response::kWait;
        if (other[STATE] != WAIT) return Response::kReplanAroundMovers;
      }
    }
    const Index slide = slide_direction(battle, i, c);
    if (slide < 0) return Response::kTurnAndStart;
    unit[SLIDE_DIR] = static_cast<std::int32_t>(slide);
    return Response::kSlide;
  } else if (other[BLOCKED] >= kStubborn || covers(TARGET_X, TARGET_Y, WAY_X, WAY_Y)) {
    return Response::kReplan;
  }
  const Index ahead = direction_to(unit, other[PX], other[PY]);
  // The engine leaves headings from 224 on at "up".
  const Index course = ((other[VELOCITY_DIR] + 32) / 64 * 64) & 255;
  return std::abs(wrap(course - ahead)) > 64 ? Response::kReplanAroundMovers : Response::kWait;
}

}  // namespace muster::battle
