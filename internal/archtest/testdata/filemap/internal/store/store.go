// Package store has few files and no map.
package store
