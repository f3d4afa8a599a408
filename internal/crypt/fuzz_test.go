package crypt_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/crypt"
)

// All content is refused as damaged, or gives what was encrypted: its size is as it was said.
func FuzzOpen(f *testing.F) {
	key := jobKey(f, 1, name)
	text := encrypt(f, key, "secret")
	f.Add(text)
	f.Add(text[:len(text)-1])
	f.Add(encrypt(f, key, strings.Repeat("x", 70_000)))
	f.Add([]byte("age-encryption.org/v1\n-> ssh-ed25519 AAAA\n--- \n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		plain, err := open(key, text)
		if err != nil && !errors.Is(err, crypt.ErrDamaged) {
			t.Fatal(err)
		}
		n, said := crypt.PlainBytes(text[:min(len(text), crypt.HeadBytes)], int64(len(text)))
		if err == nil && (said != nil || n != int64(len(plain))) {
			t.Errorf("%d bytes, said to be %d: %v", len(plain), n, said)
		}
		if n < 0 || n > int64(len(text)) {
			t.Errorf("%d bytes are said to be %d", len(text), n)
		}
	})
}

// A key that is opened is a key.
func FuzzUnwrap(f *testing.F) {
	wrapped, err := crypt.Wrap(jobKey(f, 1, name), public(pair(7)))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(wrapped)
	f.Add(wrapped[:20])
	f.Fuzz(func(t *testing.T, wrapped []byte) {
		key, err := crypt.Unwrap(wrapped, pair(7))
		if err == nil && key.Validate() != nil || err != nil && !errors.Is(err, crypt.ErrKey) {
			t.Errorf("%d bytes, %v", len(key), err)
		}
	})
}

// No archive writes outside of its directory, or more than it may.
func FuzzUnpack(f *testing.F) {
	f.Add(archive(f, tar.Header{Name: "a/b", Mode: 0o755}, "text"))
	f.Add(archive(f, tar.Header{Name: "../a"}, "text"))
	f.Add(archive(f, tar.Header{Name: "a", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}, ""))
	f.Fuzz(func(t *testing.T, packed []byte) {
		const most = 1 << 16
		above := t.TempDir()
		folder := filepath.Join(above, "to")
		err := crypt.Unpack(bytes.NewReader(packed), folder, most)
		found, _ := filepath.Glob(filepath.Join(above, "*"))
		if (err == nil) != (len(found) == 1) {
			t.Errorf("%v, and there is %q", err, found)
		}
		if err == nil && len(listing(t, folder)) > most+1000*(1+len(packed)/512) {
			t.Errorf("more than %d bytes", most)
		}
	})
}
