package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/localmesh"
)

const (
	plantedID   = "12D3KooWBg3QfxMVDfA6YbVfYN75az3n8fZqjiBndEGbuQuQDiMe"
	plantedAddr = "/ip4/127.0.0.1/tcp/4801/p2p/" + plantedID
)

func plantedSecrets() []secret {
	all := append(formsOfID("ospreylaw", plantedID), formsOf("ospreylaw", plantedAddr)...)
	return append(all, secret{"the name of ospreylaw", []byte("ospreylaw")})
}

// planted is a domain of one agent that has kept some files, and what it said to its users.
func planted(t *testing.T, name, text, said string) look {
	t.Helper()
	dir := t.TempDir()
	state := filepath.Join(dir, "wrenhollow")
	a := &localmesh.Agent{Gift: localmesh.Gift{Name: "wrenhollow"}}
	a.Config.StateDir = state
	if err := os.MkdirAll(filepath.Join(state, "journal"), 0o700); err != nil {
		t.Fatal(err)
	}
	for file, content := range map[string]string{
		filepath.Join(state, "journal", name): text,
		filepath.Join(dir, "wrenhollow.log"):  "started",
	} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return look{
		secrets: plantedSecrets(), by: &localmesh.Mesh{Agents: []*localmesh.Agent{a}},
		said: map[*localmesh.Agent][]byte{a: []byte(said)},
	}
}

func leaksOf(t *testing.T, l look) []leak {
	t.Helper()
	found, err := l.leaks()
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// What is planted is found, whatever its form: in a file, in the name of one, and in an answer.
func TestAPlantedLeakIsFound(t *testing.T) {
	for _, s := range plantedSecrets() {
		text := "\x00before" + string(s.form) + "behind\xff"
		for where, l := range map[string]look{
			"a file": planted(t, "1.log", text, "[]"), "an answer": planted(t, "1.log", "", text),
		} {
			found := leaksOf(t, l)
			if !slices.ContainsFunc(found, func(f leak) bool { return f.what == s.what }) {
				t.Errorf("%s as %q in %s was not found", s.what, s.form, where)
			}
		}
	}
	if found := leaksOf(t, planted(t, "of-ospreylaw", "", "")); len(found) != 1 {
		t.Errorf("in the name of a file: %v", found)
	}
}

// What belongs to the domain itself is no leak, nor is the other one's name.
func TestTheOwnInsideIsNoLeak(t *testing.T) {
	l := planted(t, "1.log", "wrenhollow, quillmoor, domain campus", `"/ip4/127.0.0.1/tcp/48"`)
	if found := leaksOf(t, l); len(found) > 0 {
		t.Errorf("found %v", found)
	}
}

// A search that does not even find what a domain says of itself is known to be blind.
func TestABlindSearchIsSeen(t *testing.T) {
	l := planted(t, "1.log", "wrenhollow", "")
	l.own = []secret{{"one", []byte("wrenhollow")}, {"two", []byte("quillmoor")}}
	if blind, err := l.unseen(); err != nil || !slices.Equal(blind, []string{"two"}) {
		t.Errorf("blind to %v, %v, want two", blind, err)
	}
}
