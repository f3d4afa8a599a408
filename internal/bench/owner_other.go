//go:build !unix

package main

import "os/exec"

func asOwner(*exec.Cmd) {}

func giveToOwner(string) error { return nil }
