#include "../../bindings.hpp"

#include <nanobind/stl/pair.h>

#include "../slots.hpp"
#include "fleet.hpp"
#include "hindsight.hpp"
#include "observe.hpp"
#include "worth.hpp"

namespace muster {

namespace {

// Episodes in numpy's arrays: the state, named as in `FleetEnv.arrays`, and what is known of the city.
class BoundFleet {
 public:
  BoundFleet(nb::dict arrays, Index wait, double cost, bool evenly, double unit, double trip)
      : arrays_(std::move(arrays)),
        settings_{wait, cost, evenly},
        state_{
            .rng = arrays_.get1<std::uint64_t>("rng"),
            .minute = arrays_.get1<Index>("minute"),
            .running = arrays_.get1<bool>("running"),
            .zone = arrays_.get2<Index>("zone"),
            .free = arrays_.get2<Index>("free"),
            .first = arrays_.get2<Index>("first"),
            .held = arrays_.get2<Index>("held"),
            .number = arrays_.get2<Index>("number"),
            .stops = arrays_.get3<Index>("stops"),
            .taken = arrays_.get2<Index>("taken"),
            .pickups = arrays_.get3<fleet::Zone>("pickups"),
            .dropoffs = arrays_.get3<fleet::Zone>("dropoffs"),
            .lost = arrays_.get1<Index>("lost"),
            .earned = arrays_.get1<double>("earned"),
            .served = arrays_.get1<Index>("served"),
            .seen = arrays_.get1<Index>("seen"),
            .empty = arrays_.get1<double>("empty"),
        },
        roads_{arrays_.get2<const double>("metres"), arrays_.get2<const Index>("minutes"),
               arrays_.get2<const double>("fares")},
        demand_{arrays_.get1<const double>("expected"), arrays_.get1<const double>("cumulative"),
                arrays_.get1<const double>("busyness")},
        days_{arrays_.get3<const fleet::Zone>("day_pickups"), arrays_.get3<const fleet::Zone>("day_dropoffs"),
              arrays_.get1<const Index>("day_lost")},
        outlook_{arrays_.get1<const double>("usual"),
                 arrays_.get1<const double>("origins"),
                 arrays_.get2<const double>("worth"),
                 arrays_.get2<const double>("taking"),
                 unit,
                 trip} {}

  void reset(In1<const Index> slots, In1<const std::uint64_t> seeds) {
    check_slots(view(slots), view(seeds), state_.rng.size);
    nb::gil_scoped_release unlocked;
    fleet::reset(state_, settings_, demand_, days_, roads_.minutes.rows, view(slots), view(seeds));
  }

  void draw_requests(In1<const double> busyness) {
    if (extent(busyness.size()) != state_.rng.size) throw nb::value_error("give one level of busyness for each slot");
    nb::gil_scoped_release unlocked;
    for (Index slot = 0; slot < state_.rng.size; ++slot) {
      fleet::draw_requests(state_, demand_, roads_.minutes.rows, slot, busyness.data()[slot]);
    }
  }

  void step(Index begin, Index end, In2<const Index> assignment, In1<double> reward, In1<bool> terminated,
            In1<bool> truncated) {
    nb::gil_scoped_release unlocked;
    fleet::step(state_, settings_, roads_, view(assignment), begin, end, {view(reward), view(terminated), view(truncated)});
  }

  void observe(Index begin, Index end, In3<float> agents, In3<float> tasks, In4<float> pairs, In4<float> task_pairs,
               In2<float> global, In2<bool> task_alive, In3<bool> allowed, In3<double> prior) {
    const fleet::Features features{view(agents), view(tasks),      view(pairs),   view(task_pairs),
                                   view(global), view(task_alive), view(allowed), view(prior)};
    nb::gil_scoped_release unlocked;
    fleet::observe(state_, settings_, roads_, outlook_, begin, end, features);
  }

  void send_greedily(In2<Index> assignment) {
    nb::gil_scoped_release unlocked;
    fleet::send_greedily(state_, settings_, roads_, view(assignment));
  }

  void score_flow(Index slot, In2<const Index> requests, In2<double> scores) {
    nb::gil_scoped_release unlocked;
    fleet::score_flow(state_, settings_, roads_, slot, view(requests), view(scores));
  }

  Index find_bad_task(In2<const Index> assignment) { return first_bad_task(assignment, state_.pickups.columns); }

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

void bind_fleet(nb::module_& room) {
  nb::class_<BoundFleet>(room, "Fleet")
      .def(nb::init<nb::dict, Index, double, bool, double, double>(), "arrays"_a, nb::kw_only(), "wait"_a, "cost"_a,
           "evenly"_a, "unit"_a, "trip"_a)
      .def("reset", &BoundFleet::reset, "slots"_a, "seeds"_a)
      .def("draw_requests", &BoundFleet::draw_requests, "busyness"_a)
      .def("step", &BoundFleet::step, "begin"_a, "end"_a, "assignment"_a, "reward"_a.noconvert(),
           "terminated"_a.noconvert(), "truncated"_a.noconvert())
      .def("observe", &BoundFleet::observe, "begin"_a, "end"_a, "agents"_a.noconvert(), "tasks"_a.noconvert(),
           "pairs"_a.noconvert(), "task_pairs"_a.noconvert(), "global_features"_a.noconvert(), "task_alive"_a.noconvert(),
           "allowed"_a.noconvert(), "prior"_a.noconvert())
      .def("send_greedily", &BoundFleet::send_greedily, "assignment"_a.noconvert())
      .def("score_flow", &BoundFleet::score_flow, "slot"_a, "requests"_a, "scores"_a.noconvert())
      .def("first_bad_task", &BoundFleet::find_bad_task, "assignment"_a);
  room.def("meet", &fleet::meet, "x"_a, "rate"_a);
  room.def(
      "expect_worth",
      [](In2<const double> expected, In2<const double> shares, In2<const double> margins, In2<const Index> minutes,
         double vehicles, In2<double> worth, In2<double> taking) {
        nb::gil_scoped_release unlocked;
        fleet::expect_worth(view(expected), view(shares), view(margins), view(minutes), vehicles, view(worth), view(taking));
      },
      "expected"_a, "shares"_a, "margins"_a, "minutes"_a, "vehicles"_a, "worth"_a.noconvert(), "taking"_a.noconvert());
  room.attr("AHEAD") = fleet::kAhead;
  room.attr("HORIZON") = fleet::kHorizon;
}

}  // namespace muster
