// The extension module: one submodule for each room of the Python package that has compiled code.
#include "bindings.hpp"

namespace muster {

void bind_assign(nb::module_& room);
void bind_routes(nb::module_& room);
void bind_sparse(nb::module_& room);
void bind_rescue(nb::module_& room);
void bind_battle(nb::module_& room);
void bind_fleet(nb::module_& room);
void bind_pursuit(nb::module_& room);
void bind_models(nb::module_& room);
void bind_learning(nb::module_& room);
void bind_service(nb::module_& room);

}  // namespace muster

NB_MODULE(MUSTER_MODULE, core) {
  // A call that is interrupted leaves its objects to the frames of the exception, which may live until the very end.
  nanobind::set_leak_warnings(false);
  core.doc() = "Compiled kernels of muster; call them through the Python modules of the same names.";
#if defined(__x86_64__) && defined(__GNUC__)
  core.attr("supports_v3") = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma");
#else
  core.attr("supports_v3") = false;
#endif
  {
    auto room = core.def_submodule("assign");
    muster::bind_assign(room);
  }
  {
    auto room = core.def_submodule("routes");
    muster::bind_routes(room);
  }
  {
    auto room = core.def_submodule("sparse");
    muster::bind_sparse(room);
  }
  {
    auto room = core.def_submodule("rescue");
    muster::bind_rescue(room);
  }
  {
    auto room = core.def_submodule("battle");
    muster::bind_battle(room);
  }
  {
    auto room = core.def_submodule("fleet");
    muster::bind_fleet(room);
  }
  {
    auto room = core.def_submodule("pursuit");
    muster::bind_pursuit(room);
  }
  {
    auto room = core.def_submodule("models");
    muster::bind_models(room);
  }
  {
    auto room = core.def_submodule("learning");
    muster::bind_learning(room);
  }
  {
    auto room = core.def_submodule("service");
    muster::bind_service(room);
  }
}
