// Package vectors is tests only.
package vectors
