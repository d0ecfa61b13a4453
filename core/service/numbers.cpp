// Numbers in nested lists of Python as an array: a body of the service has thousands, and Python takes its time at each.
#include <cmath>
#include <cstdint>
#include <vector>

#include <nanobind/stl/vector.h>

#include "bindings.hpp"

namespace muster {
namespace {

// Lists within lists of a shape, written out in order; false where anything is not a list of its length or a number.
struct Reader {
  const std::vector<std::int64_t>& shape;
  double largest;
  bool null_allowed;
  double null;
  double* out;

  bool read(PyObject* value, std::size_t axis) {
    if (axis == shape.size()) return read_number(value);
    if (!PyList_CheckExact(value) || PyList_GET_SIZE(value) != shape[axis]) return false;
    for (std::int64_t k = 0; k < shape[axis]; ++k) {
      if (!read(PyList_GET_ITEM(value, k), axis + 1)) return false;
    }
    return true;
  }

  // Exact types: true and false are numbers to Python.
  bool read_number(PyObject* value) {
    double found = 0.0;
    if (PyFloat_CheckExact(value)) {
      found = PyFloat_AS_DOUBLE(value);
    } else if (PyLong_CheckExact(value)) {
      found = PyLong_AsDouble(value);
      if (found == -1.0 && PyErr_Occurred() != nullptr) {
        PyErr_Clear();
        return false;
      }
    } else if (null_allowed && value == Py_None) {
      *out++ = null;
      return true;
    } else {
      return false;
    }
    if (!(std::abs(found) <= largest)) return false;
    *out++ = found;
    return true;
  }
};

bool read_numbers(nb::handle value, const std::vector<std::int64_t>& shape, double largest, bool null_allowed,
                  double null, nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu> out) {
  std::int64_t size = 1;
  for (const std::int64_t length : shape) size *= length;
  if (size != static_cast<std::int64_t>(out.size())) throw nb::value_error("out does not have the shape's size");
  return Reader{shape, largest, null_allowed, null, out.data()}.read(value.ptr(), 0);
}

}  // namespace

void bind_service(nb::module_& room) {
  room.def("read_numbers", &read_numbers, nb::arg("value"), nb::arg("shape"), nb::arg("largest"), nb::arg("null_allowed"),
           nb::arg("null"), nb::arg("out").noconvert(),
           "Write the numbers in nested lists of a shape to `out`; whether all were finite numbers up to `largest`.");
}

}  // namespace muster
