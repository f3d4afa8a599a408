// Package reference makes a page for people out of an OpenAPI specification: each operation with
// its parameters, bodies and answers, and each schema with its fields. The page is one HTML file
// that needs nothing else, neither scripts nor another host.
//
// It understands as much of OpenAPI as the agent's specification uses, and refuses a reference
// that leads nowhere.
package reference
