#include "spawn.hpp"

#include "../../random.hpp"
#include "engine.hpp"
#include "movement.hpp"

namespace muster::battle {

namespace {

// Bounds of the map in pixels, within which units are placed.
constexpr Index kLow = 64, kHigh = 4032;

bool free_at(const Battle& battle, Index i, Index x, Index y) {
  for (Index j = 0; j < i; j++) {
    if (boxes_overlap(battle.type(i), x, y, battle.type(j), battle.units(PX, j), battle.units(PY, j))) return false;
  }
  return true;
}

// Put unit i at (x, y), or on the nearest free place of an 8-pixel grid round it if it walks.
void place(const Battle& battle, Index i, Index x, Index y) {
  Index best_x = x;
  Index best_y = y;
  if (!battle.type(i)[T_FLYER] && !free_at(battle, i, x, y)) {
    Index best = kFar;
    // A free place in ring r may be beaten by one in the next few: their corners are further than their sides.
    for (Index ring = 1; best == kFar || ring * ring <= best; ring++) {
      for (Index dx = -ring; dx <= ring; dx++) {
        for (Index dy = -ring; dy <= ring; dy++) {
          const Index way = dx * dx + dy * dy;
          const bool on_ring = std::max(std::abs(dx), std::abs(dy)) == ring;
          if (on_ring && way < best && free_at(battle, i, x + 8 * dx, y + 8 * dy)) {
            best = way;
            best_x = x + 8 * dx;
            best_y = y + 8 * dy;
          }
        }
      }
    }
  }
  battle.units(PX, i) = static_cast<std::int32_t>(best_x);
  battle.units(PY, i) = static_cast<std::int32_t>(best_y);
}

// A coordinate in pixels, normally distributed round `centre` (walk tiles).
Index draw_coordinate(std::uint64_t& rng, Index centre, Index spread) {
  const double tile = static_cast<double>(centre) + static_cast<double>(spread) * normal(rng);
  return std::clamp(kTile * static_cast<Index>(tile), kLow, kHigh);
}

void draw_timers(const Battle& battle, Unit unit) {
  std::uint64_t& rng = *battle.rng;
  const Index standing = battle.settings.standing;
  unit[HEADING] = unit[VELOCITY_DIR] = static_cast<std::int32_t>(below(rng, 256));
  unit[PUSH_DIR] = static_cast<std::int32_t>(below(rng, 256));
  unit[MAIN_TIMER] = static_cast<std::int32_t>(below(rng, 16));
  unit[LOOK_TIMER] = static_cast<std::int32_t>(below(rng, kLookPeriod));
  if (standing) {
    // Its order was looked at in the frame in which it appeared; the timers have run since.
    unit[MAIN_TIMER] = static_cast<std::int32_t>(std::max(unit[MAIN_TIMER] - standing + 1, Index{0}));
    unit[LOOK_TIMER] = static_cast<std::int32_t>(kLookPeriod - standing);
  }
  // The first unit's is the number from which ours count, which decides the order of the authors' hash maps.
  unit[KEY] = static_cast<std::int32_t>(16 * below(rng, Index{1} << 26));
}

void reset_counters(const Battle& battle) {
  const Array1<Index> counters = battle.counters;
  std::fill(counters.begin(), counters.end(), 0);
  counters[ORDER_COUNTER] = 1 + below(*battle.rng, kResetPeriod);
  counters[N_LIVE] = battle.n_units();
  counters[N_OURS] = battle.n_ours;
  counters[N_THEIRS] = battle.n_theirs();
  counters[MARCH_FRAME] = -kFar;
  counters[HEALTH_OURS] = counters[HEALTH_START] = shown_health(battle, 0, battle.n_ours);
  counters[HEALTH_THEIRS] = shown_health(battle, battle.n_ours, battle.n_units());
  // An opponent that is ordered before us sets off before our first decision.
  counters[FRAME] = std::min(battle.settings.first_order, Index{0});
}

}  // namespace

void spawn(const Battle& battle, Array2<const Index> roster) {
  const Index n = battle.n_units();
  const Index n_ours = battle.n_ours;
  std::fill_n(battle.units.data, UNIT_FIELDS * n, 0);
  std::fill_n(battle.bullets.data, battle.bullets.rows * BULLET_FIELDS, 0);
  std::fill(battle.cells.begin(), battle.cells.end(), std::int16_t{0});
  for (Index i = 0; i < n; i++) {
    const Unit unit = battle.unit(i);
    unit[TYPE] = static_cast<std::int32_t>(roster(i, 0));
    unit[SIDE] = i >= n_ours;
    const Index x = draw_coordinate(*battle.rng, roster(i, 1), roster(i, 3));
    const Index y = draw_coordinate(*battle.rng, roster(i, 2), roster(i, 4));
    place(battle, i, x, y);
    draw_timers(battle, unit);
    const Index* const type = battle.type(i);
    unit[ALIVE] = 1;
    unit[HP] = static_cast<std::int32_t>(type[T_HP]);
    unit[ORDER] = IDLE;
    unit[SEEN] = !battle.settings.fog;
    for (const UnitField field : {QUEUED, PENDING}) unit[field] = NO_ORDER;
    for (const UnitField field : {TARGET_UNIT, ORDER_UNIT, AUTO, HIT_UNIT, PREVIOUS, ATTACK_TIME, FIRED_FRAME}) {
      unit[field] = -1;
    }
    for (const UnitField field : {TARGET_X, WAY_X, FACE_X}) unit[field] = unit[PX];
    for (const UnitField field : {TARGET_Y, WAY_Y, FACE_Y}) unit[field] = unit[PY];
    for (const UnitField field : {X, OLD_X}) unit[field] = 256 * unit[PX];
    for (const UnitField field : {Y, OLD_Y}) unit[field] = 256 * unit[PY];
    if (type[T_FLYER]) {
      unit[CELL] = cell_of(unit);
      battle.cells[unit[CELL]]++;
    }
    // Newest first; ours were created first, so they come last unless the setting says otherwise.
    Index position = n - 1 - i;
    if (!battle.settings.opponent_first) position = i < n_ours ? n_ours - 1 - i : n - 1 - (i - n_ours);
    battle.units(LIVE, position) = static_cast<std::int32_t>(i);
  }
  reset_counters(battle);
}

}  // namespace muster::battle
