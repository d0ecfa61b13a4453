// Bindings of search and rescue: muster._core.rescue.
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
            .rng = arrays_["rng"],
            .agents = arrays_["agent_cells"],
            .victims = arrays_["task_cells"],
            .waiting = arrays_["waiting"],
            .steps = arrays_["steps"],
            .running = arrays_["running"],
            .assigned = arrays_["assigned"],
            .ground = {},
        } {
    if (mud > 0.0) state_.ground = {.muddy = arrays_["muddy"], .look = arrays_["look"], .held = arrays_["held"]};
  }

  void reset(Array1<const Index> slots, Array1<const std::uint64_t> seeds) const {
    check_slots(slots, seeds, state_.rng.size);
    rescue::reset(state_, settings_, slots, seeds);
  }

  void step(Index begin, Index end, Array2<const Index> assignment, Array1<double> reward, Array1<bool> terminated,
            Array1<bool> truncated) const {
    rescue::step(state_, settings_, assignment, begin, end, {reward, terminated, truncated});
  }

  void redraw_mud() const { rescue::redraw_mud(state_.ground, state_.rng, settings_.mud); }

  Index find_bad_task(Array2<const Index> assignment) const { return first_bad_task(assignment, state_.victims.rows); }

 private:
  NamedArrays arrays_;
  rescue::Settings settings_;
  rescue::Rescue state_;
};

Index fastest_routes(Numpy<const Index, 2> from_vehicles, Numpy<const Index, 2> between, Numpy<Index, 2> routes) {
  Index makespan = -1;
  run_stoppable({}, std::numeric_limits<double>::infinity(), [&](Stop& stop) {
    makespan = rescue::find_fastest_routes(view(from_vehicles), view(between), view(routes), stop);
  });
  return makespan;
}

}  // namespace

void bind_rescue(nb::module_& module) {
  nb::class_<BoundRescue> bound(module, "Rescue");
  bound.def(nb::init<nb::dict, Index, Index, Index, bool, bool, Index, double>(), "arrays"_a, nb::kw_only(), "placement"_a,
            "height"_a, "width"_a, "random_moves"_a, "solved_assignable"_a, "max_steps"_a, "mud"_a);
  bind_method(bound, "reset", &BoundRescue::reset, "slots", "seeds");
  bind_method(bound, "step", &BoundRescue::step, "begin", "end", "assignment", "reward", "terminated", "truncated");
  bind_method(bound, "redraw_mud", &BoundRescue::redraw_mud);
  bind_method(bound, "first_bad_task", &BoundRescue::find_bad_task, "assignment");
  bind_function(module, "observe_objects", rescue::observe_objects, "agents", "victims", "waiting", "height", "width",
                "agent_features", "task_features");
  bind_function(module, "observe_pairs", rescue::observe_pairs, "sources", "targets", "features");
  bind_function(module, "measure_distances", rescue::measure_distances, "sources", "targets", "scale", "distances");
  bind_function(module, "draw_planes", rescue::draw_planes, "agents", "victims", "waiting", "planes");
  bind_function(module, "count_mud", rescue::count_mud, "sources", "targets", "first", "muddy", "counts");
  bind_function(module, "send_to_closest", rescue::send_to_closest, "agents", "victims", "open", "manhattan", "rng",
                "assignment");
  bind_function(module, "follow_routes", rescue::follow_routes, "routes", "waiting", "assignment");
  module.def("fastest_routes", &fastest_routes, "from_vehicles"_a, "between"_a, "routes"_a.noconvert());
  module.attr("HELD_UP") = rescue::kHeldUp;
  module.attr("LOOKS_MUDDY") = static_cast<int>(rescue::kLooksMuddy);
  module.attr("KNOWN") = static_cast<int>(rescue::kKnown);
}

}  // namespace muster
