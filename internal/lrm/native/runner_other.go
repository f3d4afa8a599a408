//go:build !linux

package native

import "github.com/mrsmesh/mrsmesh/internal/lrm/supervise"

func become(job) error { return supervise.ErrUnsupported }

func countsInside() bool { return false }
