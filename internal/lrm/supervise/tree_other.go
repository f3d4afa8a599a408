//go:build !linux

package supervise

import "time"

func adoptOrphans() {}

func endOrphans(time.Duration) {}

func freezeTree(int, string) error { return ErrUnsupported }

func resumeTree(int, string) error { return ErrUnsupported }

func killTree(root int, _ string) { killGroup(root) }

func lowerTree(int, bool) {}

func treeCount(int) int { return 0 }

func treeMemory(int, int64) int64 { return 0 }

func ownMemory(int) int64 { return 0 }

func namelessUse(int) (disk, memory int64) { return 0, 0 }
