#include "pursuit.hpp"

#include <vector>

#include "../../random.hpp"

namespace muster::pursuit {

namespace {

constexpr double kStepCost = 0.01;

Index sign(Index x) { return (x > 0) - (x < 0); }

// A coordinate at most one step outside 0..size-1, on a grid that wraps round.
Index wrap(Index x, Index size) { return x < 0 ? x + size : x >= size ? x - size : x; }

// Whether cell a lies above b, or left of it in the same row.
bool comes_first(const Index* a, const Index* b) {
  return a[kRow] < b[kRow] || (a[kRow] == b[kRow] && a[kColumn] < b[kColumn]);
}

// The state of one slot.
struct Slot {
  Array2<Index> pursuers;
  Array2<Index> evaders;
  Array1<bool> free;
  Array2<Index> moves;
  Array1<Index> targets;
  Array1<std::uint64_t> rng;

  Slot(const Pursuit& pursuit, Index slot)
      : pursuers(pursuit.pursuers.layer(slot)),
        evaders(pursuit.evaders.layer(slot)),
        free(pursuit.free.row(slot)),
        moves(pursuit.moves.layer(slot)),
        targets(pursuit.targets.row(slot)),
        rng(pursuit.rng.row(slot)) {}
};

// Number of pursuers that the free evaders need beyond those assigned.
Index count_missing(const Slot& slot, Array1<const Index> assignment, Index needed) {
  Index missing = 0;
  for (Index j = 0; j < slot.free.size; ++j) {
    if (slot.free[j]) missing += std::max<Index>(0, needed - std::count(assignment.begin(), assignment.end(), j));
  }
  return missing;
}

// The free evader nearest to a pursuer, of several the uppermost, then the leftmost.
Index find_nearest(const Slot& slot, Index i, const Settings& settings) {
  Index target = -1, nearest = kFar;
  for (Index j = 0; j < slot.evaders.rows; ++j) {
    if (!slot.free[j]) continue;
    const Index way = distance(&slot.pursuers(i, kRow), &slot.evaders(j, kRow), settings);
    if (way < nearest || (way == nearest && comes_first(&slot.evaders(j, kRow), &slot.evaders(target, kRow)))) {
      nearest = way;
      target = j;
    }
  }
  return target;
}

// The evader that each pursuer goes for. One that is assigned no free evader stays, unless every free evader has all that it needs:
// then it helps with the nearest.
void choose_targets(const Slot& slot, Array1<const Index> assignment, const Settings& settings) {
  const Index missing = count_missing(slot, assignment, settings.needed);
  for (Index i = 0; i < assignment.size; ++i) {
    const Index task = assignment[i];
    if (task >= 0 && slot.free[task]) {
      slot.targets[i] = task;
    } else {
      slot.targets[i] = missing > 0 ? -1 : find_nearest(slot, i, settings);
    }
  }
}

// One king's move towards the evader, diagonally first; a pursuer beside it stays.
void approach(Index* pursuer, const Index* evader, const Settings& settings) {
  if (distance(pursuer, evader, settings) <= 1) return;
  const Index rows = steps_to(pursuer[kRow], evader[kRow], settings.height, settings.walls);
  const Index columns = steps_to(pursuer[kColumn], evader[kColumn], settings.width, settings.walls);
  pursuer[kRow] = wrap(pursuer[kRow] + sign(rows), settings.height);
  pursuer[kColumn] = wrap(pursuer[kColumn] + sign(columns), settings.width);
}

constexpr Index kMoves = 3;  // along an axis: back, stay, on

// Distance along one axis after each move.
void measure_axis(Index here, Index there, Index size, bool walls, Index* ways) {
  for (Index k = 0; k < kMoves; ++k) {
    const Index moved = here + k - 1;
    ways[k] = steps_apart(walls ? moved : wrap(moved, size), there, size, walls);
  }
}

// danger [9] of the evader's own cell and its neighbours: the sum of 4^(sight - distance) over the pursuers in sight of a
// cell, an integer, so that no order of summing matters. The nearest pursuer counts for more than any three that are a cell
// farther away.
void measure_danger(const Index* evader, Array2<Index> pursuers, const Settings& settings, Index* danger) {
  std::fill_n(danger, kMoves * kMoves, 0);
  for (Index i = 0; i < pursuers.rows; ++i) {
    // No neighbour sees a pursuer that is two cells out of sight.
    if (distance(evader, &pursuers(i, kRow), settings) > settings.sight + 1) continue;
    Index rows[kMoves], columns[kMoves];
    measure_axis(evader[kRow], pursuers(i, kRow), settings.height, settings.walls, rows);
    measure_axis(evader[kColumn], pursuers(i, kColumn), settings.width, settings.walls, columns);
    for (Index cell = 0; cell < kMoves * kMoves; ++cell) {
      const Index way = std::max(rows[cell / kMoves], columns[cell % kMoves]);
      danger[cell] += way <= settings.sight ? Index{1} << (2 * (settings.sight - way)) : 0;
    }
  }
}

// Move to the least dangerous of the evader's own cell and its neighbours on the grid; ties at random. With no pursuer in
// sight all are equal, and it moves at random.
void flee(Index* evader, Index* move, Array2<Index> pursuers, const Settings& settings, std::uint64_t& rng) {
  Index danger[kMoves * kMoves];
  measure_danger(evader, pursuers, settings, danger);
  Index least = kFar, ties = 0;
  for (Index cell = 0; cell < kMoves * kMoves; ++cell) {
    const Index rows = cell / kMoves - 1, columns = cell % kMoves - 1;
    const Index row = evader[kRow] + rows, column = evader[kColumn] + columns;
    if (settings.walls && !(0 <= row && row < settings.height && 0 <= column && column < settings.width)) continue;
    if (danger[cell] < least) {
      least = danger[cell];
      ties = 0;
    }
    if (danger[cell] == least) {
      ++ties;
      if (ties == 1 || below(rng, ties) == 0) {
        move[kRow] = rows;
        move[kColumn] = columns;
      }
    }
  }
  evader[kRow] = wrap(evader[kRow] + move[kRow], settings.height);
  evader[kColumn] = wrap(evader[kColumn] + move[kColumn], settings.width);
}

struct Counts {
  Index caught = 0;
  Index left = 0;
};

Counts catch_or_flee(const Slot& slot, const Settings& settings) {
  Counts counts;
  for (Index j = 0; j < slot.evaders.rows; ++j) {
    if (!slot.free[j]) continue;
    Index* const evader = &slot.evaders(j, kRow);
    Index* const move = &slot.moves(j, kRow);
    move[kRow] = 0;
    move[kColumn] = 0;
    if (count_beside(slot.pursuers, evader, settings) >= settings.needed) {
      slot.free[j] = false;
      ++counts.caught;
    } else {
      ++counts.left;
      if (uniform(slot.rng[j]) < settings.speed) flee(evader, move, slot.pursuers, settings, slot.rng[j]);
    }
  }
  return counts;
}

}  // namespace

void reset(const Pursuit& pursuit, const Settings& settings, Array1<const Index> slots, Array1<const std::uint64_t> seeds) {
  const Index n = pursuit.pursuers.rows, m = pursuit.evaders.rows;
  std::vector<Index> cells;
  for (Index k = 0; k < slots.size; ++k) {
    const Slot slot(pursuit, slots[k]);
    std::uint64_t rng = seeds[k];
    cells.clear();
    while (static_cast<Index>(cells.size()) < n + m) {
      const Index cell = below(rng, settings.height * settings.width);
      if (std::ranges::find(cells, cell) == cells.end()) cells.push_back(cell);
    }
    for (Index i = 0; i < n; ++i) {
      slot.pursuers(i, kRow) = cells[i] / settings.width;
      slot.pursuers(i, kColumn) = cells[i] % settings.width;
      slot.targets[i] = -1;
    }
    for (Index j = 0; j < m; ++j) {
      slot.evaders(j, kRow) = cells[n + j] / settings.width;
      slot.evaders(j, kColumn) = cells[n + j] % settings.width;
      slot.free[j] = true;
      slot.moves(j, kRow) = 0;
      slot.moves(j, kColumn) = 0;
      slot.rng[j] = next_u64(rng);
    }
    pursuit.steps[slots[k]] = 0;
    pursuit.running[slots[k]] = true;
  }
}

void step(const Pursuit& pursuit, const Settings& settings, Array2<const Index> assignment, Index begin, Index end,
          const StepResult& result) {
  for (Index b = begin; b < end; ++b) {
    result.clear(b);
    if (!pursuit.running[b]) continue;
    const Slot slot(pursuit, b);
    choose_targets(slot, assignment.row(b), settings);
    for (Index i = 0; i < slot.targets.size; ++i) {
      if (slot.targets[i] >= 0) approach(&slot.pursuers(i, kRow), &slot.evaders(slot.targets[i], kRow), settings);
    }
    const Counts counts = catch_or_flee(slot, settings);
    pursuit.steps[b] += 1;
    result.reward[b] = static_cast<double>(counts.caught) / static_cast<double>(slot.evaders.rows) - kStepCost;
    if (counts.left == 0) {
      result.terminated[b] = true;
      pursuit.running[b] = false;
    } else if (pursuit.steps[b] >= settings.max_steps) {
      result.truncated[b] = true;
      pursuit.running[b] = false;
    }
  }
}

}  // namespace muster::pursuit
