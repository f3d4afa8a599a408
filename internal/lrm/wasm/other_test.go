//go:build !linux

package wasm_test

import "errors"

func behindWall(string, string) error { return errors.ErrUnsupported }
