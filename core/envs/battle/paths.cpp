#include "paths.hpp"

namespace muster::battle {

namespace {

// Corners considered in a row before going straight after all.
constexpr int kDetours = 4;
// No obstacle whose centre is further than this (px) beside the way can touch it.
constexpr Index kBeside = 40;
// Further along a segment than its end.
constexpr double kNever = 2.0;

// How far along the segment (0 to 1) it enters the open box; kNever if it does not.
double entry_of(Index x0, Index y0, Index x1, Index y1, const Box& box) {
  double enter = 0.0;
  double leave = 1.0;
  for (int axis = 0; axis < 2; axis++) {
    const Index start = axis == 0 ? x0 : y0;
    const Index way = axis == 0 ? x1 - x0 : y1 - y0;
    const Index low = axis == 0 ? box.left : box.up;
    const Index high = axis == 0 ? box.right : box.down;
    if (way == 0) {
      if (start <= low || start >= high) return kNever;
      continue;
    }
    double a = static_cast<double>(low - start) / static_cast<double>(way);
    double b = static_cast<double>(high - start) / static_cast<double>(way);
    if (a > b) std::swap(a, b);
    enter = std::max(enter, a);
    leave = std::min(leave, b);
  }
  return enter < leave ? enter : kNever;
}

// The first obstacle on the straight way of unit i to (x, y) that does not cover that point itself; -1 if there is none.
Index first_obstacle(const Battle& battle, Index i, Index x, Index y, Index considered, bool movers) {
  const Unit unit = battle.unit(i);
  const Index* const type = battle.type(i);
  const Index x0 = unit[PX];
  const Index y0 = unit[PY];
  const Index low_x = std::min(x0, x) - kBeside;
  const Index high_x = std::max(x0, x) + kBeside;
  const Index low_y = std::min(y0, y) - kBeside;
  const Index high_y = std::max(y0, y) + kBeside;
  const std::int32_t* const live = battle.row(LIVE);
  double best = kNever;
  Index found = -1;
  for (Index k = 0; k < battle.counters[N_LIVE]; k++) {
    const Index j = live[k];
    const Unit other = battle.unit(j);
    const Index jx = other[PX];
    const Index jy = other[PY];
    if (jx < low_x || jx > high_x || jy < low_y || jy > high_y || j == i || j == unit[TARGET_UNIT]) continue;
    if (!movers && j != considered && !at_target(other)) continue;
    const Box box = blocked_box(type, battle.type(j), jx, jy);
    if (box.left < x && x < box.right && box.up < y && y < box.down) continue;
    const double along = entry_of(x0, y0, x, y, box);
    if (along < best) {
      best = along;
      found = j;
    }
  }
  return found;
}

struct Corner {
  Index cost, x, y;
};

// The free corner of unit j by which unit i gets to its target on the shortest way; of cost kFar if there is none.
Corner best_corner(const Battle& battle, Index i, Index j, bool movers) {
  const Unit unit = battle.unit(i);
  const Unit other = battle.unit(j);
  const Index x0 = unit[PX];
  const Index y0 = unit[PY];
  const Index goal_x = unit[TARGET_X];
  const Index goal_y = unit[TARGET_Y];
  const Box box = blocked_box(battle.type(i), battle.type(j), other[PX], other[PY]);
  Corner best{kFar, goal_x, goal_y};
  for (int corner = 0; corner < 4; corner++) {
    const Index x = corner % 2 == 0 ? box.left : box.right;
    const Index y = corner < 2 ? box.up : box.down;
    if ((x == x0 && y == y0) || entry_of(x0, y0, x, y, box) != kNever) continue;
    const Index cost = length(x - x0, y - y0) + length(goal_x - x, goal_y - y);
    if (cost < best.cost && !blocked_at(battle, i, x, y, !movers)) best = {cost, x, y};
  }
  return best;
}

}  // namespace

bool blocked_at(const Battle& battle, Index i, Index x, Index y, bool standing_only) {
  const Index* const type = battle.type(i);
  const std::int32_t* const live = battle.row(LIVE);
  for (Index k = 0; k < battle.counters[N_LIVE]; k++) {
    const Index j = live[k];
    const Unit other = battle.unit(j);
    if (j != i && boxes_overlap(type, x, y, battle.type(j), other[PX], other[PY]) &&
        (!standing_only || at_target(other))) {
      return true;
    }
  }
  return false;
}

void plan_path(const Battle& battle, Index i, Index considered, bool movers) {
  const Unit unit = battle.unit(i);
  Index x = unit[TARGET_X];
  Index y = unit[TARGET_Y];
  for (int detour = 0; detour < kDetours; detour++) {
    const Index obstacle = first_obstacle(battle, i, x, y, considered, movers);
    if (obstacle < 0) break;
    const Corner corner = best_corner(battle, i, obstacle, movers);
    const bool same = corner.x == x && corner.y == y;
    x = corner.x;
    y = corner.y;
    if (same || corner.cost == kFar) break;
  }
  unit[HAS_PATH] = 1;
  unit[PATH_FRAME] = static_cast<std::int32_t>(battle.counters[FRAME]);
  unit[NEW_TARGET] = 0;
  unit[HIT_UNIT] = -1;
  unit[FACE_X] = static_cast<std::int32_t>(x);
  unit[FACE_Y] = static_cast<std::int32_t>(y);
  if (unit[WAY_X] != x || unit[WAY_Y] != y) {
    unit[WAY_X] = unit[FACE_X];
    unit[WAY_Y] = unit[FACE_Y];
    unit[FLAGS] |= TURNING;
  }
}

}  // namespace muster::battle
