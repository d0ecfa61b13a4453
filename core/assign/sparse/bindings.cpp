#include "../bindings.hpp"
#include "augmenting_paths.hpp"
#include "subgradient_search.hpp"

namespace muster {

namespace {

struct PairArrays {
  In1<const Index> first, task;
  In1<const double> score, use, capacity;
  Pairs view;
};

}  // namespace

void bind_sparse(nb::module_& room) {
  nb::class_<PairArrays>(room, "Pairs")
      .def(
          "__init__",
          [](PairArrays* self, In1<const Index> first, In1<const Index> task, In1<const double> score,
             In1<const double> use, In1<const double> capacity, double idle) {
            const Pairs pairs{muster::view(first), muster::view(task),     muster::view(score),
                              muster::view(use),   muster::view(capacity), idle};
            new (self) PairArrays{first, task, score, use, capacity, pairs};
          },
          "first"_a, "task"_a, "score"_a, "use"_a, "capacity"_a, "idle"_a);
  room.def(
      "solve_by_augmenting_paths",
      [](const PairArrays& pairs, In1<Index> chosen, In1<double> price, In1<Index> stop, double seconds) {
        bool done = false;
        {
          nb::gil_scoped_release release;
          Stop flag(flag_of(stop), seconds);
          done = solve_by_augmenting_paths(pairs.view, view(chosen), view(price), flag);
        }
        raise_pending();
        return done;
      },
      "pairs"_a, "chosen"_a.noconvert(), "price"_a.noconvert(), "stop"_a.noconvert(), "seconds"_a,
      "Best pair of each agent where all take one slot, and prices that prove it; False if stopped.");
  room.def(
      "search_assignment",
      [](const PairArrays& pairs, In1<const Index> start, In1<Index> chosen, In1<double> price, In1<Index> stop,
         double seconds) {
        double bound = 0.0;
        {
          nb::gil_scoped_release release;
          Stop flag(flag_of(stop), seconds);
          bound = search_assignment(pairs.view, view(start), view(chosen), view(price), flag);
        }
        raise_pending();
        return bound;
      },
      "pairs"_a, "start"_a, "chosen"_a.noconvert(), "price"_a.noconvert(), "stop"_a.noconvert(), "seconds"_a,
      "Good pair of each agent for contributions of any kind, and prices; returns the bound that they prove.");
}

}  // namespace muster
