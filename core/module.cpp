// The extension module: one submodule for each folder of kernels.
#include <utility>

#include "bindings.hpp"

namespace muster {

void bind_assign(nb::module_& module);
void bind_routes(nb::module_& module);
void bind_sparse(nb::module_& module);
void bind_rescue(nb::module_& module);
void bind_battle(nb::module_& module);
void bind_fleet(nb::module_& module);
void bind_pursuit(nb::module_& module);
void bind_models(nb::module_& module);
void bind_learning(nb::module_& module);
void bind_service(nb::module_& module);

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
  const std::pair<const char*, void (*)(nanobind::module_&)> submodules[] = {
      {"assign", muster::bind_assign},
      {"routes", muster::bind_routes},
      {"sparse", muster::bind_sparse},
      {"rescue", muster::bind_rescue},
      {"battle", muster::bind_battle},
      {"fleet", muster::bind_fleet},
      {"pursuit", muster::bind_pursuit},
      {"models", muster::bind_models},
      {"learning", muster::bind_learning},
      {"service", muster::bind_service},
  };
  for (const auto& [name, bind] : submodules) {
    auto submodule = core.def_submodule(name);
    bind(submodule);
  }
}
