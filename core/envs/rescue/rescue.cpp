#include "rescue.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "../../random.hpp"

namespace muster::rescue {

namespace {

// Draw a cell for each row of `cells`; if distinct, other than the first `taken` ones of `deck`, a permutation of all cells.
void draw_cells(std::uint64_t& rng, Array2<Index> cells, std::vector<Index>& deck, Index taken, bool distinct, Index width) {
  const Index n_cells = static_cast<Index>(deck.size());
  for (Index k = 0; k < cells.rows; ++k) {
    Index cell;
    if (distinct) {
      const Index swap = taken + k + below(rng, n_cells - taken - k);
      std::swap(deck[taken + k], deck[swap]);
      cell = deck[taken + k];
    } else {
      cell = below(rng, n_cells);
    }
    cells(k, kRow) = cell / width;
    cells(k, kColumn) = cell % width;
  }
}

// Cells as numbers, in 32 bits (a grid has at most 2^31 cells): compilers compare several at once.
using Cells = std::vector<std::int32_t>;

std::int32_t number_of(Array2<Index> cells, Index k, Index width) {
  return static_cast<std::int32_t>(cells(k, kRow) * width + cells(k, kColumn));
}

// Pick up every victim whose cell holds an ambulance; how many still wait. `occupied` is a workspace [N].
Index pick_up(const Rescue& rescue, Index slot, Index width, Cells& occupied) {
  const Array2<Index> agents = rescue.agents.layer(slot), victims = rescue.victims.layer(slot);
  const Array1<bool> waiting = rescue.waiting.row(slot);
  for (Index i = 0; i < agents.rows; ++i) occupied[i] = number_of(agents, i, width);
  Index left = 0;
  for (Index j = 0; j < victims.rows; ++j) {
    if (!waiting[j]) continue;
    const std::int32_t cell = number_of(victims, j, width);
    std::int32_t reached = 0;
    for (const std::int32_t other : occupied) reached |= other == cell;
    waiting[j] = reached == 0;
    left += waiting[j];
  }
  return left;
}

// Take one of the king's moves that bring `cell` nearer to `target`, each as likely.
void move_randomly(std::uint64_t& rng, Array1<Index> cell, Array1<Index> target, Index height, Index width) {
  const auto distance_from = [&](Index row, Index column) {
    return std::max(std::abs(target[kRow] - row), std::abs(target[kColumn] - column));
  };
  const Index distance = distance_from(cell[kRow], cell[kColumn]);
  Index count = 0;
  Index best_row = cell[kRow], best_column = cell[kColumn];
  for (Index row = std::max<Index>(cell[kRow] - 1, 0); row < std::min(cell[kRow] + 2, height); ++row) {
    for (Index column = std::max<Index>(cell[kColumn] - 1, 0); column < std::min(cell[kColumn] + 2, width); ++column) {
      if (distance_from(row, column) < distance) {
        ++count;
        if (below(rng, count) == 0) {
          best_row = row;
          best_column = column;
        }
      }
    }
  }
  cell[kRow] = best_row;
  cell[kColumn] = best_column;
}

// One king's move, diagonally first; whether the cell changed.
bool move_towards(Array1<Index> cell, Array1<Index> target) {
  const Index down = sign(target[kRow] - cell[kRow]);
  const Index right = sign(target[kColumn] - cell[kColumn]);
  cell[kRow] += down;
  cell[kColumn] += right;
  return down != 0 || right != 0;
}

void move_all(const Rescue& rescue, const Settings& settings, Array1<const Index> assignment, Index slot) {
  const Array2<Index> agents = rescue.agents.layer(slot);
  const bool muddy = settings.mud > 0.0;
  for (Index i = 0; i < agents.rows; ++i) {
    Index task = assignment[i];
    if (task >= 0 && !(rescue.waiting(slot, task) || settings.solved_assignable)) task = -1;
    rescue.assigned(slot, i) = task;
    if (muddy && rescue.ground.held(slot, i) > 0) {
      rescue.ground.held(slot, i) -= 1;
      continue;
    }
    if (task < 0) continue;
    const Array1<Index> target = rescue.victims.row(slot, task);
    if (settings.random_moves) {
      move_randomly(rescue.rng[slot], agents.row(i), target, settings.height, settings.width);
    } else if (move_towards(agents.row(i), target) && muddy) {
      enter_cell(rescue.ground, agents.row(i), slot, i);
    }
  }
}

}  // namespace

void reset(const Rescue& rescue, const Settings& settings, Array1<const Index> slots, Array1<const std::uint64_t> seeds) {
  std::vector<Index> deck(static_cast<std::size_t>(settings.height * settings.width));
  Cells occupied(static_cast<std::size_t>(rescue.agents.rows));
  const bool distinct = settings.placement != Placement::independent;
  const Index taken = settings.placement == Placement::distinct ? rescue.agents.rows : 0;
  for (Index k = 0; k < slots.size; ++k) {
    const Index slot = slots[k];
    rescue.rng[slot] = seeds[k];
    for (std::size_t cell = 0; cell < deck.size(); ++cell) deck[cell] = static_cast<Index>(cell);
    draw_cells(rescue.rng[slot], rescue.agents.layer(slot), deck, 0, distinct, settings.width);
    draw_cells(rescue.rng[slot], rescue.victims.layer(slot), deck, taken, distinct, settings.width);
    std::ranges::fill(rescue.waiting.row(slot), true);
    // Only where first cells may coincide is a victim picked up before the first step.
    pick_up(rescue, slot, settings.width, occupied);
    rescue.steps[slot] = 0;
    rescue.running[slot] = true;
    std::ranges::fill(rescue.assigned.row(slot), -1);
    if (settings.mud > 0.0) lay_mud(rescue.ground, rescue.agents.layer(slot), slot, seeds[k], settings.mud);
  }
}

void step(const Rescue& rescue, const Settings& settings, Array2<const Index> assignment, Index begin, Index end,
          const StepResult& result) {
  Cells occupied(static_cast<std::size_t>(rescue.agents.rows));
  for (Index slot = begin; slot < end; ++slot) {
    result.clear(slot);
    if (!rescue.running[slot]) continue;
    move_all(rescue, settings, assignment.row(slot), slot);
    rescue.steps[slot] += 1;
    result.reward[slot] = kStepReward;
    if (pick_up(rescue, slot, settings.width, occupied) == 0) {
      result.terminated[slot] = true;
      rescue.running[slot] = false;
    } else if (rescue.steps[slot] >= settings.max_steps) {
      result.truncated[slot] = true;
      rescue.running[slot] = false;
    }
  }
}

}  // namespace muster::rescue
