// Bindings of the fleet: muster._core.fleet.
#include "../slots.hpp"
#include "fleet.hpp"
#include "hindsight.hpp"
#include "observe.hpp"
#include "worth.hpp"

namespace muster {

namespace {

// Episodes in numpy's arrays: the state, named as in `FleetEnv.arrays`, and the data of the city.
class BoundFleet {
 public:
  BoundFleet(nb::dict arrays, Index wait, double cost, bool evenly, double unit, double trip)
      : arrays_(std::move(arrays)),
        settings_{wait, cost, evenly},
        state_{
            .rng = arrays_["rng"],
            .minute = arrays_["minute"],
            .running = arrays_["running"],
            .zone = arrays_["zone"],
            .free = arrays_["free"],
            .first = arrays_["first"],
            .held = arrays_["held"],
            .number = arrays_["number"],
            .stops = arrays_["stops"],
            .taken = arrays_["taken"],
            .pickups = arrays_["pickups"],
            .dropoffs = arrays_["dropoffs"],
            .lost = arrays_["lost"],
            .earned = arrays_["earned"],
            .served = arrays_["served"],
            .seen = arrays_["seen"],
            .empty = arrays_["empty"],
        },
        roads_{.metres = arrays_["metres"], .minutes = arrays_["minutes"], .fares = arrays_["fares"]},
        demand_{.expected = arrays_["expected"], .cumulative = arrays_["cumulative"], .busyness = arrays_["busyness"]},
        days_{.pickups = arrays_["day_pickups"], .dropoffs = arrays_["day_dropoffs"], .lost = arrays_["day_lost"]},
        outlook_{
            .usual = arrays_["usual"],
            .origins = arrays_["origins"],
            .worth = arrays_["worth"],
            .taking = arrays_["taking"],
            .unit = unit,
            .trip = trip,
        } {}

  void reset(Array1<const Index> slots, Array1<const std::uint64_t> seeds) const {
    check_slots(slots, seeds, state_.rng.size);
    fleet::reset(state_, settings_, demand_, days_, roads_.minutes.rows, slots, seeds);
  }

  void draw_requests(Array1<const double> busyness) const {
    require(busyness.size == state_.rng.size, "give one level of busyness for each slot");
    for (Index slot = 0; slot < busyness.size; ++slot) {
      fleet::draw_requests(state_, demand_, roads_.minutes.rows, slot, busyness[slot]);
    }
  }

  void step(Index begin, Index end, Array2<const Index> assignment, Array1<double> reward, Array1<bool> terminated,
            Array1<bool> truncated) const {
    fleet::step(state_, settings_, roads_, assignment, begin, end, {reward, terminated, truncated});
  }

  void observe(Index begin, Index end, Array3<float> agents, Array3<float> tasks, Array4<float> pairs,
               Array4<float> task_pairs, Array2<float> global, Array2<bool> task_alive, Array3<bool> allowed,
               Array3<double> prior) const {
    fleet::observe(state_, settings_, roads_, outlook_, begin, end,
                   {agents, tasks, pairs, task_pairs, global, task_alive, allowed, prior});
  }

  void send_greedily(Array2<Index> assignment) const { fleet::send_greedily(state_, settings_, roads_, assignment); }

  void score_flow(Index slot, Array2<const Index> requests, Array2<double> scores) const {
    fleet::score_flow(state_, settings_, roads_, slot, requests, scores);
  }

  Index find_bad_task(Array2<const Index> assignment) const { return first_bad_task(assignment, state_.pickups.columns); }

 private:
  NamedArrays arrays_;
  fleet::Settings settings_;
  fleet::Fleet state_;
  fleet::Roads roads_;
  fleet::Demand demand_;
  fleet::Days days_;
  fleet::Outlook outlook_;
};

}  // namespace

void bind_fleet(nb::module_& module) {
  nb::class_<BoundFleet> bound(module, "Fleet");
  bound.def(nb::init<nb::dict, Index, double, bool, double, double>(), "arrays"_a, nb::kw_only(), "wait"_a, "cost"_a,
            "evenly"_a, "unit"_a, "trip"_a);
  bind_method(bound, "reset", &BoundFleet::reset, "slots", "seeds");
  bind_method(bound, "draw_requests", &BoundFleet::draw_requests, "busyness");
  bind_method(bound, "step", &BoundFleet::step, "begin", "end", "assignment", "reward", "terminated", "truncated");
  bind_method(bound, "observe", &BoundFleet::observe, "begin", "end", "agents", "tasks", "pairs", "task_pairs",
              "global_features", "task_alive", "allowed", "prior");
  bind_method(bound, "send_greedily", &BoundFleet::send_greedily, "assignment");
  bind_method(bound, "score_flow", &BoundFleet::score_flow, "slot", "requests", "scores");
  bind_method(bound, "first_bad_task", &BoundFleet::find_bad_task, "assignment");
  bind_function(module, "meet", fleet::meet, "x", "rate");
  bind_function(module, "expect_worth", fleet::expect_worth, "expected", "shares", "margins", "minutes", "vehicles",
                "worth", "taking");
  module.attr("AHEAD") = fleet::kAhead;
  module.attr("HORIZON") = fleet::kHorizon;
}

}  // namespace muster
