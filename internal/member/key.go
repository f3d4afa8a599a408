package member

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/mrsmesh/mrsmesh/internal/durable"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// KeyFile is the name of the domain's private key in the state directory of the
// site that invites.
const KeyFile = "domain.key"

// errKeyReadable says that other users than the owner may read the domain's key.
var errKeyReadable = errors.New("the domain's key can be read by others")

// pemType is the heading of the key's file.
const pemType = "MRS DOMAIN KEY"

// Key is a domain's key pair. Its printed form is the public key alone.
type Key struct{ private ed25519.PrivateKey }

// Public is the key by which members know the domain; empty for the zero Key.
func (k Key) Public() grid.DomainKey {
	if len(k.private) != ed25519.PrivateKeySize {
		return ""
	}
	return grid.NewDomainKey(k.private[ed25519.PrivateKeySize-ed25519.PublicKeySize:])
}

// String is the public key; the private one never shows.
func (k Key) String() string { return string(k.Public()) }

// sign sets the record's signature. The record's fields must be in range.
func (k Key) sign(record protocol.MemberRecord) protocol.MemberRecord {
	record.Signature = ed25519.Sign(k.private, record.SignedBytes())
	return record
}

// LoadKey reads the domain's key in the directory; the error is fs.ErrNotExist
// when there is none, and errKeyReadable when others may read it.
func LoadKey(dir string) (Key, error) { return readKey(dir, KeyFile) }

func readKey(dir, name string) (Key, error) {
	file := filepath.Join(dir, name)
	info, err := os.Stat(file)
	if err != nil {
		return Key{}, fmt.Errorf("read the domain's key: %w", err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 { // there modes say nothing
		return Key{}, fmt.Errorf("read the domain's key %s: %w (mode %04o); "+
			"if nobody has read it, run chmod 600 on it",
			file, errKeyReadable, info.Mode().Perm())
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return Key{}, fmt.Errorf("read the domain's key: %w", err)
	}
	block, _ := pem.Decode(raw)
	if block == nil || block.Type != pemType || len(block.Bytes) != ed25519.SeedSize {
		remedy := "restore it from your copy, or remove it to start a new domain"
		if name == nextKeyFile {
			remedy = "if successions.json names no successor that only this file has, remove it " +
				"and rotate again; else restore it from your copy"
		}
		return Key{}, fmt.Errorf("read the domain's key %s: not a key; %s", file, remedy)
	}
	return Key{private: ed25519.NewKeyFromSeed(block.Bytes)}, nil
}

// createKey makes a domain's key (ed25519, mode 0600); it never replaces one.
func createKey(dir, name string) (Key, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return Key{}, fmt.Errorf("make the domain's key: %w", err)
	}
	if dir == "" { // everything stays in memory
		return Key{private: private}, nil
	}
	file := filepath.Join(dir, name)
	text := pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: private.Seed()})
	if err := durable.Create(file, text); err != nil {
		return Key{}, fmt.Errorf("make the domain's key: %w", err)
	}
	return Key{private: private}, nil
}
