#include "../../bindings.hpp"

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
            .pursuers = arrays_.get3<Index>("pursuers"),
            .evaders = arrays_.get3<Index>("evaders"),
            .free = arrays_.get2<bool>("free"),
            .moves = arrays_.get3<Index>("moves"),
            .targets = arrays_.get2<Index>("targets"),
            .rng = arrays_.get2<std::uint64_t>("rng"),
            .steps = arrays_.get1<Index>("steps"),
            .running = arrays_.get1<bool>("running"),
        } {}

  void reset(In1<const Index> slots, In1<const std::uint64_t> seeds) {
    check_slots(view(slots), view(seeds), state_.steps.size);
    nb::gil_scoped_release unlocked;
    pursuit::reset(state_, settings_, view(slots), view(seeds));
  }

  void step(Index begin, Index end, In2<const Index> assignment, In1<double> reward, In1<bool> terminated,
            In1<bool> truncated) {
    nb::gil_scoped_release unlocked;
    pursuit::step(state_, settings_, view(assignment), begin, end, {view(reward), view(terminated), view(truncated)});
  }

  void measure_distances(In3<double> prior) {
    nb::gil_scoped_release unlocked;
    pursuit::measure_distances(state_, settings_, view(prior));
  }

  void observe_coordinates(In3<float> agents, In3<float> tasks) {
    nb::gil_scoped_release unlocked;
    pursuit::observe_coordinates(state_, settings_, view(agents), view(tasks));
  }

  void observe_relations(In3<float> agents, In3<float> tasks, In4<float> pairs, In4<float> task_pairs) {
    nb::gil_scoped_release unlocked;
    pursuit::observe_relations(state_, settings_, view(agents), view(tasks), view(pairs), view(task_pairs));
  }

  Index find_bad_task(In2<const Index> assignment) { return first_bad_task(assignment, state_.evaders.rows); }

 private:
  NamedArrays arrays_;
  pursuit::Settings settings_;
  pursuit::Pursuit state_;
};

}  // namespace

void bind_pursuit(nb::module_& room) {
  nb::class_<BoundPursuit>(room, "Pursuit")
      .def(nb::init<nb::dict, Index, Index, bool, Index, Index, double, Index>(), "arrays"_a, nb::kw_only(), "height"_a,
           "width"_a, "walls"_a, "needed"_a, "sight"_a, "speed"_a, "max_steps"_a)
      .def("reset", &BoundPursuit::reset, "slots"_a, "seeds"_a)
      .def("step", &BoundPursuit::step, "begin"_a, "end"_a, "assignment"_a, "reward"_a.noconvert(),
           "terminated"_a.noconvert(), "truncated"_a.noconvert())
      .def("measure_distances", &BoundPursuit::measure_distances, "prior"_a.noconvert())
      .def("observe_coordinates", &BoundPursuit::observe_coordinates, "agents"_a.noconvert(), "tasks"_a.noconvert())
      .def("observe_relations", &BoundPursuit::observe_relations, "agents"_a.noconvert(), "tasks"_a.noconvert(),
           "pairs"_a.noconvert(), "task_pairs"_a.noconvert())
      .def("first_bad_task", &BoundPursuit::find_bad_task, "assignment"_a);
  room.def(
      "send_to_closest",
      [](In3<const Index> distances, In2<const bool> free, In1<std::uint64_t> rng, In2<Index> assignment) {
        nb::gil_scoped_release unlocked;
        pursuit::send_to_closest(view(distances), view(free), view(rng), view(assignment));
      },
      "distances"_a, "free"_a, "rng"_a.noconvert(), "assignment"_a.noconvert());
  room.def(
      "gather_greedily",
      [](In3<const Index> distances, In2<const bool> free, Index needed, In2<Index> assignment) {
        nb::gil_scoped_release unlocked;
        pursuit::gather_greedily(view(distances), view(free), needed, view(assignment));
      },
      "distances"_a, "free"_a, "needed"_a, "assignment"_a.noconvert());
}

}  // namespace muster
