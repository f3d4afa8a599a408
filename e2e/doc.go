// Package e2e tests the programs as users run them: it builds siteagent and
// submit, starts agents as processes of their own on loopback, submits real
// WebAssembly programs, kills what it likes, and counts what was lost. Its tests
// stand behind the build tag e2e: go test -tags=e2e ./e2e/.
package e2e
