//go:build !linux

package main

import "errors"

var errNoDisk = errors.New("small disks need Linux")

func mountDisk(string, int64) error { return errNoDisk }

func unmountDisk(string) error { return errNoDisk }

func fillDisk(string) error { return errNoDisk }

func relieveDisk(string) error { return errNoDisk }
