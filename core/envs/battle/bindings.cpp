#include "../../bindings.hpp"

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

  void step(In2<const Index> orders, Index frames, Index begin, Index end) {
    check(begin, end, orders);
    nb::gil_scoped_release unlocked;
    for (Index b = begin; b < end; b++) run_decision(battle(b), view(orders).row(b), frames);
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

  // Orders of the battles that go on; the others' stay as they are.
  void resolve(bool guess, In2<const Index> assignment, In2<Index> orders) {
    check(0, size(), assignment, orders);
    nb::gil_scoped_release unlocked;
    std::vector<Index> left(static_cast<std::size_t>(view(units_).columns - n_ours_));
    for (Index b = 0; b < size(); b++) {
      if (view(counters_)(b, ENDED)) continue;
      battle::resolve(battle(b), guess, view(assignment).row(b), view(orders).row(b), {left.data(), extent(left.size())});
    }
  }

  // Orders of one heuristic in the battles begin..end-1 that go on.
  void decide(int heuristic, bool fixed, In1<std::uint64_t> rng, In2<Index> memory, In2<Index> orders, Index begin,
              Index end) {
    check(begin, end, rng, memory, orders);
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
      .def("step", &Battles::step, "orders"_a, "frames"_a, "begin"_a, "end"_a)
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
      [](In1<const Index> keys, In1<Index> order) { return HashOrder().sort(view(keys), view(order).size, order.data()); },
      "keys"_a, "order"_a.noconvert());
}

}  // namespace muster
