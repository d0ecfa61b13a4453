#include "../bindings.hpp"
#include "augmenting_paths.hpp"
#include "subgradient_search.hpp"

namespace muster {

namespace {

struct PairArrays {
  In1<const Index> first, task;
  In1<const double> score, use, capacity;
  double idle;

  Pairs view() const {
    return {muster::view(first), muster::view(task), muster::view(score), muster::view(use), muster::view(capacity), idle};
  }
};

}  // namespace

void bind_sparse(nb::module_& room) {
  nb::class_<PairArrays>(room, "Pairs")
      .def(nb::init<In1<const Index>, In1<const Index>, In1<const double>, In1<const double>, In1<const double>, double>(),
           "first"_a, "task"_a, "score"_a, "use"_a, "capacity"_a, "idle"_a);
  room.def(
      "solve_by_augmenting_paths",
      [](const PairArrays& pairs, const In1<Index>& chosen, const In1<double>& price, const In1<Index>& flag,
         double seconds) {
        bool done = false;
        run_stoppable(flag, seconds, [&](Stop& stop) {
          done = solve_by_augmenting_paths(pairs.view(), view(chosen), view(price), stop);
        });
        return done;
      },
      "pairs"_a, "chosen"_a.noconvert(), "price"_a.noconvert(), "stop"_a.noconvert(), "seconds"_a,
      "Best pair of each agent where all take one slot, and prices that prove it; False if stopped.");
  room.def(
      "search_assignment",
      [](const PairArrays& pairs, const In1<const Index>& start, const In1<Index>& chosen, const In1<double>& price,
         const In1<Index>& flag, double seconds) {
        run_stoppable(flag, seconds, [&](Stop& stop) {
          search_assignment(pairs.view(), view(start), view(chosen), view(price), stop);
        });
      },
      "pairs"_a, "start"_a, "chosen"_a.noconvert(), "price"_a.noconvert(), "stop"_a.noconvert(), "seconds"_a,
      "Good pair of each agent for contributions of any kind, and prices that bound what any assignment is worth.");
}

}  // namespace muster
