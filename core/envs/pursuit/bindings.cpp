// Bindings of pursuit: muster._core.pursuit.
#include "../slots.hpp"
#include "baselines.hpp"
#include "observe.hpp"
#include "pursuit.hpp"

namespace muster {

namespace {

// Episodes in numpy's arrays, named as in `PursuitEnv.arrays`.
class BoundPursuit {
 public:
  BoundPursuit(nb::dict arrays, Index height, Index width, bool walls, Index needed, Index sight, double speed,
               Index max_steps)
      : arrays_(std::move(arrays)),
        settings_{height, width, walls, needed, sight, speed, max_steps},
        state_{
            .pursuers = arrays_["pursuers"],
            .evaders = arrays_["evaders"],
            .free = arrays_["free"],
            .moves = arrays_["moves"],
            .targets = arrays_["targets"],
            .rng = arrays_["rng"],
            .steps = arrays_["steps"],
            .running = arrays_["running"],
        } {}

  void reset(Array1<const Index> slots, Array1<const std::uint64_t> seeds) const {
    check_slots(slots, seeds, state_.steps.size);
    pursuit::reset(state_, settings_, slots, seeds);
  }

  void step(Index begin, Index end, Array2<const Index> assignment, Array1<double> reward, Array1<bool> terminated,
            Array1<bool> truncated) const {
    pursuit::step(state_, settings_, assignment, begin, end, {reward, terminated, truncated});
  }

  void measure_distances(Array3<double> prior) const { pursuit::measure_distances(state_, settings_, prior); }

  void observe_coordinates(Array3<float> agents, Array3<float> tasks) const {
    pursuit::observe_coordinates(state_, settings_, agents, tasks);
  }

  void observe_relations(Array3<float> agents, Array3<float> tasks, Array4<float> pairs, Array4<float> task_pairs) const {
    pursuit::observe_relations(state_, settings_, agents, tasks, pairs, task_pairs);
  }

  Index find_bad_task(Array2<const Index> assignment) const { return first_bad_task(assignment, state_.evaders.rows); }

 private:
  NamedArrays arrays_;
  pursuit::Settings settings_;
  pursuit::Pursuit state_;
};

}  // namespace

void bind_pursuit(nb::module_& module) {
  nb::class_<BoundPursuit> bound(module, "Pursuit");
  bound.def(nb::init<nb::dict, Index, Index, bool, Index, Index, double, Index>(), "arrays"_a, nb::kw_only(), "height"_a,
            "width"_a, "walls"_a, "needed"_a, "sight"_a, "speed"_a, "max_steps"_a);
  bind_method(bound, "reset", &BoundPursuit::reset, "slots", "seeds");
  bind_method(bound, "step", &BoundPursuit::step, "begin", "end", "assignment", "reward", "terminated", "truncated");
  bind_method(bound, "measure_distances", &BoundPursuit::measure_distances, "prior");
  bind_method(bound, "observe_coordinates", &BoundPursuit::observe_coordinates, "agents", "tasks");
  bind_method(bound, "observe_relations", &BoundPursuit::observe_relations, "agents", "tasks", "pairs", "task_pairs");
  bind_method(bound, "first_bad_task", &BoundPursuit::find_bad_task, "assignment");
  bind_function(module, "send_to_closest", pursuit::send_to_closest, "distances", "free", "rng", "assignment");
  bind_function(module, "gather_greedily", pursuit::gather_greedily, "distances", "free", "needed", "assignment");
}

}  // namespace muster
