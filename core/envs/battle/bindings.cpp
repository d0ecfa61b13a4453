// Bindings of battles: muster._core.battle.
#include "../../bindings.hpp"

#include <algorithm>
#include <vector>

#include "engine.hpp"
#include "geometry.hpp"
#include "heuristics.hpp"
#include "observe.hpp"
#include "spawn.hpp"

namespace muster {

namespace {

using namespace battle;

// A batch of battles on arrays that Python owns, reads and may overwrite between two calls.
class Battles {
 public:
  Battles(Numpy<std::int32_t, 3> units, Numpy<Index, 2> counters, Numpy<std::int32_t, 3> bullets, Numpy<std::int16_t, 2> cells,
          Numpy<std::uint64_t, 1> rng, Numpy<const Index, 2> types, Numpy<const Index, 2> roster, Index n_ours, Index latency,
          Index bot_step, Index first_order, Index standing, bool fog, bool opponent_first)
      : units_(units),
        counters_(counters),
        bullets_(bullets),
        cells_(cells),
        rng_(rng),
        types_(types),
        roster_(roster),
        n_ours_(n_ours),
        settings_{latency, bot_step, first_order, standing, fog, opponent_first} {
    const Index n = size();
    const auto all = [n](const auto& array) { return extent(array.shape(0)) == n; };
    require(all(counters) && all(bullets) && all(cells) && all(rng), "arrays of different numbers of battles");
    require(extent(units.shape(1)) == UNIT_FIELDS && extent(counters.shape(1)) == COUNTERS &&
                extent(bullets.shape(2)) == BULLET_FIELDS && extent(cells.shape(1)) == kCells * kCells,
            "arrays of another layout");
    require(types.shape(1) == static_cast<std::size_t>(TYPE_FIELDS) + 2 * types.shape(0), "types of another layout");
    require(roster.shape(0) == units.shape(2) && roster.shape(1) == 5, "roster must have five columns, a row a unit");
    require(0 < n_ours && n_ours < extent(units.shape(2)), "each side needs a unit");
    require(bot_step > 0, "bot_step must be positive");
  }

  void reset(Array1<const Index> slots, Array1<const std::uint64_t> seeds) const {
    require(slots.size == seeds.size, "as many seeds as slots");
    for (const Index slot : slots) require(0 <= slot && slot < size(), "no such slot");
    for (Index k = 0; k < slots.size; k++) {
      rng_.data()[slots[k]] = seeds[k];
      spawn(battle(slots[k]), view(roster_));
      run_to_first_decision(battle(slots[k]));
    }
  }

  // Carry out `orders` for so many frames.
  void run_frames(Array2<const Index> orders, Index frames, Index begin, Index end) const {
    check(begin, end, orders);
    check_agents(orders);
    for (Index b = begin; b < end; b++) run_decision(battle(b), orders.row(b), frames);
  }

  // Carry out one decision; fill its reward (change of our health less theirs, as a share of ours at the start) and
  // whether the battle ended with it, or was broken off after so many steps.
  void step(Array2<const Index> orders, Index max_steps, bool final_reward, Array1<double> rewards,
            Array1<bool> terminated, Array1<bool> truncated, Index begin, Index end) const {
    check(begin, end, orders, rewards, terminated, truncated);
    check_agents(orders);
    for (Index b = begin; b < end; b++) {
      const Array1<Index> counters = view(counters_).row(b);
      const bool going = !counters[ENDED];
      const Index before = counters[HEALTH_OURS] - counters[HEALTH_THEIRS];
      run_decision(battle(b), orders.row(b), kDecisionFrames);
      const Index after = counters[HEALTH_OURS] - counters[HEALTH_THEIRS];
      const bool over = counters[ENDED] != 0;
      terminated[b] = going && over;
      truncated[b] = going && !over && counters[STEPS] >= max_steps;
      if (truncated[b]) counters[ENDED] = 1;
      const auto scale = static_cast<double>(std::max(counters[HEALTH_START], Index{1}));
      rewards[b] = static_cast<double>(after - before) / scale;
      if (final_reward && going && counters[ENDED]) rewards[b] += static_cast<double>(after) / scale;
    }
  }

  void observe(Array1<const double> ranges, bool one_hot, double distance_scale, Array3<float> agents,
               Array3<float> tasks, Array4<float> pairs, Array3<double> contributions, Array2<double> capacities,
               Index begin, Index end) const {
    check(begin, end, agents, tasks, pairs, contributions, capacities);
    const Display display{ranges, one_hot, distance_scale};
    for (Index b = begin; b < end; b++) {
      battle::observe(battle(b), display, agents.layer(b), tasks.layer(b), pairs.block(b), contributions.layer(b),
                      capacities.row(b));
    }
  }

  void draw_planes(Array3<const float> agents, Array3<const float> tasks, Array4<float> planes,
                   Array3<Index> places) const {
    check(0, size(), agents, tasks, planes, places);
    for (Index b = 0; b < size(); b++) {
      battle::draw_planes(battle(b), agents.layer(b), tasks.layer(b), planes.block(b), places.layer(b));
    }
  }

  // Fill the orders of the battles that go on, HOLD in the others; false if the assignment holds an impossible number.
  bool resolve(bool guess, Array2<const Index> assignment, Array2<Index> orders) const {
    check(0, size(), assignment, orders);
    check_agents(assignment);
    check_agents(orders);
    const Index n_theirs = view(units_).columns - n_ours_;
    if (!std::all_of(assignment.data, assignment.data + assignment.rows * assignment.columns,
                     [n_theirs](Index task) { return MARCH <= task && task < n_theirs; })) {
      return false;
    }
    std::vector<Index> left(static_cast<std::size_t>(n_theirs));
    for (Index b = 0; b < size(); b++) {
      if (view(counters_)(b, ENDED)) {
        std::fill(orders.row(b).begin(), orders.row(b).end(), HOLD);
      } else {
        battle::resolve(battle(b), guess, assignment.row(b), orders.row(b), {left.data(), n_theirs});
      }
    }
    return true;
  }

  // Orders of one heuristic in the battles begin..end-1 that go on.
  void decide(Index heuristic, bool fixed, Array1<std::uint64_t> rng, Array2<Index> memory, Array2<Index> orders,
              Index begin, Index end) const {
    check(begin, end, rng, memory, orders);
    check_agents(orders);
    require(memory.columns == n_ours_ + 2, "memory of another number of agents");
    HeuristicPolicy policy(static_cast<Heuristic>(heuristic), fixed);
    for (Index b = begin; b < end; b++) {
      if (!view(counters_)(b, ENDED)) policy.decide(battle(b), rng[b], memory.row(b), orders.row(b));
    }
  }

 private:
  Index size() const { return extent(units_.shape(0)); }

  Battle battle(Index b) const {
    return {view(units_).layer(b), view(counters_).row(b), view(bullets_).layer(b), view(cells_).row(b),
            rng_.data() + b,       view(types_),           n_ours_,                 settings_};
  }

  template <class... Arrays>
  void check(Index begin, Index end, const Arrays&... arrays) const {
    require(0 <= begin && begin <= end && end <= size(), "no such range of battles");
    (require_shape(arrays, {size()}, "arrays of another number of battles"), ...);
  }

  template <class T>
  void check_agents(Array2<T> array) const {
    require(array.columns == n_ours_, "an array of another number of agents");
  }

  Numpy<std::int32_t, 3> units_;
  Numpy<Index, 2> counters_;
  Numpy<std::int32_t, 3> bullets_;
  Numpy<std::int16_t, 2> cells_;
  Numpy<std::uint64_t, 1> rng_;
  Numpy<const Index, 2> types_;
  Numpy<const Index, 2> roster_;
  Index n_ours_;
  Settings settings_;
};

}  // namespace

void bind_battle(nb::module_& module) {
  nb::class_<Battles> bound(module, "Battles");
  bound.def(nb::init<Numpy<std::int32_t, 3>, Numpy<Index, 2>, Numpy<std::int32_t, 3>, Numpy<std::int16_t, 2>,
                     Numpy<std::uint64_t, 1>, Numpy<const Index, 2>, Numpy<const Index, 2>, Index, Index, Index, Index,
                     Index, bool, bool>(),
            "units"_a.noconvert(), "counters"_a.noconvert(), "bullets"_a.noconvert(), "cells"_a.noconvert(),
            "rng"_a.noconvert(), "types"_a, "roster"_a, "n_ours"_a, "latency"_a, "bot_step"_a, "first_order"_a,
            "standing"_a, "fog"_a, "opponent_first"_a);
  bind_method(bound, "reset", &Battles::reset, "slots", "seeds");
  bind_method(bound, "run_frames", &Battles::run_frames, "orders", "frames", "begin", "end");
  bind_method(bound, "step", &Battles::step, "orders", "max_steps", "final_reward", "rewards", "terminated", "truncated",
              "begin", "end");
  bind_method(bound, "observe", &Battles::observe, "ranges", "one_hot", "distance_scale", "agents", "tasks", "pairs",
              "contributions", "capacities", "begin", "end");
  bind_method(bound, "draw_planes", &Battles::draw_planes, "agents", "tasks", "planes", "places");
  bind_method(bound, "resolve", &Battles::resolve, "guess", "assignment", "orders");
  bind_method(bound, "decide", &Battles::decide, "heuristic", "fixed", "rng", "memory", "orders", "begin", "end");
  // For tests of the engine's arithmetic.
  module.def("length", &length<Index>, "x"_a, "y"_a);
  module.def("direction", &direction, "x"_a, "y"_a);
  module.def(
      "hash_order",
      [](Numpy<const Index, 1> keys, Numpy<Index, 1> order) {
        return HashOrder().sort(view(keys), view(order).size, order.data());
      },
      "keys"_a, "order"_a.noconvert());
}

}  // namespace muster
