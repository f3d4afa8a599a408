package wire

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/mrsmesh/mrsmesh/internal/durable"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// errKeyReadable says that others than the owner may read the identity.
var errKeyReadable = errors.New("the key file can be read by others")

// Identity is a site's key pair. Its printed form is the site's name alone.
type Identity struct {
	key  crypto.PrivKey
	site grid.SiteID
}

// Site is the site's name, derived from the public key.
func (i Identity) Site() grid.SiteID { return i.site }

// Key signs for the site, and must not leave the process.
func (i Identity) Key() crypto.PrivKey { return i.key }

// String is the site's name; the key never shows.
func (i Identity) String() string { return string(i.site) }

// LoadIdentity reads the identity in the file, or makes one there (ed25519, mode
// 0600) when the file does not exist. A file that others may read is refused
// with errKeyReadable: a reader of it can pose as this site.
func LoadIdentity(file string) (Identity, error) {
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return createIdentity(file)
	}
	if err != nil {
		return Identity{}, fmt.Errorf("read identity: %w", err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 { // there modes say nothing
		return Identity{}, fmt.Errorf("read identity %s: %w (mode %04o); "+
			"if nobody has read it, run chmod 600 on it, else remove it",
			file, errKeyReadable, info.Mode().Perm())
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return Identity{}, fmt.Errorf("read identity: %w", err)
	}
	key, err := crypto.UnmarshalPrivateKey(raw)
	if err != nil {
		return Identity{}, fmt.Errorf("read identity %s: not a key: %w", file, err)
	}
	if key.Type() != crypto.Ed25519 {
		return Identity{}, fmt.Errorf("read identity %s: want an ed25519 key", file)
	}
	return identityOf(key)
}

func createIdentity(file string) (Identity, error) {
	id, err := NewIdentity()
	if err != nil {
		return Identity{}, err
	}
	return id, id.Save(file)
}

// NewIdentity makes an identity (ed25519) that is nowhere on disk.
func NewIdentity() (Identity, error) {
	key, _, err := crypto.GenerateEd25519Key(rand.Reader)
	if err != nil {
		return Identity{}, fmt.Errorf("create identity: %w", err)
	}
	return identityOf(key)
}

// Save writes the identity into a file that does not exist, for LoadIdentity.
func (i Identity) Save(file string) error {
	raw, err := crypto.MarshalPrivateKey(i.key)
	if err == nil {
		err = durable.Create(file, raw)
	}
	if err != nil {
		return fmt.Errorf("create identity: %w", err)
	}
	return nil
}

func identityOf(key crypto.PrivKey) (Identity, error) {
	id, err := peer.IDFromPrivateKey(key)
	if err != nil {
		return Identity{}, fmt.Errorf("derive site name: %w", err)
	}
	return Identity{key: key, site: SiteOf(id)}, nil
}

// SiteOf is the site that a peer is.
func SiteOf(id peer.ID) grid.SiteID { return grid.SiteID(id.String()) }

// PeerOf is the peer that a site is; the error says that the name is none.
func PeerOf(site grid.SiteID) (peer.ID, error) {
	id, err := peer.Decode(string(site))
	if err != nil {
		return "", fmt.Errorf("site %q: no peer ID: %w", string(site), err)
	}
	return id, nil
}

// DomainSite is the name that a domain has where a site's name is asked for: that of a peer with
// its key. The error says that the text is no key.
func DomainSite(key grid.DomainKey) (grid.SiteID, error) {
	raw, err := key.Bytes()
	if err != nil {
		return "", err
	}
	public, err := crypto.UnmarshalEd25519PublicKey(raw)
	if err != nil {
		return "", fmt.Errorf("domain key: %w", err)
	}
	id, err := peer.IDFromPublicKey(public)
	if err != nil {
		return "", fmt.Errorf("domain key: %w", err)
	}
	return SiteOf(id), nil
}

// SignedBy reports whether the site's key has signed the text. A peer ID of an ed25519 key holds
// the key.
func SignedBy(site grid.SiteID, text, signature []byte) bool {
	id, err := PeerOf(site)
	if err != nil {
		return false
	}
	key, err := id.ExtractPublicKey()
	if err != nil {
		return false
	}
	ok, err := key.Verify(text, signature)
	return ok && err == nil
}

// KeyOf is the ed25519 key that a site's name holds. The error says that it holds none.
func KeyOf(site grid.SiteID) ([]byte, error) {
	id, err := PeerOf(site)
	if err != nil {
		return nil, err
	}
	key, err := id.ExtractPublicKey()
	if err != nil {
		return nil, fmt.Errorf("site %q: no key in its name: %w", string(site), err)
	}
	if key.Type() != crypto.Ed25519 {
		return nil, fmt.Errorf("site %q: want an ed25519 key", string(site))
	}
	return key.Raw()
}
