//go:build race

package wasm_test

// raceDetector says whether the tests, and with them the runners that they start
// again, are built with the race detector.
const raceDetector = true
