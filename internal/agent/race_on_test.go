//go:build race

package agent_test

// raceDetector says whether the tests run under the race detector, which makes
// whole meshes in one process some ten times slower.
const raceDetector = true
