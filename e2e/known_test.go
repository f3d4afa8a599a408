//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/mrsmesh/mrsmesh/internal/localmesh"
)

// compiled is the cache of an agent that has run the guest. Else each site of each mesh would
// compile it anew, which takes seconds of a core: most of what these tests would compute.
var compiled = sync.OnceValues(compileGuest)

// compileGuest has an agent run the guest once.
func compileGuest() (cache string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	place, err := localmesh.MakePlace("mrs-known-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, place.Remove()) }()
	gift := localmesh.Gift{Name: "known", Cores: 1, GFLOPS: 4, Memory: 1024}
	m := localmesh.New(place, bin.siteagent, "home", []localmesh.Gift{gift}, nil)
	defer func() { err = errors.Join(err, m.Stop(ctx)) }() // before its files are removed
	if err = m.Start(ctx, localmesh.NewScreen(os.Stderr, false)); err != nil {
		return "", err
	}
	submit := exec.CommandContext(ctx, bin.submit, "run", "--wasm", bin.guest, "--", "exit=0")
	submit.Env = append(
		os.Environ(), "MRS_ADDR="+m.Submitter().Config.API.Socket, "XDG_CONFIG_HOME="+place.Dir,
	)
	if out, err := submit.CombinedOutput(); err != nil {
		return "", fmt.Errorf("submit the guest: %w: %s", err, out)
	}
	return bin.cache, copyTree(cacheOf(m.Submitter().Config.StateDir), bin.cache)
}

// cacheOf names the directory with what a site has compiled.
func cacheOf(state string) string { return filepath.Join(state, "wasm", "wasm-cache") }

// acquire makes the state of a site that has measured its machine and has run the guest.
func acquire(ctx context.Context, state string) error {
	cache, err := compiled()
	if err != nil {
		return err
	}
	return errors.Join(
		os.MkdirAll(state, 0o700), copySpeed(ctx, state), copyTree(cache, cacheOf(state)),
	)
}
