// Package obs is fine.
package obs
