// Package grid holds the nouns of the mesh: sites, jobs, tasks, resources,
// requirements, offers and the reasons for a refusal. It only describes and
// validates; it decides nothing. Every other room speaks in these words (see
// docs/nomenclature.md), so the package imports nothing of the project.
//
// Units: memory, disk and data in bytes; computation in MFLOP/s (10^6
// floating-point operations per second); links in bit/s; processors in
// thousandths of a core. Quantities that are planned with are integers, so that
// reserving and releasing never drifts; the indices of pkg/index are float64.
package grid
