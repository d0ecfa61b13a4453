// What the bindings share: numpy arrays in, views out, the interpreter's lock released while a kernel runs.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>

#include "array.hpp"
#include "stop.hpp"

namespace muster {

namespace nb = nanobind;
using namespace nb::literals;

template <class T>
using In1 = nb::ndarray<T, nb::numpy, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using In2 = nb::ndarray<T, nb::numpy, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using In3 = nb::ndarray<T, nb::numpy, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
template <class T>
using In4 = nb::ndarray<T, nb::numpy, nb::ndim<4>, nb::c_contig, nb::device::cpu>;

inline Index extent(std::size_t size) { return static_cast<Index>(size); }

template <class T>
Array1<T> view(const In1<T>& array) {
  return {array.data(), extent(array.shape(0))};
}
template <class T>
Array2<T> view(const In2<T>& array) {
  return {array.data(), extent(array.shape(0)), extent(array.shape(1))};
}
template <class T>
Array3<T> view(const In3<T>& array) {
  return {array.data(), extent(array.shape(0)), extent(array.shape(1)), extent(array.shape(2))};
}
template <class T>
Array4<T> view(const In4<T>& array) {
  return {array.data(), extent(array.shape(0)), extent(array.shape(1)), extent(array.shape(2)), extent(array.shape(3))};
}

// Raise in Python what a signal handler raised while a kernel ran (Ctrl-C): call it with the lock, after the kernel.
inline void raise_pending() {
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
}

}  // namespace muster
