#include "mud.hpp"

#include <algorithm>

#include "../../random.hpp"
#include "rescue.hpp"

namespace muster::rescue {

namespace {

constexpr double kTruthful = 0.95;  // share of cells that look as they are

// An episode's ground is drawn from its seed xor this: ambulances and victims start where they do without mud.
constexpr std::uint64_t kMudStream = 0x3C6EF372FE94F82Bu;

// Chances that follow from the share of muddy cells.
struct Chances {
  double looks_muddy;
  double muddy_if_it_looks;
  double muddy_otherwise;

  explicit Chances(double share)
      : looks_muddy(share * kTruthful + (1.0 - share) * (1.0 - kTruthful)),
        muddy_if_it_looks(share * kTruthful / looks_muddy),
        muddy_otherwise(share * (1.0 - kTruthful) / std::max(1.0 - looks_muddy, 1e-300)) {}

  bool draw_mud(std::uint64_t& rng, bool looks) const { return uniform(rng) < (looks ? muddy_if_it_looks : muddy_otherwise); }
};

// Muddy cells on the way, neither the first nor the last.
Index count_between(Index row, Index column, Index to_row, Index to_column, Array2<const bool> muddy) {
  Index count = 0;
  while (true) {
    row += sign(to_row - row);
    column += sign(to_column - column);
    if (row == to_row && column == to_column) return count;
    count += muddy(row, column);
  }
}

}  // namespace

void enter_cell(const Ground& ground, Array1<Index> cell, Index slot, Index i) {
  const bool muddy = ground.muddy(slot, cell[kRow], cell[kColumn]);
  ground.look(slot, cell[kRow], cell[kColumn]) = muddy ? kKnown + kLooksMuddy : kKnown;
  ground.held(slot, i) = muddy ? kHeldUp : 0;
}

void lay_mud(const Ground& ground, Array2<Index> agents, Index slot, std::uint64_t seed, double share) {
  std::uint64_t rng = seed ^ kMudStream;
  const Chances chances(share);
  for (Index row = 0; row < ground.look.rows; ++row) {
    for (Index column = 0; column < ground.look.columns; ++column) {
      const bool looks_muddy = uniform(rng) < chances.looks_muddy;
      ground.look(slot, row, column) = looks_muddy ? kLooksMuddy : 0;
      ground.muddy(slot, row, column) = chances.draw_mud(rng, looks_muddy);
    }
  }
  for (Index i = 0; i < agents.rows; ++i) enter_cell(ground, agents.row(i), slot, i);
}

void redraw_mud(const Ground& ground, Array1<std::uint64_t> seeds, double share) {
  const Chances chances(share);
  for (Index slot = 0; slot < ground.look.layers; ++slot) {
    std::uint64_t rng = seeds[slot] ^ kMudStream;
    for (Index row = 0; row < ground.look.rows; ++row) {
      for (Index column = 0; column < ground.look.columns; ++column) {
        const std::uint8_t look = ground.look(slot, row, column);
        if (look < kKnown) ground.muddy(slot, row, column) = chances.draw_mud(rng, look == kLooksMuddy);
      }
    }
  }
}

void count_mud(Array3<const Index> sources, Array3<const Index> targets, Array2<const double> first,
               Array3<const bool> muddy, Array3<double> counts) {
  for (Index b = 0; b < sources.layers; ++b) {
    const Array2<const bool> ground = muddy.layer(b);
    for (Index i = 0; i < sources.rows; ++i) {
      const Index row = sources(b, i, kRow), column = sources(b, i, kColumn);
      for (Index j = 0; j < targets.rows; ++j) {
        const Index to_row = targets(b, j, kRow), to_column = targets(b, j, kColumn);
        const bool same = row == to_row && column == to_column;
        counts(b, i, j) =
            same ? 0.0 : first(b, i) + static_cast<double>(count_between(row, column, to_row, to_column, ground));
      }
    }
  }
}

}  // namespace muster::rescue
