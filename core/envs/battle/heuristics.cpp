#include "heuristics.hpp"

#include "../../random.hpp"
#include "observe.hpp"

namespace muster::battle {

namespace {

// Buckets of the common C++ standard library's hash map as it grows; a map holds at most as many keys as buckets.
constexpr Index kBuckets[] = {1, 13, 29, 59, 127, 257, 541, 1109, 2357};

}  // namespace

void HashOrder::insert(Index size, Index item) {
  const Index bucket = bucket_of_[item];
  Index place = 0;
  if (used_[bucket]) {
    while (bucket_of_[listed_[place]] != bucket) place++;
  }
  used_[bucket] = 1;
  std::copy_backward(listed_.begin() + place, listed_.begin() + size, listed_.begin() + size + 1);
  listed_[place] = item;
}

Index HashOrder::sort(Array1<const Index> keys, Index n, Index* order, Index growth) {
  bucket_of_.resize(keys.size);
  listed_.resize(n);
  used_.assign(kBuckets[growth], 0);
  for (Index size = 0; size < n; size++) {
    if (size + 1 > kBuckets[growth]) {
      growth++;
      used_.assign(kBuckets[growth], 0);
      before_.assign(listed_.begin(), listed_.begin() + size);
      for (Index m = 0; m < size; m++) {
        bucket_of_[before_[m]] = keys[before_[m]] % kBuckets[growth];
        insert(m, before_[m]);
      }
    }
    bucket_of_[order[size]] = keys[order[size]] % kBuckets[growth];
    insert(size, order[size]);
  }
  std::copy(listed_.begin(), listed_.end(), order);
  return growth;
}

// Write our live units to `waiting_` in the order in which the authors' maps have them; returns how many.
Index HeuristicPolicy::line_up(const Battle& battle) {
  const Index n_ours = battle.n_ours;
  keys_.resize(n_ours);
  waiting_.resize(n_ours);
  Index n = 0;
  for (Index i = 0; i < n_ours; i++) {
    keys_[i] = battle.units(KEY, 0) + i;
    if (battle.alive(i)) waiting_[n++] = i;
  }
  return n;
}

// The live enemy of least hit points that is not done with; ties go to the one nearest to the middle of those who wait.
//
// `layer` limits the search to flyers (1) or ground units (0); -1 searches all.
Index HeuristicPolicy::weakest(const Battle& battle, Index n, Index layer) const {
  Index x = 0;
  Index y = 0;
  for (Index k = 0; k < n; k++) {
    x += battle.units(PX, waiting_[k]) >> 3;
    y += battle.units(PY, waiting_[k]) >> 3;
  }
  x = floor_divide(x, std::max(n, Index{1}));
  y = floor_divide(y, std::max(n, Index{1}));
  Index best = -1;
  Index least = kFar;
  Index nearest = kFar;
  for (Index j = 0; j < battle.n_theirs(); j++) {
    const Index enemy = battle.n_ours + j;
    if (done_[j] || !battle.alive(enemy)) continue;
    if (layer >= 0 && battle.type(enemy)[T_FLYER] != layer) continue;
    const Index health = hit_points(battle, enemy);
    if (health > least) continue;
    const Index way = tile_distance(battle.unit(enemy), x, y);
    if (health < least || way < nearest) {
      least = health;
      nearest = way;
      best = j;
    }
  }
  return best;
}

// Whose target of the last decision lives keeps it (smart: unless it is dealt with); writes them to `served_`.
Index HeuristicPolicy::keep_targets(const Battle& battle, Array1<const Index> memory, Array1<Index> orders) {
  const Index n_ours = battle.n_ours;
  Index n_served = 0;
  for (Index k = 0; k < memory[n_ours]; k++) {
    const Index i = memory[k];
    const Index j = battle.units(PREVIOUS, i);
    if (j < 0 || !battle.alive(i) || !battle.alive(n_ours + j)) continue;
    const Index health = hit_points(battle, n_ours + j);
    if (heuristic_ == Heuristic::kNoOverkillSmart && damage_[j] >= health) continue;
    orders[i] = j;
    served_[n_served++] = i;
    damage_[j] += contribution(battle, i, n_ours + j);
    if (damage_[j] >= health) done_[j] = 1;
  }
  return n_served;
}

// Fill the weakest enemies one after the other, up to their hit points.
void HeuristicPolicy::share_out(const Battle& battle, Array1<Index> memory, Array1<Index> orders) {
  const Index n_ours = battle.n_ours;
  damage_.assign(battle.n_theirs(), 0);
  served_.resize(n_ours);
  Index n = line_up(battle);
  const Array1<const Index> keys{keys_.data(), n_ours};
  // The authors have one map by address (units lie one behind the other in memory), then one by number.
  hash_order_.sort(keys, n, waiting_.data());
  hash_order_.sort(keys, n, waiting_.data());
  Index n_served = 0;
  if (heuristic_ != Heuristic::kNoOverkill) {
    if (memory[n_ours] == 0) {
      // A heuristic that takes over in mid-battle has no map yet.
      std::copy_n(waiting_.begin(), n, memory.begin());
      memory[n_ours] = n;
    }
    n_served = keep_targets(battle, {memory.data, memory.size}, orders);
    n = std::remove_if(waiting_.begin(), waiting_.begin() + n, [&](Index i) { return orders[i] >= 0; }) - waiting_.begin();
  }
  const Index n_enemies = std::count(battle.row(ALIVE) + n_ours, battle.row(ALIVE) + battle.n_units(), 1);
  Index n_done = std::count(done_.begin(), done_.end(), 1);
  bool limited = true;
  Index layer = -1;
  while (n > 0) {
    if (n_done >= n_enemies) {
      std::fill(done_.begin(), done_.end(), 0);
      n_done = 0;
      limited = false;
      layer = -1;
    }
    const Index j = weakest(battle, n, layer);
    // The bug: a search among the wrong layer finds nothing, and whoever is left stays without a target.
    if (j < 0) break;
    done_[j] = 1;
    n_done++;
    const Index health = hit_points(battle, battle.n_ours + j);
    Index left = 0;
    for (Index k = 0; k < n; k++) {
      const Index i = waiting_[k];
      if (limited && damage_[j] >= health) {
        waiting_[left++] = i;
      } else {
        orders[i] = j;
        served_[n_served++] = i;
        damage_[j] += contribution(battle, i, n_ours + j);
      }
    }
    n = left;
    hash_order_.sort(keys, n, waiting_.data());
    if (n > 0 && !fixed_) layer = battle.type(waiting_[0])[T_AIR];
  }
  memory[n_ours + 1] = hash_order_.sort(keys, n_served, served_.data(), memory[n_ours + 1]);
  std::copy_n(served_.begin(), n_served, memory.begin());
  memory[n_ours] = n_served;
}

// Random targets, each kept until it dies.
void HeuristicPolicy::pick_at_random(const Battle& battle, std::uint64_t& rng, Array1<Index> orders) {
  std::vector<Index>& enemies = waiting_;
  enemies.clear();
  for (Index j = 0; j < battle.n_theirs(); j++) {
    if (battle.alive(battle.n_ours + j)) enemies.push_back(j);
  }
  if (enemies.empty()) return;
  for (Index i = 0; i < battle.n_ours; i++) {
    if (!battle.alive(i)) continue;
    const Index j = battle.units(PREVIOUS, i);
    const bool kept = j >= 0 && battle.alive(battle.n_ours + j);
    orders[i] = kept ? j : enemies[below(rng, static_cast<Index>(enemies.size()))];
  }
}

void HeuristicPolicy::decide(const Battle& battle, std::uint64_t& rng, Array1<Index> memory, Array1<Index> orders) {
  std::fill(orders.begin(), orders.end(), HOLD);
  done_.assign(battle.n_theirs(), 0);
  switch (heuristic_) {
    case Heuristic::kAttackMove: std::fill(orders.begin(), orders.end(), MARCH); break;
    case Heuristic::kClosest:
      for (Index i = 0; i < battle.n_ours; i++) {
        if (battle.alive(i)) orders[i] = closest_enemy(battle, i);
      }
      break;
    case Heuristic::kWeakest: {
      const Index n = line_up(battle);
      std::fill(orders.begin(), orders.end(), weakest(battle, n, -1));
      break;
    }
    case Heuristic::kRandom: pick_at_random(battle, rng, orders); break;
    default: share_out(battle, memory, orders);
  }
}

}  // namespace muster::battle
