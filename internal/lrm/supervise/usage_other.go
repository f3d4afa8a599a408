//go:build !linux

package supervise

import "time"

func processTime(int) (time.Duration, bool) { return 0, false }

func (s *Spec) runnerTime(int) (time.Duration, bool) { return 0, false }
