//go:build !linux

package native

import "github.com/mrsmesh/mrsmesh/internal/lrm/supervise"

func rlimits(int64) map[int]uint64 { return nil }

func insideLimits(int64, int) map[int]uint64 { return nil }

func callFilter(bool) ([]byte, error) { return nil, nil }

func become(*supervise.Enclosure) error { return supervise.ErrUnsupported }

func keep() int { return exitFailed }

func countsInside() bool { return false }

func marked(string) bool { return true }
