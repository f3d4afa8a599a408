// Package grid has two docs.
package grid
