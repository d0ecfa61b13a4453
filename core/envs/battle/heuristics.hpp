// The paper's heuristics, as its authors ran them, and each without the bug that shapes their table.
//
// Distances are the engine's length between walk tiles of 8 pixels, so ties are common; the first in order wins. Hit
// points are whole numbers as the game shows them. Our units are gone through in the order of C++ hash maps keyed by
// unit numbers, which are consecutive; those with a target, in the order of the map in which it was stored.
#pragma once

#include <vector>

#include "layout.hpp"

namespace muster::battle {

enum class Heuristic : int {
  kClosest, kWeakest, kNoOverkill, kNoOverkillNoChange, kNoOverkillSmart, kRandom, kAttackMove
};

// Puts keys into the iteration order of a C++ hash map; keeps its memory from call to call.
class HashOrder {
 public:
  // Reorder the first n of `order` (indices into `keys`, as inserted), in place.
  //
  // The map is one linked list; each bucket's nodes are neighbours. A key goes to the front of its bucket's run, or to
  // the very front if the bucket is empty; growing re-inserts all in list order. A map that was emptied keeps its
  // buckets: `growth` is how often it had grown before; returns how often it has now.
  Index sort(Array1<const Index> keys, Index n, Index* order, Index growth = 0);

 private:
  void insert(Index size, Index item);

  std::vector<Index> bucket_of_, listed_, before_;
  std::vector<std::uint8_t> used_;
};

// Decides for one battle after the other; keeps its memory from one to the next.
class HeuristicPolicy {
 public:
  // `fixed`: without the authors' search bug.
  HeuristicPolicy(Heuristic heuristic, bool fixed) : heuristic_(heuristic), fixed_(fixed) {}

  // Orders [N]: an enemy's index for each of our live units, HOLD without a target, MARCH to attack-move.
  //
  // `memory` [N + 2] has the units that got a target at the last decision, in the order of the map that stored them,
  // then their number and how often that map has grown; it is modified in place. `rng` is for random targets alone.
  void decide(const Battle& battle, std::uint64_t& rng, Array1<Index> memory, Array1<Index> orders);

 private:
  Index line_up(const Battle& battle);
  Index weakest(const Battle& battle, Index n, Index layer) const;
  Index keep_targets(const Battle& battle, Array1<const Index> memory, Array1<Index> orders);
  void share_out(const Battle& battle, Array1<Index> memory, Array1<Index> orders);
  void pick_at_random(const Battle& battle, std::uint64_t& rng, Array1<Index> orders);

  Heuristic heuristic_;
  bool fixed_;
  HashOrder hash_order_;
  std::vector<Index> keys_, waiting_, served_, damage_;
  std::vector<std::uint8_t> done_;
};

}  // namespace muster::battle
