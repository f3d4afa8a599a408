// Package vectors holds tests that compare the mathematics of pkg/ with numbers
// computed by a second, independent implementation of the same papers; it has no
// code of its own. docs/papers.md says which family of numbers belongs to which
// equation.
//
// The numbers are in testdata/vectors, one JSON file for each family; the variable
// MRS_VECTORS names another directory by its absolute path. Numbers that JSON cannot
// write are the strings "NaN", "+Inf" and "-Inf"; null stands for unknown or not
// required. Two numbers agree within a relative error of 1e-9 or an absolute one of
// 1e-12; integers, names, lists of them, truth values and null agree exactly. A file of a
// family that is not known here fails the test.
package vectors
