//go:build !linux

package supervise

import "time"

func adoptOrphans() {}

func endOrphans(time.Duration) {}

func freezeTree(int, string) error { return ErrUnsupported }

func resumeTree(int, string, bool) error { return ErrUnsupported }

func killTree(root int, _ string) { killGroup(root) }

type member struct{}

func descendants(int) []member { return nil }

func nearby(int) []member { return nil }

func lowerTree([]member, bool) {}

func treeMemory([]member, int64) int64 { return 0 }

func ownMemory([]member) int64 { return 0 }

func namelessUse([]member) (disk, memory int64) { return 0, 0 }

type room struct{ bytes, files int64 }

func roomOf(string) (room, bool) { return room{}, false }

type machine struct {
	memory    int64
	processes int
}

func machineNow() (machine, bool) { return machine{}, false }
