#include "observe.hpp"

namespace muster::battle {

namespace {

void describe_unit(const Battle& battle, const Display& display, Index i, Array1<float> features) {
  std::fill(features.begin(), features.end(), 0.0f);
  if (!battle.alive(i)) return;
  const Unit unit = battle.unit(i);
  const Index* const type = battle.type(i);
  const auto put = [&](Index feature, double value) { features[feature] = static_cast<float>(value); };
  put(ENEMY, i >= battle.n_ours);
  put(PLACE_X, unit[PX] / 64.0 - 15);
  put(PLACE_Y, unit[PY] / 64.0 - 15);
  put(VELOCITY_X, (unit[X] - unit[OLD_X]) / 256.0 / 5);
  put(VELOCITY_Y, (unit[Y] - unit[OLD_Y]) / 256.0 / 5);
  put(HEALTH, static_cast<double>(hit_points(battle, i) * 256) / static_cast<double>(type[T_HP]));
  put(COOLDOWN_LEFT, unit[COOLDOWN] / static_cast<double>(type[T_COOLDOWN]));
  put(RANGE, display.ranges[unit[TYPE]]);
  if (display.one_hot) put(BASE_FEATURES + unit[TYPE], 1);
}

// Capacity of enemy j (0..n_theirs-1) in damage.
//
// If the last decision's attackers suffice to kill it, their damage, summed only until it does; otherwise the least
// number of hits of our weakest attacker that does, times that attacker's damage.
Index capacity(const Battle& battle, Index j) {
  const Index enemy = battle.n_ours + j;
  const Index health = hit_points(battle, enemy);
  const Index* const damages = battle.types.data + TYPE_FIELDS + battle.types.rows + battle.units(TYPE, enemy);
  const std::int32_t* const alive = battle.row(ALIVE);
  const std::int32_t* const types = battle.row(TYPE);
  const std::int32_t* const previous = battle.row(PREVIOUS);
  Index committed = 0;
  Index least = 0;
  for (Index i = 0; i < battle.n_ours; i++) {
    if (!alive[i]) continue;
    const Index damage = damages[types[i] * battle.types.columns];
    if (least == 0 || damage < least) least = damage;
    if (previous[i] == j && committed < health) committed += damage;
  }
  if (committed >= health) return committed;
  return (health + least - 1) / std::max(least, Index{1}) * least;
}

}  // namespace

Index closest_enemy(const Battle& battle, Index i) {
  const Unit unit = battle.unit(i);
  const Index x = unit[PX] >> 3;
  const Index y = unit[PY] >> 3;
  Index best = -1;
  Index nearest = kFar;
  for (Index j = battle.n_ours; j < battle.n_units(); j++) {
    if (!battle.alive(j)) continue;
    const Index way = tile_distance(battle.unit(j), x, y);
    if (way < nearest) {
      nearest = way;
      best = j - battle.n_ours;
    }
  }
  return best;
}

void observe(const Battle& battle, const Display& display, Array2<float> agents, Array2<float> tasks,
             Array3<float> pairs, Array2<double> contributions, Array1<double> capacities) {
  const Index n_ours = battle.n_ours;
  const Index n_theirs = battle.n_theirs();
  for (Index i = 0; i < n_ours; i++) describe_unit(battle, display, i, agents.row(i));
  for (Index j = 0; j < n_theirs; j++) {
    describe_unit(battle, display, n_ours + j, tasks.row(j));
    capacities[j] = battle.alive(n_ours + j) ? static_cast<double>(capacity(battle, j)) : 0.0;
  }
  const std::int32_t* const their_x = battle.row(PX) + n_ours;
  const std::int32_t* const their_y = battle.row(PY) + n_ours;
  const std::int32_t* const their_types = battle.row(TYPE) + n_ours;
  const double scale = display.distance_scale;
  for (Index i = 0; i < n_ours; i++) {
    const Unit unit = battle.unit(i);
    const std::int32_t x = unit[PX] >> 3;
    const std::int32_t y = unit[PY] >> 3;
    const Index* const damages = battle.type(i) + TYPE_FIELDS + battle.types.rows;
    float* const pair = pairs.row(i, 0).data;
    double* const contributed = contributions.row(i).data;
    for (Index j = 0; j < n_theirs; j++) {
      const std::int32_t way = length(kTile * ((their_x[j] >> 3) - x), kTile * ((their_y[j] >> 3) - y));
      pair[PAIR_FEATURES * j + DISTANCE] = static_cast<float>(way / 8.0 / scale);
      pair[PAIR_FEATURES * j + LAST_TARGET] = 0.0f;
    }
    if (unit[PREVIOUS] >= 0) pair[PAIR_FEATURES * unit[PREVIOUS] + LAST_TARGET] = 1.0f;
    for (Index j = 0; j < n_theirs; j++) contributed[j] = static_cast<double>(damages[their_types[j]]);
  }
}

void draw_planes(const Battle& battle, Array2<const float> agents, Array2<const float> tasks, Array3<float> planes,
                 Array2<Index> places) {
  Index n = 0;
  Index x = 0;
  Index y = 0;
  for (Index i = 0; i < battle.n_units(); i++) {
    if (!battle.alive(i)) continue;
    x += battle.units(PX, i) >> 3;
    y += battle.units(PY, i) >> 3;
    n++;
  }
  const Index left = floor_divide(x, std::max(n, Index{1})) - kGrid / 2;
  const Index up = floor_divide(y, std::max(n, Index{1})) - kGrid / 2;
  const Index width = agents.columns;
  for (Index i = 0; i < battle.n_units(); i++) {
    const bool ours = i < battle.n_ours;
    const Index column = std::clamp((battle.units(PX, i) >> 3) - left, Index{0}, kGrid - 1);
    const Index row = std::clamp((battle.units(PY, i) >> 3) - up, Index{0}, kGrid - 1);
    const Array1<const float> features = ours ? agents.row(i) : tasks.row(i - battle.n_ours);
    places(i, 0) = row;
    places(i, 1) = column;
    for (Index f = 0; f < width; f++) planes(ours ? f : width + f, row, column) += features[f];
  }
}

void resolve(const Battle& battle, bool guess, Array1<const Index> assignment, Array1<Index> orders,
             Array1<Index> left) {
  const Index n_ours = battle.n_ours;
  const Index n_theirs = battle.n_theirs();
  bool open = false;
  for (Index i = 0; i < n_ours; i++) {
    const Index task = assignment[i];
    if (!battle.alive(i) || task == HOLD || task == MARCH) {
      orders[i] = task == MARCH ? MARCH : HOLD;
    } else {
      orders[i] = task >= 0 && battle.alive(n_ours + task) ? task : UNASSIGNED;
      open |= orders[i] == UNASSIGNED;
    }
  }
  if (!open) return;
  Index n_left = 0;
  Index last = -1;
  for (Index j = 0; j < n_theirs; j++) {
    left[j] = 0;
    if (!battle.alive(n_ours + j)) continue;
    left[j] = capacity(battle, j);
    n_left++;
    last = j;
  }
  for (Index i = 0; i < n_ours; i++) {
    if (orders[i] >= 0) left[orders[i]] -= contribution(battle, i, n_ours + orders[i]);
  }
  const auto fits_somewhere = [&](Index i) {
    for (Index j = 0; j < n_theirs; j++) {
      if (left[j] > 0 && left[j] >= contribution(battle, i, n_ours + j)) return true;
    }
    return false;
  };
  for (Index i = 0; i < n_ours; i++) {
    if (orders[i] != UNASSIGNED) continue;
    const Index previous = battle.units(PREVIOUS, i);
    if (n_left == 1) {
      orders[i] = last;
    } else if (guess && fits_somewhere(i)) {
      orders[i] = HOLD;
    } else if (previous >= 0 && battle.alive(n_ours + previous)) {
      orders[i] = previous;
    } else {
      orders[i] = closest_enemy(battle, i);
    }
  }
}

}  // namespace muster::battle
