// Package freeport picks the ports on which the agents of a test listen.
//
// A port that the kernel picks belongs to those that it also gives to outgoing connections.
// Between the choice and the agent's start another agent's connection may take it, and the
// test fails on a busy machine and nowhere else.
package freeport

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// Of the ports from lowest to below highest no system gives one to an outgoing connection: Linux
// begins at 32768, macOS and Windows at 49152.
const (
	lowest  = 20000
	highest = 32000
)

// attempts are far more than are needed as long as one port in ten is free.
const attempts = 200

// Pick is a port on which nobody listens on the loopback address, neither by TCP nor by UDP.
// It is a random one: tests that run side by side do not meet.
func Pick() (int, error) {
	var last error
	for range attempts {
		port := lowest + rand.IntN(highest-lowest) //nolint:gosec // G404: a port is no secret
		if last = free(port); last == nil {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port from %d to %d: %w", lowest, highest-1, last)
}

// free reports by no error that both kinds of listener can have the port.
func free(port int) error {
	var config net.ListenConfig
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	stream, err := config.Listen(context.Background(), "tcp", addr)
	if err != nil {
		return err
	}
	packets, err := config.ListenPacket(context.Background(), "udp", addr)
	if err != nil {
		return errors.Join(err, stream.Close())
	}
	return errors.Join(stream.Close(), packets.Close())
}
