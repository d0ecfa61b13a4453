// Mud: cells that hold up the ambulances that enter them, and that can only be guessed from afar.
//
// How a cell looks is drawn first, and whether it is muddy given that; so the mud of unvisited cells can be drawn again.
// Paths are the ambulances' own: diagonally first, then straight.
#pragma once

#include <cstdint>

#include "../../array.hpp"

namespace muster::rescue {

constexpr Index kHeldUp = 2;  // steps that an ambulance spends in a muddy cell before it can move on
constexpr std::uint8_t kLooksMuddy = 1;
constexpr std::uint8_t kKnown = 2;

struct Ground {
  Array3<bool> muddy;         // [B, H, W]
  Array3<std::uint8_t> look;  // [B, H, W] kLooksMuddy if it does, plus kKnown where an ambulance has been
  Array2<Index> held;         // [B, N] steps for which an ambulance cannot move
};

// Ambulance i has come to `cell`: it learns what the ground is like there, and may be held up.
void enter_cell(const Ground& ground, Array1<Index> cell, Index slot, Index i);

// New ground for the episode of `seed`; ambulances know the cells that they start on.
void lay_mud(const Ground& ground, Array2<Index> agents, Index slot, std::uint64_t seed, double share);

// Other mud under the cells where no ambulance has been, as likely as the first: they look as before. From seeds [B].
void redraw_mud(const Ground& ground, Array1<std::uint64_t> seeds, double share);

// counts [B, S, T]: muddy cells to be left on the way from each source to each target; the source's own cell counts as
// first [B, S]. 0 where both are in one cell.
void count_mud(Array3<const Index> sources, Array3<const Index> targets, Array2<const double> first,
               Array3<const bool> muddy, Array3<double> counts);

}  // namespace muster::rescue
