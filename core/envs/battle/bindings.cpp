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

void require(bool condition, const char* message) {
  if (!condition) throw nb::value_error(message);
}

// A batch of battles on arrays that Python owns, reads and may overwrite between two calls.
class Battles {
 public:
  Battles(In3<std::int32_t> units, In2<Index> counters, In3<std::int32_t> bullets, In2<std::int16_t> cells,
          In1<std::uint64_t> rng, In2<const Index> types, In2<const Index> roster, Index n_ours, Index latency,
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

  void reset(In1<const Index> slots, In1<const std::uint64_t> seeds) {
    require(slots.shape(0) == seeds.shape(0), "as many seeds as slots");
    for (const Index slot : view(slots)) require(0 <= slot && slot < size(), "no such slot");
    nb::gil_scoped_release unlocked;
    for (Index k = 0; k < view(slots).size; k++) {
      const Index slot = view(slots)[k];
      rng_.data()[slot] = view(seeds)[k];
      spawn(battle(slot), view(roster_));
      run_to_first_decision(battle(slot));
    }
  }

  // Carry out `orders` for so many frames.
  void run_frames(In2<const Index> orders, Index frames, Index begin, Index end) {
    check(begin, end, orders);
    check_agents(orders);
    nb::gil_scoped_release unlocked;
    for (Index b = begin; b < end; b++) run_decision(battle(b), view(orders).row(b), frames);
  }

  // Carry out one decision; fill its reward (change of our health less theirs, as a share of ours at the start) and
  // whether the battle ended with it, or was broken off after so many steps.
  void step(In2<const Index> orders, Index max_steps, bool final_reward, In1<double> rewards, In1<bool> terminated,
            In1<bool> truncated, Index begin, Index end) {
    check(begin, end, orders, rewards, terminated, truncated);
    check_agents(orders);
    nb::gil_scoped_release unlocked;
    for (Index b = begin; b < end; b++) {
      const Array1<Index> counters = view(counters_).row(b);
      const bool going = !counters[ENDED];
      const Index before = counters[HEALTH_OURS] - counters[HEALTH_THEIRS];
      run_decision(battle(b), view(orders).row(b), kDecisionFrames);
      const Index after = counters[HEALTH_OURS] - counters[HEALTH_THEIRS];
      const bool over = counters[ENDED] != 0;
      terminated.data()[b] = going && over;
      truncated.data()[b] = going && !over && counters[STEPS] >= max_steps;
      if (truncated.data()[b]) counters[ENDED] = 1;
      const auto scale = static_cast<double>(std::max(counters[HEALTH_START], Index{1}));
      double reward = static_cast<double>(after - before) / scale;
      if (final_reward && going && counters[ENDED]) reward += static_cast<double>(after) / scale;
      rewards.data()[b] = reward;
    }
  }

  void observe(In1<const double> ranges, bool one_hot, double distance_scale, In3<float> agents, In3<float> tasks,
               In4<float> pairs, In3<double> contributions, In2<double> capacities, Index begin, Index end) {
    check(begin, end, agents, tasks, pairs, contributions, capacities);
    nb::gil_scoped_release unlocked;
    const Display display{view(ranges), one_hot, distance_scale};
    for (Index b = begin; b < end; b++) {
      battle::observe(battle(b), display, view(agents).layer(b), view(tasks).layer(b), view(pairs).block(b),
                      view(contributions).layer(b), view(capacities).row(b));
    }
  }

  void draw_planes(In3<const float> agents, In3<const float> tasks, In4<float> planes, In3<Index> places) {
    check(0, size(), agents, tasks, planes, places);
    nb::gil_scoped_release unlocked;
    for (Index b = 0; b < size(); b++) {
      battle::draw_planes(battle(b), view(agents).layer(b), view(tasks).layer(b), view(planes).block(b),
                          view(places).layer(b));
    }
  }

  // Fill the orders of the battles that go on, HOLD in the others; false if the assignment holds an impossible number.
  bool resolve(bool guess, In2<const Index> assignment, In2<Index> orders) {
    check(0, size(), assignment, orders);
    check_agents(assignment);
    check_agents(orders);
    nb::gil_scoped_release unlocked;
    const Index n_theirs = view(units_).columns - n_ours_;
    const Array2<const Index> wanted = view(assignment);
    if (!std::all_of(wanted.data, wanted.data + wanted.rows * wanted.columns,
                     [n_theirs](Index task) { return MARCH <= task && task < n_theirs; })) {
      return false;
    }
    std::vector<Index> left(static_cast<std::size_t>(n_theirs));
    for (Index b = 0; b < size(); b++) {
      const Array1<Index> order = view(orders).row(b);
      if (view(counters_)(b, ENDED)) {
        std::fill(order.begin(), order.end(), HOLD);
      } else {
        battle::resolve(battle(b), guess, wanted.row(b), order, {left.data(), n_theirs});
      }
    }
    return true;
  }

  // Orders of one heuristic in the battles begin..end-1 that go on.
  void decide(int heuristic, bool fixed, In1<std::uint64_t> rng, In2<Index> memory, In2<Index> orders, Index begin,
              Index end) {
    check(begin, end, rng, memory, orders);
    check_agents(orders);
    require(extent(memory.shape(1)) == n_ours_ + 2, "memory of another number of agents");
    nb::gil_scoped_release unlocked;
    HeuristicPolicy policy(static_cast<Heuristic>(heuristic), fixed);
    for (Index b = begin; b < end; b++) {
      if (view(counters_)(b, ENDED)) continue;
      policy.decide(battle(b), rng.data()[b], view(memory).row(b), view(orders).row(b));
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
    require(((extent(arrays.shape(0)) == size()) && ...), "arrays of another number of battles");
  }

  template <class T>
  void check_agents(const In2<T>& array) const {
    require(extent(array.shape(1)) == n_ours_, "an array of another number of agents");
  }

  In3<std::int32_t> units_;
  In2<Index> counters_;
  In3<std::int32_t> bullets_;
  In2<std::int16_t> cells_;
  In1<std::uint64_t> rng_;
  In2<const Index> types_;
  In2<const Index> roster_;
  Index n_ours_;
  Settings settings_;
};

}  // namespace

void bind_battle(nb::module_& room) {
  nb::class_<Battles>(room, "Battles")
      .def(nb::init<In3<std::int32_t>, In2<Index>, In3<std::int32_t>, In2<std::int16_t>, In1<std::uint64_t>,
                    In2<const Index>, In2<const Index>, Index, Index, Index, Index, Index, bool, bool>(),
           "units"_a.noconvert(), "counters"_a.noconvert(), "bullets"_a.noconvert(), "cells"_a.noconvert(),
           "rng"_a.noconvert(), "types"_a, "roster"_a, "n_ours"_a, "latency"_a, "bot_step"_a, "first_order"_a,
           "standing"_a, "fog"_a, "opponent_first"_a)
      .def("reset", &Battles::reset, "slots"_a, "seeds"_a)
      .def("run_frames", &Battles::run_frames, "orders"_a, "frames"_a, "begin"_a, "end"_a)
      .def("step", &Battles::step, "orders"_a, "max_steps"_a, "final_reward"_a, "rewards"_a.noconvert(),
           "terminated"_a.noconvert(), "truncated"_a.noconvert(), "begin"_a, "end"_a)
      .def("observe", &Battles::observe, "ranges"_a, "one_hot"_a, "distance_scale"_a, "agents"_a.noconvert(),
           "tasks"_a.noconvert(), "pairs"_a.noconvert(), "contributions"_a.noconvert(), "capacities"_a.noconvert(),
           "begin"_a, "end"_a)
      .def("draw_planes", &Battles::draw_planes, "agents"_a, "tasks"_a, "planes"_a.noconvert(), "places"_a.noconvert())
      .def("resolve", &Battles::resolve, "guess"_a, "assignment"_a, "orders"_a.noconvert())
      .def("decide", &Battles::decide, "heuristic"_a, "fixed"_a, "rng"_a.noconvert(), "memory"_a.noconvert(),
           "orders"_a.noconvert(), "begin"_a, "end"_a);
  // For tests of the engine's arithmetic.
  room.def("length", &length<Index>, "x"_a, "y"_a);
  room.def("direction", &direction, "x"_a, "y"_a);
  room.def(
      "hash_order",
      [](In1<const Index> keys, In1<Index> order) {
        return HashOrder().sort(view(keys), view(order).size, order.data());
      },
      "keys"_a, "order"_a.noconvert());
}

}  // namespace muster
