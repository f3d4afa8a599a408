//go:build !linux

package store

import bolt "go.etcd.io/bbolt"

// letGo leaves it to the system which pages of a database stay in memory.
func letGo(*bolt.DB) {}
