package api

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/api/socket"
)

// maxSocketPath is the longest path of a unix socket that every system allows, in bytes, with space
// for the temporary name: macOS takes 103.
const maxSocketPath = 99

// socketListener removes its own path when it closes. The standard listener
// would remove the temporary name it was made under.
type socketListener struct {
	*net.UnixListener
	path string
	file os.FileInfo
}

// Close closes the socket and removes its path, unless somebody else has put
// another one there.
func (l *socketListener) Close() error {
	if now, err := os.Lstat(l.path); err == nil && os.SameFile(now, l.file) {
		_ = os.Remove(l.path) // the next start replaces what is left
	}
	return l.UnixListener.Close()
}

// listenUnix opens a socket that only this user can use. It is made under a
// temporary name and moved to its place when its mode is set, so that nobody can
// slip in before. A dead agent's socket is replaced, a living one's is not.
func listenUnix(ctx context.Context, path string) (net.Listener, error) {
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf(
			"listen on socket %s: the path is longer than %d bytes; choose a shorter one", path,
			maxSocketPath,
		)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("make folder of socket: %w", err)
	}
	if err := socket.CheckFolder(path); err != nil {
		return nil, fmt.Errorf("listen on socket %s: %w", path, err)
	}
	if err := clearSocket(ctx, path); err != nil {
		return nil, err
	}
	temporary := path + ".new"
	_ = os.Remove(temporary) // left by an agent that was killed here
	var config net.ListenConfig
	plain, err := config.Listen(ctx, "unix", temporary)
	if err != nil {
		return nil, fmt.Errorf("listen on socket %s: %w", path, err)
	}
	unix, ok := plain.(*net.UnixListener)
	if !ok {
		return nil, fmt.Errorf("listen on socket %s: not a unix socket", path)
	}
	unix.SetUnlinkOnClose(false)
	file, err := place(temporary, path)
	if err != nil {
		return nil, errors.Join(err, unix.Close(), os.Remove(temporary))
	}
	return &socketListener{UnixListener: unix, path: path, file: file}, nil
}

func place(temporary, path string) (os.FileInfo, error) {
	if err := os.Chmod(temporary, 0o600); err != nil {
		return nil, fmt.Errorf("protect socket: %w", err)
	}
	if err := os.Rename(temporary, path); err != nil {
		return nil, fmt.Errorf("place socket: %w", err)
	}
	info, err := os.Lstat(path)
	if err != nil {
		return nil, fmt.Errorf("look at socket: %w", err)
	}
	return info, nil
}

// clearSocket makes sure that nobody listens at the path.
func clearSocket(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at socket: %w", err)
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf(
			"listen on socket %s: a file that is no socket is there; remove it or choose another path", path,
		)
	}
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(ctx, "unix", path)
	if err != nil {
		return nil //nolint:nilerr // nobody answers: it may be replaced
	}
	return errors.Join(
		fmt.Errorf("listen on socket %s: another agent answers there; stop it or choose another path",
			path),
		conn.Close(),
	)
}

// listenLoopback opens a TCP address, which must be loopback.
func listenLoopback(ctx context.Context, address string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: want HOST:PORT: %w", address, err)
	}
	if !isLoopback(host) {
		return nil, fmt.Errorf("listen on %s: want a loopback address such as 127.0.0.1:4800", address)
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	return listener, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// LoadToken reads the bearer token from a file, which only its owner may be able
// to read; if there is none, it makes one of 32 random bytes (0600).
func LoadToken(path string) (string, error) {
	path = filepath.Clean(path)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return makeToken(path)
	}
	if err != nil {
		return "", fmt.Errorf("read token: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf(
			"read token: others can read %s; run chmod 600 on it, or remove it to get a new one", path,
		)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read token: %w", err)
	}
	token := strings.TrimSpace(string(data))
	if len(token) < 16 {
		return "", fmt.Errorf("read token: %s holds less than 16 characters; remove it to get a new one",
			path)
	}
	return token, nil
}

func makeToken(path string) (string, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", fmt.Errorf("make folder of token: %w", err)
	}
	raw := make([]byte, 32)
	_, _ = rand.Read(raw) // never fails
	token := hex.EncodeToString(raw)
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", fmt.Errorf("make token: %w", err)
	}
	if _, err := file.WriteString(token + "\n"); err != nil {
		return "", errors.Join(fmt.Errorf("write token: %w", err), file.Close())
	}
	if err := file.Close(); err != nil {
		return "", fmt.Errorf("write token: %w", err)
	}
	return token, nil
}
