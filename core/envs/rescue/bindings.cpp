#include "../../bindings.hpp"

#include "../slots.hpp"
#include "baselines.hpp"
#include "makespan.hpp"
#include "observe.hpp"
#include "rescue.hpp"

namespace muster {

namespace {

// Episodes in numpy's arrays: named as in `RescueEnv.arrays`, with empty ones for dry ground.
class BoundRescue {
 public:
  BoundRescue(nb::dict arrays, Index placement, Index height, Index width, bool random_moves, bool solved_assignable,
              Index max_steps, double mud)
      : arrays_(std::move(arrays)),
        settings_{static_cast<rescue::Placement>(placement), height, width, random_moves, solved_assignable, max_steps, mud},
        state_{
            .rng = arrays_.get1<std::uint64_t>("rng"),
            .agents = arrays_.get3<Index>("agent_cells"),
            .victims = arrays_.get3<Index>("task_cells"),
            .waiting = arrays_.get2<bool>("waiting"),
            .steps = arrays_.get1<Index>("steps"),
            .running = arrays_.get1<bool>("running"),
            .assigned = arrays_.get2<Index>("assigned"),
            .ground = {},
        } {
    if (mud > 0.0) {
      state_.ground = {arrays_.get3<bool>("muddy"), arrays_.get3<std::uint8_t>("look"), arrays_.get2<Index>("held")};
    }
  }

  void reset(In1<const Index> slots, In1<const std::uint64_t> seeds) {
    check_slots(view(slots), view(seeds), state_.rng.size);
    nb::gil_scoped_release unlocked;
    rescue::reset(state_, settings_, view(slots), view(seeds));
  }

  void step(Index begin, Index end, In2<const Index> assignment, In1<double> reward, In1<bool> terminated,
            In1<bool> truncated) {
    nb::gil_scoped_release unlocked;
    rescue::step(state_, settings_, view(assignment), begin, end, {view(reward), view(terminated), view(truncated)});
  }

  void redraw_mud() {
    nb::gil_scoped_release unlocked;
    rescue::redraw_mud(state_.ground, state_.rng, settings_.mud);
  }

  Index find_bad_task(In2<const Index> assignment) { return first_bad_task(assignment, state_.victims.rows); }

 private:
  NamedArrays arrays_;
  rescue::Settings settings_;
  rescue::Rescue state_;
};

Index fastest_routes(In2<const Index> from_vehicles, In2<const Index> between, In2<Index> routes) {
  Index makespan;
  {
    nb::gil_scoped_release unlocked;
    Stop stop(nullptr);
    makespan = rescue::find_fastest_routes(view(from_vehicles), view(between), view(routes), stop);
  }
  raise_pending();
  return makespan;
}

}  // namespace

void bind_rescue(nb::module_& room) {
  nb::class_<BoundRescue>(room, "Rescue")
      .def(nb::init<nb::dict, Index, Index, Index, bool, bool, Index, double>(), "arrays"_a, nb::kw_only(), "placement"_a,
           "height"_a, "width"_a, "random_moves"_a, "solved_assignable"_a, "max_steps"_a, "mud"_a)
      .def("reset", &BoundRescue::reset, "slots"_a, "seeds"_a)
      .def("step", &BoundRescue::step, "begin"_a, "end"_a, "assignment"_a, "reward"_a.noconvert(),
           "terminated"_a.noconvert(), "truncated"_a.noconvert())
      .def("redraw_mud", &BoundRescue::redraw_mud)
      .def("first_bad_task", &BoundRescue::find_bad_task, "assignment"_a);
  room.def(
      "observe_objects",
      [](In3<const Index> agents, In3<const Index> victims, In2<const bool> waiting, Index height, Index width,
         In3<float> agent_features, In3<float> task_features) {
        nb::gil_scoped_release unlocked;
        rescue::observe_objects(view(agents), view(victims), view(waiting), height, width, view(agent_features),
                                view(task_features));
      },
      "agents"_a, "victims"_a, "waiting"_a, "height"_a, "width"_a, "agent_features"_a.noconvert(),
      "task_features"_a.noconvert());
  room.def(
      "observe_pairs",
      [](In3<const Index> sources, In3<const Index> targets, In4<float> features) {
        nb::gil_scoped_release unlocked;
        rescue::observe_pairs(view(sources), view(targets), view(features));
      },
      "sources"_a, "targets"_a, "features"_a.noconvert());
  room.def(
      "measure_distances",
      [](In3<const Index> sources, In3<const Index> targets, double scale, In3<double> distances) {
        nb::gil_scoped_release unlocked;
        rescue::measure_distances(view(sources), view(targets), scale, view(distances));
      },
      "sources"_a, "targets"_a, "scale"_a, "distances"_a.noconvert());
  room.def(
      "draw_planes",
      [](In3<const Index> agents, In3<const Index> victims, In2<const bool> waiting, In4<float> planes) {
        nb::gil_scoped_release unlocked;
        rescue::draw_planes(view(agents), view(victims), view(waiting), view(planes));
      },
      "agents"_a, "victims"_a, "waiting"_a, "planes"_a.noconvert());
  room.def(
      "count_mud",
      [](In3<const Index> sources, In3<const Index> targets, In2<const double> first, In3<const bool> muddy,
         In3<double> counts) {
        nb::gil_scoped_release unlocked;
        rescue::count_mud(view(sources), view(targets), view(first), view(muddy), view(counts));
      },
      "sources"_a, "targets"_a, "first"_a, "muddy"_a, "counts"_a.noconvert());
  room.def(
      "send_to_closest",
      [](In3<const Index> agents, In3<const Index> victims, In2<const bool> open, bool manhattan, In1<std::uint64_t> rng,
         In2<Index> assignment) {
        nb::gil_scoped_release unlocked;
        rescue::send_to_closest(view(agents), view(victims), view(open), manhattan, view(rng), view(assignment));
      },
      "agents"_a, "victims"_a, "open"_a, "manhattan"_a, "rng"_a.noconvert(), "assignment"_a.noconvert());
  room.def(
      "follow_routes",
      [](In3<const Index> routes, In2<const bool> waiting, In2<Index> assignment) {
        nb::gil_scoped_release unlocked;
        rescue::follow_routes(view(routes), view(waiting), view(assignment));
      },
      "routes"_a, "waiting"_a, "assignment"_a.noconvert());
  room.def("fastest_routes", &fastest_routes, "from_vehicles"_a, "between"_a, "routes"_a.noconvert());
  room.attr("HELD_UP") = rescue::kHeldUp;
  room.attr("LOOKS_MUDDY") = static_cast<int>(rescue::kLooksMuddy);
  room.attr("KNOWN") = static_cast<int>(rescue::kKnown);
}

}  // namespace muster
