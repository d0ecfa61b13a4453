// Bindings of the solver on few allowed pairs: muster._core.sparse.
#include "../bindings.hpp"
#include "augmenting_paths.hpp"
#include "subgradient_search.hpp"

namespace muster {

namespace {

struct PairArrays {
  Numpy<const Index, 1> first, task;
  Numpy<const double, 1> score, use, capacity;
  double idle;

  Pairs view() const {
    return {muster::view(first), muster::view(task), muster::view(score), muster::view(use), muster::view(capacity), idle};
  }
};

}  // namespace

void bind_sparse(nb::module_& module) {
  nb::class_<PairArrays>(module, "Pairs")
      .def(nb::init<Numpy<const Index, 1>, Numpy<const Index, 1>, Numpy<const double, 1>, Numpy<const double, 1>,
                    Numpy<const double, 1>, double>(),
           "first"_a, "task"_a, "score"_a, "use"_a, "capacity"_a, "idle"_a);
  module.def(
      "solve_by_augmenting_paths",
      [](const PairArrays& pairs, const Numpy<Index, 1>& chosen, const Numpy<double, 1>& price,
         const Numpy<Index, 1>& flag, double seconds) {
        bool done = false;
        run_stoppable(view(flag), seconds, [&](Stop& stop) {
          done = solve_by_augmenting_paths(pairs.view(), view(chosen), view(price), stop);
        });
        return done;
      },
      "pairs"_a, "chosen"_a.noconvert(), "price"_a.noconvert(), "stop"_a.noconvert(), "seconds"_a);
  module.def(
      "search_assignment",
      [](const PairArrays& pairs, const Numpy<const Index, 1>& start, const Numpy<Index, 1>& chosen,
         const Numpy<double, 1>& price, const Numpy<Index, 1>& flag, double seconds) {
        run_stoppable(view(flag), seconds, [&](Stop& stop) {
          search_assignment(pairs.view(), view(start), view(chosen), view(price), stop);
        });
      },
      "pairs"_a, "start"_a, "chosen"_a.noconvert(), "price"_a.noconvert(), "stop"_a.noconvert(), "seconds"_a);
}

}  // namespace muster
